"""The checks of a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

from ..contracts import Answer, Example, Modality, Split, Task, first_number, last_number
from ..plugin_system.registry import plugin_files
from ..results.frames import IDENTITY
from ..scoring.score import COMPLETION_COLUMNS, SCORE_COLUMNS, reads_numbers
from ..storage.addresses import address
from .checks import Finding, UncheckedError, checked, require
from .fingerprints import content, elsewhere, fingerprint, fingerprints
from .metrics import check_metrics, check_spellings
from .task_data import TaskData

_RESERVED = frozenset({*COMPLETION_COLUMNS, *SCORE_COLUMNS, *IDENTITY})
_STRANGE = (
    "", " ", "\n", "####", "nan", "inf", "1/0", "-", "\u0663", "\u2212", "9" * 5000, "1e999",
    "no number at all", "1:2:3", "[", "\\frac{1}{0}",
)  # fmt: skip


def task_findings(task: Task) -> list[Finding]:
    """Everything that is checked of a task; the data are those that are here."""
    suite = _Suite(task, TaskData(task))
    without_data: dict[str, Callable[[], str]] = {
        "contract": suite.contract,
        "licence and source": suite.provenance,
        "parse": suite.strange,
    }
    with_data: dict[str, Callable[[], str]] = {
        "examples": suite.examples,
        "ids": suite.ids,
        "splits": suite.splits,
        "repeats": suite.repeats,
        "first n": suite.prefix,
        "seeds": suite.seeds,
        "reproducible": suite.reproducible,
        "parse(target)": suite.answers,
        "answer_start": suite.answer_starts,
        "invisible characters": suite.unseen,
        "attributes": suite.attributes,
        "images": suite.images,
        "metrics": suite.metrics,
    }
    found = [checked(name, function) for name, function in without_data.items()]
    data = checked("examples", with_data.pop("examples"))
    found.append(data)
    if data.state == "passed":
        found += [checked(name, function) for name, function in with_data.items()]
    else:
        found.append(Finding(", ".join(with_data), "unchecked", "they need the examples"))
    return found


@dataclass(frozen=True)
class _Suite:
    task: Task
    data: TaskData

    def contract(self) -> str:
        """The attributes of `Task`."""
        task = self.task
        require(isinstance(task, Task), "it lacks an attribute or method of Task")
        require(task.modality in Modality, f"modality is {task.modality!r}, not one of Modality")
        require(task.max_new_tokens > 0, f"max_new_tokens is {task.max_new_tokens}, not > 0")
        unknown = {*task.paper_sizes} - {*get_args(Split)}
        require(not unknown, f"paper_sizes has unknown splits: {', '.join(map(str, unknown))}")
        require(len(self.data.splits) > 0, "paper_sizes gives no split any example")
        lacking = [split for split in get_args(Split) if split not in self.data.splits]
        note = f"; it has no {' and no '.join(lacking)} split" if lacking else ""
        return f"{task.modality}, at most {task.max_new_tokens} new tokens{note}"

    def provenance(self) -> str:
        """Where the data come from, and what may be done with them."""
        licence = str(getattr(self.task, "licence", "") or "").strip()
        require(bool(licence), 'the data have no licence: add `licence: ClassVar[str] = "..."`')
        names = [str(source.name) for source in getattr(self.task, "sources", ())]
        if not names:
            identity = self.task.identity(self.data.splits[0], 0)
            require(
                bool({"generator", "source", "digest"} & {*identity}),
                "identity() names no `generator`, `source` or `digest`, and there are no `sources`",
            )
            made = "generator" in identity
            return f"{licence}; {'made here' if made else identity.get('source', 'files')}"
        return f"{licence}; from {', '.join(names)}"

    def strange(self) -> str:
        """Texts that a model may well write."""
        for text in _STRANGE:
            found = self.task.parse(text)
            require(
                found is None or isinstance(found, Answer),
                f"parse({text[:20]!r}) gives {found!r}: neither an Answer nor None",
            )
        require(self.task.parse("") is None, "parse('') is an answer: give None for what is none")
        return f"{len(_STRANGE)} strange completions raise nothing, and an empty one is no answer"

    def examples(self) -> str:
        """That they can be had at all."""
        for split, found in self.data.examples.items():
            require(len(found) > 0, f"the {split} split is empty, and paper_sizes says it is not")
            wrong = [e for e in found if not (isinstance(e, Example) and e.prompt and e.target)]
            require(not wrong, f"{split} has an example without prompt or target")
        return f"{self.data.counts()}"

    def ids(self) -> str:
        """Unique over all splits."""
        counts = Counter(e.uid for found in self.data.examples.values() for e in found)
        uid, most = counts.most_common(1)[0]
        require(most == 1, f"the uid {uid!r} stands {most} times")
        return f"{len(counts):,} different ones"

    def splits(self) -> str:
        """No question of one is in another."""
        asked: dict[Split, dict[Hashable, str]] = {
            split: {content(e): e.uid for e in found} for split, found in self.data.examples.items()
        }
        for one, other in combinations(asked, 2):
            shared = asked[one].keys() & asked[other].keys()
            if shared:
                first = next(key for key in asked[one] if key in shared)
                require(
                    False,
                    f"{one} and {other} share {len(shared)} of their questions, such as "
                    f"{asked[one][first]} and {asked[other][first]}",
                )
        if len(asked) < 2:
            raise UncheckedError(f"there is only the {''.join(asked)} split")
        return f"no prompt (with its pictures) is in two splits, of {self.data.counts()}"

    def repeats(self) -> str:
        """Intervals and tests count examples: most of them must be questions of their own."""
        said = []
        for split, found in self.data.examples.items():
            different = len({content(e) for e in found})
            require(
                2 * different >= len(found),
                f"the {len(found):,} examples of {split} are {different:,} different questions: "
                "intervals and p-values would count each repetition as one more",
            )
            said.append(f"{different:,} of {len(found):,} {split}")
        return f"different questions: {', '.join(said)}"

    def prefix(self) -> str:
        """A shorter run sees a beginning of what a longer one sees."""
        for split, n in self.data.few.items():
            short = list(self.task.examples(split, 0, max(1, n // 2)))
            require(
                short == self.data.examples[split][: len(short)] and bool(short),
                f"the first {max(1, n // 2)} examples of {split} depend on how many are asked for",
            )
        return "the first n examples do not depend on n"

    def seeds(self) -> str:
        """Another seed gives other examples, or the identity says that it draws nothing."""
        here, other = (fingerprints(self.task, self.data.few, seed) for seed in (0, 1))
        same = []
        for split in here:
            (examples, identity), (examples_1, identity_1) = here[split], other[split]
            if identity == identity_1:
                require(
                    examples == examples_1,
                    f"the examples of {split} depend on the seed, and identity() does not: results "
                    "of another seed would be taken for these",
                )
                same.append(split)
            else:
                require(
                    examples != examples_1,
                    f"identity() of {split} depends on the seed, and the first examples do not",
                )
        return (
            "another seed gives other examples"
            if not same
            else f"the seed draws nothing in {', '.join(same)}, and identity() says so"
        )

    def reproducible(self) -> str:
        """The same in another process, with another hash seed and an empty cache."""
        few = self.data.few
        for split in few:
            require(
                address(self.task.identity(split, 0)) == address(self.task.identity(split, 0)),
                f"identity() of {split} is another at every call",
            )
        there = elsewhere(self.data.spec, plugin_files(), few, 0, made_here=self.data.made_here)
        for split, n in few.items():
            examples, identity = there[split]
            require(
                examples == fingerprint(self.task.examples(split, 0, n)),
                f"the examples of {split} are others in another process",
            )
            require(
                identity == address(self.task.identity(split, 0)),
                f"identity() of {split} is another in another process",
            )
        return f"the same in another process, of {', '.join(f'{n} {s}' for s, n in few.items())}"

    def answers(self) -> str:
        """The target, read as a completion, gives the answer."""
        numbers, count = reads_numbers(self.task), 0
        for example in self._all():
            found = self.task.parse(example.target)
            require(
                found == example.answer,
                f"parse({example.target[-40:]!r}) of {example.uid} gives {_spell(found)}, and its "
                f"answer is {_spell(example.answer)}",
            )
            require(
                not numbers or example.answer is not None,
                f"{example.uid} has no answer, and the metrics need one",
            )
            count += 1
        what = "gives the answer back" if numbers else "is no number, nor is any answer"
        return f"{what}, of {count:,} examples"

    def answer_starts(self) -> str:
        """The final answer begins there: a rationale's numbers are not taken for the answer's."""
        behind = 0
        for example in self._all():
            start, target = example.answer_start, example.target
            require(
                0 <= start < len(target),
                f"answer_start of {example.uid} is {start}, and its target has {len(target)} "
                "characters",
            )
            value = None if example.answer is None else example.answer.value
            require(
                value in (None, first_number(target[start:])) or value != last_number(target),
                f"the target of {example.uid} ends in its answer, and from answer_start on it "
                f"begins with another number, {first_number(target[start:])}: give answer_start "
                "the place where the answer begins in the target",
            )
            behind += start > 0
        return f"behind a rationale in {behind:,}" if behind else "targets are the answers"

    def unseen(self) -> str:
        """Blank lines, line ends, non-breaking spaces and the like change no score."""
        return check_spellings(self.task, self._measured())

    def attributes(self) -> str:
        """Columns of a frame: the same of every example, of one type, under names of their own."""
        types: dict[str, type] | None = None
        for example in self._all():
            mine = {name: type(value) for name, value in example.attributes.items()}
            taken = sorted({*mine} & _RESERVED)
            require(not taken, f"the attribute {', '.join(taken)} is a column of the results")
            odd = [n for n, t in mine.items() if t not in (str, int, float)]
            require(not odd, f"the attribute {', '.join(odd)} is no text, integer or float")
            types = mine if types is None else types
            require(types == mine, f"{example.uid} has other attributes than the first example")
        return ", ".join(types or {}) or "none"

    def images(self) -> str:
        """That Pillow reads each, or that there are none."""
        if self.task.modality is Modality.TEXT:
            extra = [e.uid for e in self._all() if e.images]
            require(not extra, "it has pictures, and its modality is text")
            return "none, and its modality is text"
        from PIL import Image

        paths = []
        for example in self._all():
            require(bool(example.images), f"{example.uid} has no picture")
            paths += [*example.images]
        sizes: Counter[tuple[int, int]] = Counter()
        for path in dict.fromkeys(paths):
            with Image.open(path) as image:
                image.load()
                sizes[image.size] += 1
        (width, height), _ = sizes.most_common(1)[0]
        return f"{sum(sizes.values())} can be read, mostly of {width} x {height} pixels"

    def metrics(self) -> str:
        """On right, wrong and empty completions."""
        return check_metrics(self.task, self._measured())

    def _measured(self) -> list[Example]:
        split = "test" if "test" in self.data.examples else self.data.splits[-1]
        return self.data.examples[split][:300]

    def _all(self) -> Iterator[Example]:
        for found in self.data.examples.values():
            yield from found


def _spell(answer: Answer | None) -> str:
    return "none" if answer is None else str(answer.value)
