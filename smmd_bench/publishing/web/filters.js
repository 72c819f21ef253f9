"use strict";
// Which completions are shown: a control for each question, and its value in the address.
const makeFilters = (examples) => {
  const { data, texts, groups, losses, labels, start, at } = examples;
  const KEYS = ["search", "where", "model", "task", "seed", "right", "wrong", "loss", "category", "slice"];
  const control = (key) => $(key === "search" ? "search" : `by-${key}`);

  // A select for each, hidden where there is nothing to choose.
  const choose = (id, first, options, least = 2) => {
    $(id).append(new Option(first, ""), ...options.map(([value, text]) => new Option(text, value)));
    $(id).closest("label").hidden = options.length < least;
  };
  for (const name of ["model", "task", "seed"]) {
    const values = [...new Set(groups.map((group) => String(group[name])))];
    choose(`by-${name}`, "all", values.map((value) => [value, value]));
  }
  const named = losses.map((loss) => [loss, labels[loss]]);
  const judged = data.exact.some((flags) => /[01]/.test(flags)) ? named : [];
  choose("by-right", "any loss or none", judged, 1);
  choose("by-wrong", "any loss or none", judged, 1);
  $("swap").hidden = judged.length === 0;
  const letters = [...new Set(data.category.join(""))].filter((letter) => letter !== "-").sort();
  choose("by-category", "any", letters.map((letter) => [examples.named(letter), examples.written(letter)]));
  choose("by-loss", "any loss", letters.length > 1 ? named : []);
  for (const { name, parts } of examples.splits) {
    const options = element("optgroup");
    options.label = name;
    options.append(...parts.map((part) => new Option(`${name}: ${part}`, `${name}=${part}`)));
    $("by-slice").append(options);
  }
  $("by-slice").prepend(new Option("all", "", true, true));
  $("by-slice").closest("label").hidden = examples.splits.length === 0;

  const lowered = [];
  const matching = (words, wanted) => {
    if (!lowered.length) for (const text of texts) lowered.push(text.toLowerCase());
    const found = new Uint8Array(texts.length);
    lowered.forEach((text, number) => { found[number] = text.includes(words) ? 1 : 0; });
    const prompt = wanted !== "completion", completion = wanted !== "prompt";
    return (row) => {
      if (prompt && (found[data.prompt[row]] || found[data.target[row]] || data.uid[row].toLowerCase() === words)) return true;
      if (completion) for (let one = start[row]; one < start[row + 1]; one += 1) if (found[data.answers[one]]) return true;
      return false;
    };
  };
  const inCategory = (letter, loss) => loss ? (row) => examples.category(row, loss) === letter
    : (row) => data.category[row].includes(letter);

  // What the address says, in the controls; what a control does not know is left out.
  const restore = () => {
    for (const key of KEYS) {
      control(key).value = state.get(key);
      if (control(key).selectedIndex === -1) control(key).value = "";
    }
    $("differing").checked = state.get("differ") === "1";
  };
  const keep = () => {
    for (const key of KEYS) state.set(key, control(key).value);
    state.set("differ", $("differing").checked ? "1" : "");
  };
  const read = () => {
    const chosen = Object.fromEntries(KEYS.map((key) => [key, control(key).value]));
    const inGroup = groups.map((group) => ["model", "task", "seed"].every((name) => !chosen[name] || String(group[name]) === chosen[name])
      && ["right", "wrong", "loss"].every((name) => !chosen[name] || group.losses.includes(chosen[name])));
    const tests = [(row) => inGroup[data.group[row]]];
    if ($("differing").checked) tests.push((row) => data.differing[row] === 1);
    if (chosen.right) tests.push((row) => examples.exact(row, chosen.right) === "1");
    if (chosen.wrong) tests.push((row) => examples.exact(row, chosen.wrong) === "0");
    const letter = letters.find((each) => examples.named(each) === chosen.category);
    if (letter) tests.push(inCategory(letter, chosen.loss));
    const split = examples.splits.find(({ name }) => chosen.slice.startsWith(`${name}=`));
    if (split) tests.push((row) => split.of(row) === chosen.slice.slice(split.name.length + 1));
    const words = chosen.search.trim().toLowerCase();
    if (words) tests.push(matching(words, chosen.where));
    return { chosen, inGroup, test: (row) => tests.every((each) => each(row)) };
  };
  return { restore, keep, read };
};
