"""What the rows of a file say of their examples, held against these: prompts and targets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os.path import commonprefix

from ...contracts import Example, Task
from .read import Prediction
from .rows import shown

_ROLE = re.compile(r"\A\s*(?:assistant|model)\s*\n", re.IGNORECASE)
"""What a chat template leaves between a prompt and its completion."""
_MARKER = re.compile(r"<[^<>]+>|\[[A-Z]+\]")
"""Begin and pad tokens."""


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
    """The predictions without the prompt that all of them repeat, and what to say of it.

    Before it all have the same words, such as shots; others would be answers of a model in a loop.
    """
    cut = {
        at: parts
        for at, prediction in found.items()
        if (parts := _parts(prediction, examples[at].prompt)) is not None
    }
    if len(cut) < len(found) or len({before for before, _ in cut.values()}) != 1:
        said = f"{len(cut):,} completions repeat their prompt and stay as they are"
        return found, [said] if cut else []
    shorter = {at: replace(prediction, completion=cut[at][1]) for at, prediction in found.items()}
    return shorter, ["each repeats its prompt, which is taken off"]


def _parts(prediction: Prediction, prompt: str) -> tuple[str, str] | None:
    """What stands before and after the prompt in a completion, or after the longest of the row's
    own that it begins with, whatever the white space; None: it repeats none."""
    packed, ours = _packed(prediction.completion), _packed(prompt)
    begun = [own for own in map(_packed, prediction.prompts.values()) if packed.startswith(own)]
    before, letters = "", max(map(len, begun), default=0)
    if (at := packed.find(ours)) >= 0 and at + len(ours) > letters:
        before, letters = _MARKER.sub("", packed[:at]), at + len(ours)
    repeated = re.compile(rf"(?:\s*\S){{{letters}}}").match(prediction.completion)
    if not letters or repeated is None:
        return None
    return before, _ROLE.sub("", prediction.completion[repeated.end() :])


def _packed(text: str) -> str:
    return "".join(text.split())


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
