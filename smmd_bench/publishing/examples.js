"use strict";
// The browser of completions: filters, search and sorting over the packed columns, a page at a time.
// On a phone the style sheet makes blocks of the rows; the roles keep them a table for a reader.
(async () => {
  const PAGE = 25;
  const $ = (id) => document.getElementById(id);
  const status = $("where");

  // The columns that `packing.py` made.
  const read = async () => {
    const element = $("data");
    if (element.type === "application/json") return JSON.parse(element.textContent);
    if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to decompress them");
    const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };
  let data;
  status.textContent = "reading …";
  try { data = await read(); } catch (problem) { status.textContent = `The completions cannot be shown: ${problem.message}.`; return; }

  const { texts, groups } = data, total = data.group.length;
  const everyLoss = [...new Set(groups.flatMap((group) => group.losses))];
  const place = Object.fromEntries(everyLoss.map((loss) => [loss, groups.map((group) => group.losses.indexOf(loss))]));
  const start = new Uint32Array(total);
  for (let row = 1; row < total; row += 1) start[row] = start[row - 1] + data.exact[row - 1].length;
  const at = (row, loss) => place[loss][data.group[row]];
  const answer = (row, loss) => at(row, loss) < 0 ? null : texts[data.answers[start[row] + at(row, loss)]];
  const exact = (row, loss) => at(row, loss) < 0 ? "" : data.exact[row][at(row, loss)];
  const category = (row, loss) => at(row, loss) < 0 ? "" : data.category[row][at(row, loss)];
  const named = (letter) => data.categories[letter.charCodeAt(0) - 97];
  const written = (name) => name.replace("scale_x10^", "scale ×10^").replaceAll("_", " ").replace("^-", "^−");

  const varying = ["model", "task", "seed"].filter((name) => new Set(groups.map((group) => group[name])).size > 1);
  const of = (row) => varying.map((name) => name === "seed" ? `seed ${groups[data.group[row]].seed}` : groups[data.group[row]][name]).join(", ");

  // Filters: a select for each, hidden where there is nothing to choose.
  const choose = (id, first, options) => {
    $(id).append(new Option(first, ""), ...options.map(([value, text]) => new Option(text, value)));
    $(id).closest("label").hidden = options.length < 2;
  };
  for (const name of ["model", "task", "seed"]) {
    const values = [...new Set(groups.map((group) => String(group[name])))];
    choose(`by-${name}`, "all", values.map((value) => [value, value]));
  }
  choose("by-loss", "any", everyLoss.map((loss) => [loss, data.labels[loss]]));
  const right = data.exact.some((flags) => /[01]/.test(flags));
  choose("by-answer", "right or wrong", right ? [["1", "right"], ["0", "wrong"]] : []);
  const letters = [...new Set(data.category.join(""))].filter((letter) => letter !== "-").sort();
  choose("by-category", "any", letters.map((letter) => [letter, written(named(letter))]));

  const lowered = [];
  const matching = (words, wanted) => {
    if (!lowered.length) for (const text of texts) lowered.push(text.toLowerCase());
    const found = new Uint8Array(texts.length);
    lowered.forEach((text, number) => { found[number] = text.includes(words) ? 1 : 0; });
    const prompt = wanted !== "completion", completion = wanted !== "prompt";
    return (row) => {
      if (prompt && (found[data.prompt[row]] || found[data.target[row]])) return true;
      if (completion) for (let one = start[row], end = one + data.exact[row].length; one < end; one += 1) if (found[data.answers[one]]) return true;
      return false;
    };
  };
  const filters = () => {
    const tests = [], chosen = Object.fromEntries(["model", "task", "seed", "loss", "answer", "category", "where"].map((name) => [name, $(`by-${name}`).value]));
    const inGroup = groups.map((group) => ["model", "task", "seed"].every((name) => !chosen[name] || String(group[name]) === chosen[name])
      && (!chosen.loss || group.losses.includes(chosen.loss)));
    tests.push((row) => inGroup[data.group[row]]);
    if ($("differing").checked) tests.push((row) => data.differing[row] === 1);
    if (chosen.answer || chosen.category) {
      const fits = (row, one) => (!chosen.answer || data.exact[row][one] === chosen.answer)
        && (!chosen.category || data.category[row][one] === chosen.category);
      tests.push(chosen.loss ? (row) => fits(row, at(row, chosen.loss))
        : (row) => { for (let one = 0; one < data.exact[row].length; one += 1) if (fits(row, one)) return true; return false; });
    }
    const words = $("search").value.trim().toLowerCase();
    if (words) tests.push(matching(words, chosen.where));
    return { inGroup, test: (row) => tests.every((each) => each(row)) };
  };

  let shown = [], columns = [], page = 0, sorted = null, direction = null;
  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const columnsOf = (inGroup) => {
    const losses = new Set(groups.flatMap((group, number) => inGroup[number] ? group.losses : []));
    return [
      { title: "Prompt", text: (row) => texts[data.prompt[row]] },
      { title: "Target", text: (row) => texts[data.target[row]] },
      ...everyLoss.filter((loss) => losses.has(loss)).map((loss) => ({ title: data.labels[loss], loss, text: (row) => answer(row, loss) })),
      ...(groups.length > 1 ? [{ title: "Of", text: of }] : []),
    ];
  };
  const cellOf = (row, column) => {
    const text = column.text(row), flag = column.loss ? exact(row, column.loss) : "";
    const cell = element("td", flag === "1" ? `✓ ${text}` : flag === "0" ? `✗ ${text}` : text ?? "–", { 1: "right", 0: "wrong" }[flag]);
    cell.dataset.label = column.title;
    cell.setAttribute("role", "cell");
    const letter = column.loss ? category(row, column.loss) : "";
    if (flag === "0" && letter && letter !== "-") cell.append(element("small", written(named(letter))));
    return cell;
  };
  const drawHeading = () => {
    const line = element("tr");
    line.setAttribute("role", "row");
    for (const column of columns) {
      const heading = element("th", column.title);
      heading.setAttribute("role", "columnheader");
      if (sorted === column.title && direction) heading.setAttribute("aria-sort", direction);
      sorting.press(heading, () => {
        direction = sorting.next(heading);
        sorting.mark(heading, direction);
        sorted = column.title;
        select();
      });
      line.append(heading);
    }
    $("completions").tHead.replaceChildren(line);
  };
  const draw = () => {
    const last = Math.max(0, Math.ceil(shown.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    const lines = shown.slice(page * PAGE, page * PAGE + PAGE).map((row) => {
      const line = element("tr");
      line.setAttribute("role", "row");
      line.append(...columns.map((column) => cellOf(row, column)));
      if (row in data.pictured) {
        const image = element("img");
        image.src = data.pictures[data.pictured[row]];
        image.alt = "the picture of this example";
        line.firstChild.prepend(image);
      }
      return line;
    });
    $("completions").tBodies[0].replaceChildren(...lines);
    $("first").disabled = $("previous").disabled = page === 0;
    $("next").disabled = $("last").disabled = page >= last;
    $("page-number").value = page + 1;
    $("page-number").max = last + 1;
    status.textContent = shown.length
      ? `${(page * PAGE + 1).toLocaleString("en")}–${Math.min(shown.length, page * PAGE + PAGE).toLocaleString("en")} of ${shown.length.toLocaleString("en")} examples`
      : "no example matches";
  };
  // By the text, and of a loss by right before wrong, those first that have its answer.
  const inOrder = (rows, column, falling) => {
    const found = sorting.ordered(rows, (row) => sorting.key(column.text(row) ?? ""), falling);
    return column.loss ? sorting.ordered(found, (row) => ({ 1: 0, 0: 1, "-": 2 }[exact(row, column.loss)] ?? null), falling) : found;
  };
  const select = () => {
    const { inGroup, test } = filters();
    const before = columns.map((column) => column.title).join("\n");
    columns = columnsOf(inGroup);
    if (columns.map((column) => column.title).join("\n") !== before) drawHeading();
    shown = [];
    for (let row = 0; row < total; row += 1) if (test(row)) shown.push(row);
    const column = direction && columns.find((each) => each.title === sorted);
    if (column) shown = inOrder(shown, column, direction === "descending");
    page = 0;
    draw();
  };
  let waiting;
  $("search").oninput = () => { clearTimeout(waiting); waiting = setTimeout(select, 150); };
  for (const control of $("filters").querySelectorAll("select, input[type=checkbox]")) control.onchange = select;
  $("filters").onsubmit = (event) => event.preventDefault();
  $("filters").onreset = () => { clearTimeout(waiting); setTimeout(select); };
  const turn = (to) => () => { page = to(); draw(); };
  $("first").onclick = turn(() => 0);
  $("previous").onclick = turn(() => page - 1);
  $("next").onclick = turn(() => page + 1);
  $("last").onclick = turn(() => Infinity);
  $("page-number").onchange = turn(() => (Number($("page-number").value) || 1) - 1);
  select();
})();
