"use strict";
// The theme, and tables that a click or a key on a heading sorts.
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  const say = () => { button.textContent = isDark() ? "Light colours" : "Dark colours"; };
  const kept = (change) => { try { return change(localStorage); } catch { return null; } };
  const before = kept((storage) => storage.getItem("smmd-bench-theme"));
  if (before === "dark" || before === "light") root.dataset.theme = before;
  button.hidden = false;
  button.onclick = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    kept((storage) => storage.setItem("smmd-bench-theme", root.dataset.theme));
    say();
  };
  system.addEventListener("change", say);
  say();
})();

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

  // Up, then down, then as it was.
  const next = (heading) => ({ ascending: "descending", descending: null }[heading.getAttribute("aria-sort")] ?? (heading.hasAttribute("aria-sort") ? null : "ascending"));
  const mark = (heading, direction) => {
    for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
    if (direction) heading.setAttribute("aria-sort", direction);
  };
  const press = (heading, action) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.onclick = action;
    heading.replaceChildren(button);
  };
  return { key, ordered, next, mark, press };
})();

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], original = [...body.rows];
  [...table.tHead.rows[0].cells].forEach((heading, at) => sorting.press(heading, () => {
    const direction = sorting.next(heading), numeric = heading.classList.contains("number");
    sorting.mark(heading, direction);
    body.append(...direction
      ? sorting.ordered(original, (row) => sorting.key(row.cells[at].textContent, numeric), direction === "descending")
      : original);
  }));
}
