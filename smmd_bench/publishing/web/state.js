"use strict";
// What the reader chose, in the address: `#all-completions&task=gsm8k&sort=target.down`.
// A link to it shows the same view; nothing is kept elsewhere.
const state = (() => {
  const plain = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  const read = () => {
    const parts = location.hash.slice(1).split("&"), named = parts[0].includes("=");
    return { place: named ? "" : plain(parts[0]), chosen: new URLSearchParams((named ? parts : parts.slice(1)).join("&")) };
  };
  let { place, chosen } = read();
  const listeners = [];
  const write = () => {
    const hash = [encodeURIComponent(place), chosen.toString()].filter(Boolean).join("&");
    if (hash === location.hash.slice(1)) return;
    try { history.replaceState(null, "", `#${hash}`); } catch { /* too many in a short time: the next one says it */ }
  };
  const all = (name) => chosen.getAll(name);
  const setAll = (name, values) => {
    chosen.delete(name);
    for (const value of values) chosen.append(name, value);
    write();
  };
  const show = () => { if (place) document.getElementById(place)?.scrollIntoView({ behavior: "instant" }); };
  // A link of the page names a place alone: what was chosen stays.
  addEventListener("hashchange", () => {
    const found = read();
    place = found.place;
    if ([...found.chosen].length === 0) { write(); return; }
    chosen = found.chosen;
    for (const listener of listeners) listener();
    show();
  });
  return {
    all, setAll, show,
    get: (name) => chosen.get(name) ?? "",
    set: (name, value) => setAll(name, value === "" ? [] : [value]),
    listen: (listener) => { listeners.push(listener); },
  };
})();
