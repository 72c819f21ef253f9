"use strict";
// The filtered completions in numbers, by task and by the values of an attribute; and as CSV.
const makeSlices = (examples) => {
  const { data, groups, labels, group, at } = examples;
  const MEASURES = {
    right: { title: "right, %", one: (row, loss) => ({ 1: 100, 0: 0 }[examples.exact(row, loss)] ?? null) },
    error: { title: "mean |error|", one: (row, loss) => examples.error(row, loss) },
    read: { title: "with a number, %", one: (row, loss) => examples.exact(row, loss) === "-" ? null : examples.category(row, loss) === examples.invalid ? 0 : 100 },
  };
  $("measure").append(...Object.entries(MEASURES).map(([key, { title }]) => new Option(title, key)));
  $("split").append(new Option("task", ""), ...examples.splits.map(({ name }) => new Option(`task and ${name}`, name)));
  $("split").closest("label").hidden = examples.splits.length === 0;
  const several = new Set(groups.map((each) => each.model)).size > 1;

  let rows = [], losses = [];
  // A slice has one task and one model: errors of two tasks have no common mean.
  const slicesOf = () => {
    const split = examples.splits.find(({ name }) => name === $("split").value), found = new Map();
    for (const row of rows) {
      const { model, task } = group(row), part = split ? split.of(row) : null;
      if (split && part === null) continue;
      const names = [...several ? [model] : [], task, ...part === null ? [] : [`${split.name}: ${part}`]];
      const order = [groups.findIndex((each) => each.model === model && each.task === task), split ? split.parts.indexOf(part) : 0];
      const key = names.join("\n");
      if (!found.has(key)) found.set(key, { names, order, rows: [] });
      found.get(key).rows.push(row);
    }
    return [...found.values()].sort((a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1]);
  };
  const cellOf = (slice, loss, one) => {
    let sum = 0, n = 0;
    for (const row of slice.rows) {
      const value = at(row, loss) < 0 ? null : one(row, loss);
      if (value !== null) { sum += value; n += 1; }
    }
    const cell = element("td", n ? (sum / n).toLocaleString("en", { maximumSignificantDigits: 3 }) : "–", "number");
    if (n) cell.append(element("small", `n ${n.toLocaleString("en")}`));
    return cell;
  };
  const show = () => {
    const { title, one } = MEASURES[$("measure").value], head = element("tr");
    head.append(element("th", "Slice"), ...losses.map((loss) => element("th", labels[loss], "number")));
    for (const heading of head.children) heading.scope = "col";
    const lines = slicesOf().map((slice) => {
      const line = element("tr"), name = element("th", slice.names.join(" · "));
      name.scope = "row";
      line.append(name, ...losses.map((loss) => cellOf(slice, loss, one)));
      return line;
    });
    $("slices").tHead.replaceChildren(head);
    $("slices").tBodies[0].replaceChildren(...lines);
    $("slices").caption.textContent = `${title[0].toUpperCase()}${title.slice(1)}: ${rows.length.toLocaleString("en")} examples, all seeds together`;
  };
  const choose = () => {
    state.set("measure", $("measure").value === "right" ? "" : $("measure").value);
    state.set("split", $("split").value);
    show();
  };
  $("measure").onchange = $("split").onchange = choose;

  // One line a completion, quoted where a cell asks for it.
  const quoted = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (chosen, shownLosses) => {
    const attributes = Object.keys(data.attributes);
    const lines = [["example", "model", "task", "seed", "loss", "prompt", "target", "completion", "exact", "category", "error", ...attributes]];
    for (const row of chosen) for (const loss of shownLosses) {
      if (at(row, loss) < 0) continue;
      const { model, task, seed } = group(row), letter = examples.category(row, loss);
      lines.push([
        examples.uid(row), model, task, seed, loss, examples.prompt(row), examples.target(row), examples.answer(row, loss),
        examples.exact(row, loss).replace("-", ""), letter === "-" ? "" : examples.named(letter), examples.error(row, loss),
        ...attributes.map((name) => examples.attribute(row, name)),
      ]);
    }
    return lines.map((line) => `${line.map(quoted).join(",")}\n`).join("");
  };
  return {
    draw: (chosen, shownLosses) => { [rows, losses] = [chosen, shownLosses]; show(); },
    restore: () => {
      $("measure").value = Object.hasOwn(MEASURES, state.get("measure")) ? state.get("measure") : "right";
      $("split").value = state.get("split");
      if ($("split").selectedIndex === -1) $("split").value = "";
    },
    download: (chosen, shownLosses) => {
      const link = element("a");
      link.href = URL.createObjectURL(new Blob([csv(chosen, shownLosses)], { type: "text/csv" }));
      link.download = "completions.csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    },
  };
};
