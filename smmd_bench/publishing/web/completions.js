"use strict";
// The table of completions, a page at a time. On a phone the style sheet makes blocks of the rows;
// the roles keep them a table for a reader.
(async () => {
  const PAGE = 25, LOSSES = 6;
  const status = $("where"), table = $("completions");
  let examples;
  status.textContent = "reading …";
  try { examples = await readExamples(); } catch (problem) { status.textContent = `The completions cannot be shown: ${problem.message}.`; return; }
  const { data, groups, losses, labels, group } = examples;
  const filters = makeFilters(examples), slices = makeSlices(examples), detail = makeDetail(examples);

  // Columns: `key` is how the address names one.
  const several = (name) => new Set(groups.map((each) => each[name])).size > 1;
  const every = [
    { key: "id", title: "Example", text: examples.uid },
    { key: "task", title: "Task", text: (row) => group(row).task },
    { key: "seed", title: "Seed", text: (row) => String(group(row).seed) },
    ...(several("model") ? [{ key: "model", title: "Model", text: (row) => group(row).model }] : []),
    { key: "prompt", title: "Prompt", text: examples.prompt },
    { key: "target", title: "Target", text: examples.target },
    ...losses.map((loss) => ({ key: `loss:${loss}`, title: labels[loss], loss, text: (row) => examples.answer(row, loss) })),
    ...Object.keys(data.attributes).map((name) => ({ key: `at:${name}`, title: name, extra: true, text: (row) => String(examples.attribute(row, name) ?? "–") })),
  ];
  // At first the losses that most groups have, as many as can be read side by side.
  const shares = (loss) => groups.filter((each) => each.losses.includes(loss)).length;
  const common = new Set([...losses].sort((a, b) => shares(b) - shares(a)).slice(0, LOSSES));
  const usual = every.filter((column) => column.loss ? common.has(column.loss) : !column.extra).map((column) => column.key);
  const wanted = () => {
    const asked = new Set(state.all("columns")), known = every.map((column) => column.key).filter((key) => asked.has(key));
    return known.length ? known : usual;
  };
  const drawChoice = () => {
    const keys = new Set(wanted());
    $("columns").replaceChildren(...every.map((column) => {
      const label = element("label", undefined, "tick"), box = element("input");
      Object.assign(box, { type: "checkbox", value: column.key, checked: keys.has(column.key) });
      box.onchange = () => {
        const chosen = [...$("columns").querySelectorAll("input:checked")].map((each) => each.value);
        state.setAll("columns", chosen.join("\n") === usual.join("\n") ? [] : chosen);
        select();
      };
      label.append(box, ` ${column.title}`);
      return label;
    }));
    $("columns-said").textContent = `Columns: ${every.filter((column) => keys.has(column.key)).length} of ${every.length}`;
  };
  const columnsOf = ({ chosen, inGroup }) => {
    const there = new Set(groups.flatMap((each, number) => inGroup[number] ? each.losses : []));
    const keys = new Set(wanted()), asked = new Set([chosen.right, chosen.wrong, chosen.loss]);
    return every.filter((column) => column.loss ? asked.has(column.loss) || (keys.has(column.key) && there.has(column.loss)) : keys.has(column.key));
  };

  let shown = [], columns = [], page = 0;
  const nameOf = (row) => `${data.group[row]}:${examples.uid(row)}`;
  const cellOf = (row, column) => {
    const cell = element("td"), text = column.text(row);
    cell.dataset.label = column.title;
    cell.setAttribute("role", "cell");
    const flag = column.loss ? examples.exact(row, column.loss) : "";
    if (column.key === "id") {
      const button = pressed(text, () => { state.set("example", state.get("example") === nameOf(row) ? "" : nameOf(row)); draw(); });
      button.setAttribute("aria-expanded", String(state.get("example") === nameOf(row)));
      cell.append(button);
    } else cell.textContent = flag === "1" ? `✓ ${text}` : flag === "0" ? `✗ ${text}` : text ?? "–";
    if (flag === "1" || flag === "0") cell.className = flag === "1" ? "right" : "wrong";
    const letter = column.loss ? examples.category(row, column.loss) : "";
    if (flag === "0" && letter && letter !== "-") cell.append(element("small", examples.written(letter)));
    if (column.key === "prompt" && row in data.pictured) {
      const image = element("img");
      image.src = data.pictures[data.pictured[row]];
      image.alt = "the picture of this example";
      cell.prepend(image);
    }
    return cell;
  };
  const lineOf = (row) => {
    const line = element("tr");
    line.setAttribute("role", "row");
    line.append(...columns.map((column) => cellOf(row, column)));
    if (state.get("example") !== nameOf(row)) return [line];
    const below = element("tr", undefined, "detail"), cell = element("td");
    below.setAttribute("role", "row");
    cell.setAttribute("role", "cell");
    cell.colSpan = columns.length;
    cell.append(detail(row, columns.filter((column) => column.loss).map((column) => column.loss)));
    below.append(cell);
    return [line, below];
  };
  const drawHeading = () => {
    const line = element("tr"), { column: sorted, direction } = sorting.read("sort");
    line.setAttribute("role", "row");
    for (const column of columns) {
      const heading = element("th", column.title);
      heading.setAttribute("role", "columnheader");
      if (sorted === column.key && direction) heading.setAttribute("aria-sort", direction);
      sorting.press(heading, () => {
        sorting.write("sort", column.key, sorting.next(heading));
        sorting.mark(heading, sorting.read("sort").direction);
        select();
      });
      line.append(heading);
    }
    table.tHead.replaceChildren(line);
  };
  const draw = () => {
    const last = Math.max(0, Math.ceil(shown.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    table.tBodies[0].replaceChildren(...shown.slice(page * PAGE, page * PAGE + PAGE).flatMap(lineOf));
    $("first").disabled = $("previous").disabled = page === 0;
    $("next").disabled = $("last").disabled = page >= last;
    $("page-number").value = page + 1;
    $("page-number").max = last + 1;
    state.set("page", page ? String(page + 1) : "");
    const count = (number) => number.toLocaleString("en");
    status.textContent = shown.length
      ? `${count(page * PAGE + 1)}–${count(Math.min(shown.length, page * PAGE + PAGE))} of ${count(shown.length)} examples`
      : "no example matches";
  };
  // By the text, and of a loss by right before wrong, those first that have its answer.
  const inOrder = (rows, column, falling) => {
    const found = sorting.ordered(rows, (row) => sorting.key(column.text(row) ?? ""), falling);
    return column.loss ? sorting.ordered(found, (row) => ({ 1: 0, 0: 1, "-": 2 }[examples.exact(row, column.loss)] ?? null), falling) : found;
  };
  const select = (at = 0) => {
    const filter = filters.read();
    columns = columnsOf(filter);
    drawHeading();
    drawChoice();
    shown = [];
    for (let row = 0; row < examples.total; row += 1) if (filter.test(row)) shown.push(row);
    slices.draw(shown, columns.filter((column) => column.loss).map((column) => column.loss));
    const { column: key, direction } = sorting.read("sort"), column = direction && columns.find((each) => each.key === key);
    if (column) shown = inOrder(shown, column, direction === "descending");
    page = at;
    draw();
  };
  const change = () => { filters.keep(); select(); };
  let waiting;
  $("search").oninput = () => { clearTimeout(waiting); waiting = setTimeout(change, 150); };
  for (const control of $("filters").querySelectorAll("select, input[type=checkbox]")) control.onchange = change;
  $("filters").onsubmit = (event) => event.preventDefault();
  $("filters").onreset = () => { clearTimeout(waiting); setTimeout(change); };
  $("swap").onclick = () => {
    [$("by-right").value, $("by-wrong").value] = [$("by-wrong").value, $("by-right").value];
    change();
  };
  $("usual-columns").onclick = () => { state.setAll("columns", []); select(); };
  $("download").onclick = () => slices.download(shown, columns.filter((column) => column.loss).map((column) => column.loss));
  const turn = (to) => () => { page = to(); draw(); };
  $("first").onclick = turn(() => 0);
  $("previous").onclick = turn(() => page - 1);
  $("next").onclick = turn(() => page + 1);
  $("last").onclick = turn(() => Infinity);
  $("page-number").onchange = turn(() => (Number($("page-number").value) || 1) - 1);
  const restore = () => {
    filters.restore();
    slices.restore();
    select((Number(state.get("page")) || 1) - 1);
  };
  restore();
  state.listen(restore);
  state.show();
})();
