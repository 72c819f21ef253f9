"use strict";
// Tables that a click or a key on a heading sorts, and the completions, a page of them at a time.
const $ = (id) => document.getElementById(id);
const element = (tag, text, className) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};

// A cell sorts by the number that it begins with, else by its text; dashes come last.
const words = new Intl.Collator("en", { numeric: true });
const compare = (a, b) => {
  const [x, y] = [a, b].map((text) => parseFloat(text.replace("−", "-").replace(/[,<>+]/g, "")));
  return Number.isNaN(x) || Number.isNaN(y) ? words.compare(a, b) : x - y;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, at) => {
    const button = element("button", heading.textContent);
    button.type = "button";
    button.onclick = () => {
      const falling = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const text = (row) => row.cells[at].textContent.trim(), rows = [...table.tBodies[0].rows];
      const there = rows.filter((row) => text(row) !== "–");
      there.sort((a, b) => (falling ? -1 : 1) * compare(text(a), text(b)));
      table.tBodies[0].append(...there, ...rows.filter((row) => text(row) === "–"));
    };
    heading.replaceChildren(button);
  });
}

// On a phone the style sheet makes blocks of the rows; the roles keep them a table for a reader.
const showCompletions = ({ groups, labels, categories, rows }) => {
  const PAGE = 25, RIGHT = categories.indexOf("exact"), table = $("examples");
  const losses = Object.keys(labels);
  const varying = ["model", "task", "seed"].filter((name) => new Set(groups.map((group) => group[name])).size > 1);
  const nameOf = (group) => varying.map((name) => name === "seed" ? `seed ${group.seed}` : group[name]).join(" · ");
  const written = (category) => category.replace("scale_x10^", "scale ×10^").replaceAll("_", " ");
  const choose = (id, options, least = 1) => {
    $(id).append(...options.map(([value, text]) => new Option(text, value)));
    $(id).closest("label").hidden = options.length < least;
  };
  choose("group", groups.map((group, at) => [at, nameOf(group)]), 2);
  const judged = rows.some((row) => row[5].some((category) => category >= 0));
  for (const id of ["right", "wrong"]) choose(id, judged ? losses.map((loss) => [loss, labels[loss]]) : []);
  choose("category", judged ? categories.map((name, at) => [at, written(name)]) : []);

  const of = (row, loss) => row[5][groups[row[0]].losses.indexOf(loss)] ?? -1;
  const fits = (row) => {
    const [group, right, wrong, category] = ["group", "right", "wrong", "category"].map((id) => $(id).value);
    const asked = $("search").value.trim().toLowerCase();
    return (!group || row[0] === Number(group))
      && (!right || of(row, right) === RIGHT)
      && (!wrong || of(row, wrong) >= 0 && of(row, wrong) !== RIGHT)
      && (!category || row[5].includes(Number(category)))
      && (!$("differing").checked || row[6] === 1)
      && (!asked || [row[1], row[2], row[3], ...row[4]].some((text) => text.toLowerCase().includes(asked)));
  };
  const cell = (title, text, className) => {
    const made = element("td", text, className);
    made.dataset.label = title;
    made.setAttribute("role", "cell");
    return made;
  };
  const lineOf = (row, shownLosses) => {
    const [group, uid, prompt, target, answers, , , picture] = row, line = element("tr");
    const asked = cell("Prompt", prompt);
    if (picture) {
      const image = element("img");
      image.src = picture;
      image.alt = "the picture of this example";
      asked.prepend(image);
    }
    line.setAttribute("role", "row");
    line.append(cell("Example", uid));
    if (groups.length > 1) line.append(cell("Cells", nameOf(groups[group])));
    line.append(asked, cell("Target", target));
    for (const loss of shownLosses) {
      const category = of(row, loss), at = groups[group].losses.indexOf(loss);
      const mark = category < 0 ? "" : category === RIGHT ? "✓ " : "✗ ";
      const answer = cell(labels[loss], at < 0 ? "–" : mark + answers[at], { "✓ ": "right", "✗ ": "wrong" }[mark]);
      if (mark === "✗ ") answer.append(element("small", written(categories[category])));
      line.append(answer);
    }
    return line;
  };

  let found = [], page = 0;
  const draw = () => {
    const shown = found.slice(PAGE * page, PAGE * (page + 1));
    const there = new Set(found.flatMap((row) => groups[row[0]].losses));
    const shownLosses = losses.filter((loss) => there.has(loss));
    const titles = ["Example", ...groups.length > 1 ? ["Cells"] : [], "Prompt", "Target", ...shownLosses.map((loss) => labels[loss])];
    const head = element("tr");
    head.setAttribute("role", "row");
    head.append(...titles.map((title) => element("th", title)));
    for (const heading of head.children) heading.setAttribute("role", "columnheader");
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...shown.map((row) => lineOf(row, shownLosses)));
    $("previous").disabled = page === 0;
    $("next").disabled = PAGE * (page + 1) >= found.length;
    $("where").textContent = found.length
      ? `${PAGE * page + 1}–${PAGE * page + shown.length} of ${found.length.toLocaleString("en")} examples`
      : "no example matches";
  };
  const select = () => { found = rows.filter(fits); page = 0; draw(); };
  const turn = (by) => () => { page += by; draw(); };
  $("previous").onclick = turn(-1);
  $("next").onclick = turn(1);
  $("filters").oninput = select;
  $("filters").onsubmit = (event) => event.preventDefault();
  $("filters").onreset = () => setTimeout(select);
  select();
};

(async () => {
  const bytes = Uint8Array.from(atob($("data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  showCompletions(await new Response(stream).json());
})();

// The contents are open where they stand at the side.
const contents = document.querySelector("nav details"), wide = matchMedia("(min-width: 75rem)");
const fold = () => { contents.open = wide.matches; };
wide.addEventListener("change", fold);
fold();
