"""What the rows of a file say of their examples, held against these: prompts and targets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os.path import commonprefix

from ...contracts import Example, Task
from .read import Prediction
from .rows import shown

_OPENING = re.compile(r"\s*(?:<[^<>\s]+>|\[[A-Z]+\])?")
"""Perhaps a begin token, such as `<s>`, before a prompt that a completion repeats."""


class Questions:
    """The prompts of examples, whatever their letter case and white space.

    cores: what each has beside the words that begin or end all; empty where all are the same.
    """

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = examples
        self.whole = [_plain(example.prompt) for example in examples]
        ends = self.whole, [whole[::-1] for whole in self.whole]
        before, after = (re.sub(r"\w+$", "", commonprefix(end)) for end in ends)  # noqa: RUF071
        self.cores = [w[len(before) : len(w) - len(after)].strip() for w in self.whole]

    def check(self, prediction: Prediction, at: int) -> None:
        """Raises UserError where no prompt of a row holds that of the example, or most of it."""
        core, whole, prompts = self.cores[at], self.whole[at], prediction.prompts
        asked = [_plain(text) for text in prompts.values()]
        if not core or not asked:
            return
        if any(core in one or (one in whole and 2 * len(one) >= len(core)) for one in asked):
            return
        name, text = next(iter(prompts.items()))
        raise prediction.row.error(
            f"its {name} {shown(text)} is not that of the example {self.examples[at].uid}, "
            f"{shown(self.examples[at].prompt)}: check --task, --split and --data-seed, give rows "
            f"in another order their uid, or remove the column {name} if its wording is your own."
        )

    def find(self, rows: Sequence[Prediction]) -> list[int] | None:
        """The example of each row by its prompt; None where prompts do not tell.

        Examples of one prompt and one target are as good as each other.
        """
        places: dict[str, list[int]] = {}
        for at, texts in enumerate(zip(self.whole, self.cores, strict=True)):
            for text in {*texts} - {""}:
                places.setdefault(text, []).append(at)
        found: dict[int, None] = {}
        for row in rows:
            asked = [places.get(_plain(text), []) for text in row.prompts.values()]
            known = next(filter(None, asked), [])
            answers = {(self.examples[at].target, self.examples[at].images) for at in known}
            free = next((at for at in known if at not in found), None)
            if free is None or len(answers) > 1:
                return None
            found[free] = None
        return list(found)


def check_targets(found: Mapping[int, Prediction], task: Task, examples: Sequence[Example]) -> None:
    """Another data seed or level has the same ids and positions: a target tells.

    Raises UserError where one differs, and where the task can read no target of the file.
    """
    unread: list[tuple[Prediction, str, str]] = []
    read = False
    for at, prediction in found.items():
        target = examples[at].target
        ours = task.parse(target)
        for name, texts in prediction.targets.items():
            answers = [task.parse(text) for text in texts]
            alike = any(_plain(text) == _plain(target) for text in texts) or (
                ours is not None and any(a is not None and a.value == ours.value for a in answers)
            )
            if not alike and (ours is None or any(answers)):
                raise prediction.row.error(
                    f"its {name} {shown(texts[0])} differs from the target of the example "
                    f"{examples[at].uid}, {shown(target)}: check --task, --split and --data-seed, "
                    f"or remove the column {name}."
                )
            read |= alike
            unread += [(prediction, name, texts[0])] if not alike else []
    if unread and not read:
        prediction, name, text = unread[0]
        raise prediction.row.error(
            f"the task reads no number in its {name} {shown(text)}, nor in any other of the file: "
            f"check --task, or remove the column {name}."
        )


def without_prompts(
    found: Mapping[int, Prediction], examples: Sequence[Example]
) -> tuple[Mapping[int, Prediction], list[str]]:
    """The predictions without the prompt that all of them repeat, and what to say of it."""
    rest = {
        at: _after([examples[at].prompt, *prediction.prompts.values()], prediction.completion)
        for at, prediction in found.items()
    }
    cut = {at: text for at, text in rest.items() if text is not None}
    if len(cut) < len(rest):
        said = f"{len(cut):,} completions begin with their prompt and stay as they are"
        return found, [said] if cut else []
    shorter = {at: replace(prediction, completion=cut[at]) for at, prediction in found.items()}
    return shorter, ["each begins with its prompt, which is taken off"]


def _after(prompts: Sequence[str], text: str) -> str | None:
    """What follows the longest prompt that the text begins with, whatever the white space."""
    opening = _OPENING.match(text)
    for prompt in sorted(prompts, key=len, reverse=True):
        letters = "".join(prompt.split())
        for start in (0, opening.end() if opening else 0):
            if letters and "".join(text[start:].split()).startswith(letters):
                repeated = re.compile(rf"(?:\s*\S){{{len(letters)}}}").match(text, start)
                return text[repeated.end() :] if repeated else None
    return None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
