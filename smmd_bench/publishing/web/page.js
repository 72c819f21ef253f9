"use strict";
// The theme, the contents at the side, and elements for the other scripts.
const $ = (id) => document.getElementById(id);
const element = (tag, text, className) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const pressed = (text, action) => {
  const made = element("button", text);
  made.type = "button";
  made.onclick = action;
  return made;
};

(() => {
  const root = document.documentElement, button = $("theme");
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

// The contents are open where they stand at the side, and mark what is being read.
(() => {
  const contents = $("contents"), wide = matchMedia("(min-width: 75rem)");
  const fold = () => { contents.open = wide.matches; };
  wide.addEventListener("change", fold);
  fold();
  const links = new Map([...contents.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target.id);
    const first = [...links.keys()].find((id) => seen.has(id));
    for (const [id, link] of links) {
      if (id === first) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "0px 0px -60% 0px" });
  for (const section of document.querySelectorAll("main section[id]")) watcher.observe(section);
})();
state.show();
