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
  const NAMES = ["model", "task", "seed"], FILTERS = ["search", "right", "wrong", "category"];
  const varying = NAMES.filter((name) => new Set(groups.map((group) => group[name])).size > 1);
  const nameOf = (group) => varying.map((name) => name === "seed" ? (group.seed === "all" ? "all seeds" : `seed ${group.seed}`) : group[name]).join(" · ");
  const written = (category) => category.replace("scale_x10^", "scale ×10^").replaceAll("_", " ");
  const choose = (id, options, least = 1) => {
    $(id).append(...options.map(([value, text]) => new Option(text, value)));
    $(id).closest("label").hidden = options.length < least;
  };
  // Cells are chosen by model and task, all seeds of them, and by seed.
  const named = (group, names) => String(new URLSearchParams(names.filter((name) => name in group).map((name) => [name, group[name]])));
  const whole = new Map(groups.map((group) => [named(group, ["model", "task"]), nameOf({ ...group, seed: "all" })]));
  const one = groups.map((group) => [named(group, NAMES), nameOf(group)]);
  choose("group", [...whole.size > 1 ? whole : [], ...whole.size < one.length ? one : []], 2);
  const judged = rows.some((row) => row[5].some((category) => category >= 0));
  for (const id of ["right", "wrong"]) choose(id, judged ? losses.map((loss) => [loss, labels[loss]]) : []);
  choose("category", judged ? categories.map((name) => [name, written(name)]) : []);

  const of = (row, loss) => row[5][groups[row[0]].losses.indexOf(loss)] ?? -1;
  const filter = () => {
    const [right, wrong] = ["right", "wrong"].map((id) => $(id).value);
    const category = categories.indexOf($("category").value), asked = $("search").value.trim().toLowerCase();
    const cells = [...new URLSearchParams($("group").value)];
    const within = groups.map((group) => cells.every(([name, value]) => String(group[name]) === value));
    return (row) => within[row[0]]
      && (!right || of(row, right) === RIGHT)
      && (!wrong || of(row, wrong) >= 0 && of(row, wrong) !== RIGHT)
      && (category < 0 || row[5].includes(category))
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
    line.tabIndex = -1;
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

  let found = [], page = 0, at = -0.5;  // between two examples, or on one
  const draw = () => {
    const shown = found.slice(PAGE * page, PAGE * (page + 1));
    const there = new Set(found.flatMap((row) => groups[row[0]].losses));
    const chosen = [$("right").value, $("wrong").value];
    const shownLosses = [...new Set([...chosen, ...losses])].filter((loss) => there.has(loss));
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
      ? `${PAGE * page + 1}–${PAGE * page + shown.length} of ${found.length.toLocaleString("en")} examples${$("examples").dataset.part}`
      : "no example matches";
  };
  const select = () => { found = rows.filter(filter()); page = 0; at = -0.5; draw(); };
  const turn = (by) => () => { page += by; at = PAGE * page - 0.5; draw(); };

  // The fragment holds the filters: #completions?model=…&task=…&right=smmd&wrong=ce
  const share = () => {
    const asked = new URLSearchParams($("group").value);
    for (const id of FILTERS) if ($(id).value) asked.set(id, $(id).value);
    if ($("differing").checked) asked.set("differing", "1");
    history.replaceState(null, "", asked.size ? `#completions?${asked}` : "#completions");
  };
  const follow = () => {
    if (!location.hash.startsWith("#completions?")) return;
    const asked = Object.fromEntries(new URLSearchParams(location.hash.slice("#completions?".length)));
    for (const id of FILTERS) $(id).value = asked[id] ?? "";
    $("group").value = named(asked, NAMES);
    for (const id of ["group", ...FILTERS.slice(1)]) if ($(id).selectedIndex < 0) $(id).selectedIndex = 0;
    $("differing").checked = "differing" in asked;
    select();
    $("completions").focus({ preventScroll: true });
    $("completions").scrollIntoView();
  };
  // j and k, where nobody writes: the next of the examples that are found, and the one before.
  document.addEventListener("keydown", (event) => {
    const by = { j: 1, k: -1 }[event.key];
    const busy = event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea");
    const to = by > 0 ? Math.floor(at) + 1 : Math.ceil(at) - 1;
    if (!by || busy || !found[to]) return;
    at = to;
    if (Math.floor(at / PAGE) !== page) { page = Math.floor(at / PAGE); draw(); }
    const line = table.tBodies[0].rows[at % PAGE];
    line.focus({ preventScroll: true });
    line.scrollIntoView();
  });
  $("previous").onclick = turn(-1);
  $("next").onclick = turn(1);
  $("filters").oninput = () => { select(); share(); };
  $("filters").onsubmit = (event) => event.preventDefault();
  $("filters").onreset = () => setTimeout($("filters").oninput);
  addEventListener("hashchange", follow);
  // the same link again changes no fragment
  addEventListener("click", (event) => { if (event.target.closest("a[href^='#completions?']")) setTimeout(follow); });
  select();
  follow();
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
