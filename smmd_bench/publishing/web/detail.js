"use strict";
// One example below its row: every loss's answer, its digit distributions, and the command to see more.
const makeDetail = (examples) => {
  const { data, labels, group, at } = examples;
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const SVG = "http://www.w3.org/2000/svg", WIDTH = 9, HEIGHT = 34;
  const drawn = (tag, attributes, text) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  // Ten bars; the true digit is marked by its colour and by a digit below it, the others by dots.
  const barsOf = (p, target) => {
    const best = p.indexOf(Math.max(...p)), told = (value) => value.toFixed(2);
    const says = `true digit ${target}: ${told(p[target])}; highest: ${best} with ${told(p[best])}`;
    const svg = drawn("svg", { class: "digits", viewBox: `0 0 ${10 * WIDTH} ${HEIGHT + 12}`, width: 10 * WIDTH, height: HEIGHT + 12, role: "img", "aria-label": says });
    svg.append(drawn("title", {}, says));
    p.forEach((value, digit) => {
      const height = Math.max(1, value * HEIGHT), x = digit * WIDTH;
      svg.append(drawn("rect", { x: x + 1, y: HEIGHT - height, width: WIDTH - 2, height, class: digit === target ? "true" : "other" }));
      if (digit === target || digit === best) svg.append(drawn("text", { x: x + WIDTH / 2, y: HEIGHT + 10, class: digit === target ? "true" : "other" }, String(digit)));
    });
    const cell = element("td");
    cell.append(svg, element("small", `p(${target}) = ${told(p[target])}`));
    return cell;
  };
  const probabilities = (letters, place) => [...letters.slice(10 * place, 10 * place + 10)].map((letter) => LETTERS.indexOf(letter) / 63);

  const quoted = (text) => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`;
  const commandOf = (row) => {
    const { model, task, seed } = group(row);
    return ["smmd-bench", "show", data.folder, "--model", model, "--task", task, "--seed", String(seed), "--uid", examples.uid(row)].map(quoted).join(" ");
  };
  const copied = (text, source) => {
    const button = pressed("Copy", async () => {
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
      catch { getSelection().selectAllChildren(source); button.textContent = "Selected: copy it with a key"; }
    });
    return button;
  };
  const table = (row, losses) => {
    const made = element("table"), head = element("tr"), probed = data.digits[row], targets = probed?.targets ?? [];
    const titles = ["Loss", "Answer", "|Error|", ...targets.map((target, place) => `Digit ${place + 1} of the answer: ${target}`)];
    head.append(...titles.map((title) => element("th", title)));
    for (const heading of head.children) heading.scope = "col";
    made.append(element("thead"), element("tbody"));
    made.tHead.append(head);
    for (const loss of losses) {
      if (at(row, loss) < 0) continue;
      const line = element("tr"), name = element("th", labels[loss]), flag = examples.exact(row, loss), letter = examples.category(row, loss);
      name.scope = "row";
      const answer = element("td", `${{ 1: "✓ ", 0: "✗ " }[flag] ?? ""}${examples.answer(row, loss)}`, { 1: "right", 0: "wrong" }[flag]);
      if (flag === "0" && letter !== "-") answer.append(element("small", examples.written(letter)));
      line.append(name, answer, element("td", String(examples.error(row, loss) ?? "–"), "number"));
      const letters = probed?.losses[at(row, loss)];
      line.append(...targets.map((target, place) => letters && letters.length >= 10 * place + 10 ? barsOf(probabilities(letters, place), target) : element("td", "–")));
      made.tBodies[0].append(line);
    }
    return made;
  };
  return (row, losses) => {
    const made = element("div"), command = element("code", commandOf(row), "command"), again = element("p");
    const carried = Object.keys(data.attributes).filter((name) => (examples.attribute(row, name) ?? null) !== null)
      .map((name) => `${name} ${examples.attribute(row, name)}`);
    if (carried.length) made.append(element("p", carried.join(" · "), "caption"));
    const frame = element("div", undefined, "wide");
    frame.tabIndex = 0;
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", `Answers to ${examples.uid(row)}, may scroll`);
    frame.append(table(row, losses));
    made.append(frame);
    made.append(element("p", row in data.digits
      ? "Bars: the probability of each digit 0 to 9, given the true text before it; the true digit is underlined."
      : "The page holds no digit probabilities of this example; the command shows those that the run has.", "caption"));
    again.append(command, " ", copied(command.textContent, command));
    made.append(again);
    return made;
  };
};
