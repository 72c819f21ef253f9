"use strict";
// The completions as `packing.py` packed them, and what is asked of a row.
const readExamples = async () => {
  const unpack = async () => {
    const source = $("data");
    if (source.type === "application/json") return JSON.parse(source.textContent);
    if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to decompress them");
    const bytes = Uint8Array.from(atob(source.textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };
  const data = await unpack();
  const { texts, groups, labels } = data, total = data.group.length;
  const losses = [...new Set(groups.flatMap((group) => group.losses))];
  const place = Object.fromEntries(losses.map((loss) => [loss, groups.map((group) => group.losses.indexOf(loss))]));
  const start = new Uint32Array(total + 1);
  for (let row = 0; row < total; row += 1) start[row + 1] = start[row] + data.exact[row].length;
  const group = (row) => groups[data.group[row]];
  const at = (row, loss) => place[loss][data.group[row]];
  const of = (column, none) => (row, loss) => at(row, loss) < 0 ? none : column[start[row] + at(row, loss)];
  const flag = (column) => (row, loss) => at(row, loss) < 0 ? "" : column[row][at(row, loss)];
  const answered = of(data.answers, -1);
  const named = (letter) => data.categories[letter.charCodeAt(0) - 97];
  const invalid = String.fromCharCode(97 + data.categories.indexOf("invalid"));

  // An attribute splits rows by its values; by five ranges where a number has many.
  const MANY = 24, RANGES = 5;
  const splitOf = (name) => {
    const values = data.attributes[name], found = [...new Set(values)].filter((value) => value !== null && value !== undefined);
    if (found.length < 2) return null;
    const numeric = found.every((value) => typeof value === "number");
    if (numeric) found.sort((a, b) => a - b);
    if (found.length <= MANY) return { name, parts: found.map(String), of: (row) => values[row] === null ? null : String(values[row]) };
    if (!numeric) return null;
    const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
    const edges = [...new Set(Array.from({ length: RANGES }, (_, part) => sorted[Math.floor(sorted.length * part / RANGES)]))];
    const parts = edges.map((edge, part) => part + 1 < edges.length ? `${edge} to below ${edges[part + 1]}` : `${edge} and more`);
    return { name, parts, of: (row) => values[row] === null ? null : parts[edges.findLastIndex((edge) => edge <= values[row])] };
  };
  return {
    data, texts, groups, labels, total, losses, start, group, at, named, invalid,
    prompt: (row) => texts[data.prompt[row]],
    target: (row) => texts[data.target[row]],
    uid: (row) => data.uid[row],
    attribute: (row, name) => data.attributes[name][row],
    answer: (row, loss) => answered(row, loss) < 0 ? null : texts[answered(row, loss)],
    error: of(data.errors, null),
    exact: flag(data.exact),
    category: flag(data.category),
    written: (letter) => named(letter).replace("scale_x10^", "scale ×10^").replaceAll("_", " ").replace("^-", "^−"),
    splits: Object.keys(data.attributes).map(splitOf).filter(Boolean),
  };
};
