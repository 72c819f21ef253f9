"use strict";
// Tables that a click or a key on a heading sorts: up, down, and back to how they were.
const sorting = (() => {
  const words = new Intl.Collator("en", { numeric: true });
  const SIZES = { k: 1e3, M: 1e6, B: 1e9 };
  const NUMBER = /^[<>≤≥~≈+]?\s*([-−]?[\d,]*\.?\d+(?:e[-+]?\d+)?)(?:\/(\d+))?([kMB])?(?=$|[^\p{L}\d])/u;

  // What a cell sorts by: a number, else its text; null for a dash, and among numbers for any
  // text ("failed"), which always comes last.
  const key = (text, numeric) => {
    text = text.trim();
    if (text === "" || text === "–" || text === "—") return null;
    const found = NUMBER.exec(text);
    if (!found) return numeric ? null : text;
    const value = Number(found[1].replace("−", "-").replaceAll(",", "")) / Number(found[2] || 1) * (SIZES[found[3]] || 1);
    return text[0] === "<" ? value - Number.EPSILON : text[0] === ">" ? value + Number.EPSILON : value;
  };
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
    : typeof a !== typeof b ? (typeof a === "number" ? -1 : 1) : words.compare(a, b);

  // The items in the order of their keys; stable, and those without a key last in both directions.
  const ordered = (items, keyOf, falling) => {
    const keyed = items.map((item) => ({ item, key: keyOf(item) }));
    const there = keyed.filter((each) => each.key !== null);
    there.sort((a, b) => falling ? compare(b.key, a.key) : compare(a.key, b.key));
    return [...there, ...keyed.filter((each) => each.key === null)].map((each) => each.item);
  };

  // In the address: the column's name and `.up` or `.down`.
  const read = (name) => {
    const [, column, way] = /^(.*)\.(up|down)$/s.exec(state.get(name)) ?? [];
    return { column, direction: { up: "ascending", down: "descending" }[way] ?? null };
  };
  const write = (name, column, direction) => {
    state.set(name, direction ? `${column}.${direction === "ascending" ? "up" : "down"}` : "");
  };
  const next = (heading) => ({ ascending: "descending", descending: null }[heading.getAttribute("aria-sort")] ?? (heading.hasAttribute("aria-sort") ? null : "ascending"));
  const mark = (heading, direction) => {
    for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
    if (direction) heading.setAttribute("aria-sort", direction);
  };
  const press = (heading, action) => {
    const button = pressed("", action);
    button.append(...heading.childNodes);
    heading.replaceChildren(button);
  };
  return { key, ordered, read, write, next, mark, press };
})();

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], original = [...body.rows], headings = [...table.tHead.rows[0].cells];
  const name = `sort.${table.closest("section").id}`;
  const names = headings.map((heading) => heading.textContent);
  const sort = () => {
    const { column, direction } = sorting.read(name), at = names.indexOf(column);
    sorting.mark(headings[Math.max(at, 0)], at < 0 ? null : direction);
    const numeric = headings[at]?.classList.contains("number");
    body.append(...at >= 0 && direction
      ? sorting.ordered(original, (row) => sorting.key(row.cells[at].textContent, numeric), direction === "descending")
      : original);
  };
  headings.forEach((heading, at) => sorting.press(heading, () => {
    sorting.write(name, names[at], sorting.next(heading));
    sort();
  }));
  if (state.get(name)) sort();
  state.listen(sort);
}
