"""The checks of a task."""

from collections import Counter
from collections.abc import Hashable
from itertools import combinations
from typing import get_args

from ..contracts import Answer, Example, Modality, Split, Task, first_number, last_number
from ..results.summary import IDENTITY
from ..scoring.decoding_rules import RULES, columns_of
from ..scoring.score import COMPLETION_COLUMNS, SCORE_COLUMNS, reads_numbers
from .checks import Checks, Finding, UncheckedError, fail, require
from .task_data import (
    TaskData,
    check_metrics,
    check_spellings,
    content,
    fingerprints,
    fingerprints_elsewhere,
)

_RESERVED = frozenset({*COMPLETION_COLUMNS, *SCORE_COLUMNS, *IDENTITY, *columns_of(RULES)})
_STRANGE = (
    "", " ", "\n", "####", "nan", "inf", "1/0", "-", "\u0663", "\u2212", "9" * 5000, "1e999",
    "no number at all", "1:2:3", "[", "\\frac{1}{0}",
)  # fmt: skip
_MEASURED = 300
_TASK_CHECKS = Checks()
_EXAMPLE_CHECKS = Checks()
"""Those that look at examples, which must be here."""


def task_findings(task: Task) -> list[Finding]:
    """Every check of a task; its data are those that are here."""
    data = TaskData(task)
    found = _TASK_CHECKS.run(data)
    if found[-1].state == "passed":
        return [*found, *_EXAMPLE_CHECKS.run(data)]
    names = ", ".join(_EXAMPLE_CHECKS)
    return [*found, Finding(names, "unchecked", "they need the examples")]


@_TASK_CHECKS.add("contract")
def _contract(data: TaskData) -> str:
    task = data.task
    require(isinstance(task, Task), "it lacks an attribute or method of Task")
    require(task.modality in Modality, f"modality is {task.modality!r}, not one of Modality")
    require(task.max_new_tokens > 0, f"max_new_tokens is {task.max_new_tokens}, not > 0")
    unknown = {*task.paper_sizes} - {*get_args(Split)}
    require(not unknown, f"paper_sizes has unknown splits: {', '.join(map(str, unknown))}")
    require(len(data.splits) > 0, "paper_sizes gives no split any example")
    lacking = [split for split in get_args(Split) if split not in data.splits]
    note = f"; it has no {' and no '.join(lacking)} split" if lacking else ""
    return f"{task.modality}, at most {task.max_new_tokens} new tokens{note}"


@_TASK_CHECKS.add("licence and source")
def _licence(data: TaskData) -> str:
    licence = str(getattr(data.task, "licence", "") or "").strip()
    require(bool(licence), 'the data have no licence: add `licence: ClassVar[str] = "..."`')
    if names := [str(source.name) for source in getattr(data.task, "sources", ())]:
        return f"{licence}; from {', '.join(names)}"
    identity = data.task.identity(data.splits[0], 0)
    require(
        bool({"generator", "source", "digest"} & {*identity}),
        "identity() names no `generator`, `source` or `digest`, and there are no `sources`",
    )
    source = "made here" if "generator" in identity else identity.get("source", "files")
    return f"{licence}; {source}"


@_TASK_CHECKS.add("parse")
def _strange(data: TaskData) -> str:
    """Texts that a model may well write."""
    for text in _STRANGE:
        found = data.task.parse(text)
        require(
            found is None or isinstance(found, Answer),
            f"parse({text[:20]!r}) gives {found!r}: neither an Answer nor None",
        )
    require(data.task.parse("") is None, "parse('') gives an answer: give None if there is none")
    return f"{len(_STRANGE)} strange completions raise nothing, and an empty one has no answer"


@_TASK_CHECKS.add("examples")
def _examples(data: TaskData) -> str:
    for split, found in data.examples.items():
        require(len(found) > 0, f"the {split} split is empty, and paper_sizes says it is not")
        wrong = [e for e in found if not (isinstance(e, Example) and e.prompt and e.target)]
        require(not wrong, f"{split} has an example without prompt or target")
    return data.counts()


@_EXAMPLE_CHECKS.add("sizes")
def _sizes(data: TaskData) -> str:
    """Every split has the examples that paper_sizes promises."""
    said = []
    for split, (there, asked) in data.filled.items():
        if there < asked and data.made_here:
            fail(
                f"{split} has {there:,} of the {asked:,} examples that were asked for: lower "
                f"paper_sizes[{split!r}], or make more"
            )
        if there < asked:
            raise UncheckedError(f"the copy here has {there:,} of the {asked:,} of {split}")
        said.append(f"{there:,} {split}")
    return f"there are {', '.join(said)}, as many as were asked for"


@_EXAMPLE_CHECKS.add("ids")
def _ids(data: TaskData) -> str:
    counts = Counter(e.uid for e in data.all_examples())
    uid, most = counts.most_common(1)[0]
    require(most == 1, f"the uid {uid!r} stands {most} times")
    return f"{len(counts):,} different ones"


@_EXAMPLE_CHECKS.add("splits")
def _splits(data: TaskData) -> str:
    """No question of one is in another."""
    asked: dict[Split, dict[Hashable, str]] = {
        split: {content(e): e.uid for e in found} for split, found in data.examples.items()
    }
    for one, other in combinations(asked, 2):
        shared = [key for key in asked[one] if key in asked[other]]
        if shared:
            fail(
                f"{one} and {other} share {len(shared)} of their questions, such as "
                f"{asked[one][shared[0]]} and {asked[other][shared[0]]}"
            )
    if len(asked) < 2:
        raise UncheckedError(f"there is only the {''.join(asked)} split")
    return f"no prompt (with its pictures) is in two splits, of {data.counts()}"


@_EXAMPLE_CHECKS.add("repeats")
def _repeats(data: TaskData) -> str:
    """Intervals and tests count examples, so most of them must be different questions."""
    said = []
    for split, found in data.examples.items():
        different = len({content(e) for e in found})
        require(
            2 * different >= len(found),
            f"the {len(found):,} examples of {split} are {different:,} different questions: "
            "intervals and p-values would count each repetition as one more",
        )
        said.append(f"{different:,} of {len(found):,} {split}")
    return f"different questions: {', '.join(said)}"


@_EXAMPLE_CHECKS.add("first n")
def _prefix(data: TaskData) -> str:
    """A shorter run sees a beginning of what a longer one sees."""
    for split, few in data.few.items():
        n = max(1, few // 2)
        require(
            list(data.task.examples(split, 0, n)) == data.examples[split][:n],
            f"the first {n} examples of {split} depend on how many are asked for",
        )
    return "the first n examples do not depend on n"


@_EXAMPLE_CHECKS.add("seeds")
def _seeds(data: TaskData) -> str:
    """Another seed gives other examples, or the identity says that it draws nothing."""
    here, other = (fingerprints(data.task, data.few, seed) for seed in (0, 1))
    same = []
    for split, (examples, identity) in here.items():
        same_examples, same_identity = examples == other[split][0], identity == other[split][1]
        require(
            same_examples or not same_identity,
            f"the examples of {split} depend on the seed, and identity() does not: results of "
            "another seed would be taken for these",
        )
        require(
            same_identity or not same_examples,
            f"identity() of {split} depends on the seed, and the first examples do not",
        )
        same += [split] * same_identity
    if same:
        return f"the seed draws nothing in {', '.join(same)}, and identity() says so"
    return "another seed gives other examples"


@_EXAMPLE_CHECKS.add("reproducible")
def _reproducible(data: TaskData) -> str:
    """The same in another process, with another hash seed and an empty cache."""
    here, again = (fingerprints(data.task, data.few) for _ in range(2))
    there = fingerprints_elsewhere(data)
    for split, (examples, identity) in here.items():
        where = f"of {split}"
        require(identity == again[split][1], f"identity() {where} changes from call to call")
        others, other_identity = there[split]
        require(examples == others, f"the examples {where} are different in another process")
        require(identity == other_identity, f"identity() {where} is different in another process")
    return f"the same in another process, of {', '.join(f'{n} {s}' for s, n in data.few.items())}"


@_EXAMPLE_CHECKS.add("parse(target)")
def _answers(data: TaskData) -> str:
    """The target, read as a completion, gives the answer."""
    numbers = reads_numbers(data.task)
    for example in data.all_examples():
        found = data.task.parse(example.target)
        require(
            found == example.answer,
            f"parse({example.target[-40:]!r}) of {example.uid} gives {_spell(found)}, and its "
            f"answer is {_spell(example.answer)}",
        )
        require(
            not numbers or example.answer is not None,
            f"{example.uid} has no answer, and the metrics need one",
        )
    what = "gives the answer back" if numbers else "is not a number, and neither is the answer"
    return f"{what}, of {data.counts()}"


def _spell(answer: Answer | None) -> str:
    return "none" if answer is None else str(answer.value)


@_EXAMPLE_CHECKS.add("answer_start")
def _answer_starts(data: TaskData) -> str:
    """The final answer begins there: a rationale's numbers are not taken for the answer's."""
    behind = 0
    for example in data.all_examples():
        start, target = example.answer_start, example.target
        require(
            0 <= start < len(target),
            f"answer_start of {example.uid} is {start}, in a target of {len(target)} characters",
        )
        value = None if example.answer is None else example.answer.value
        require(
            value in (None, first_number(target[start:])) or value != last_number(target),
            f"the target of {example.uid} ends in its answer, and from answer_start on it begins "
            f"with another number, {first_number(target[start:])}: set answer_start to the place "
            "where the answer begins in the target",
        )
        behind += start > 0
    return f"after a rationale in {behind:,}" if behind else "targets are the answers"


@_EXAMPLE_CHECKS.add("invisible characters")
def _invisible(data: TaskData) -> str:
    """Blank lines, line ends, non-breaking spaces and the like change no score."""
    return check_spellings(data.task, data.tested(_MEASURED))


@_EXAMPLE_CHECKS.add("attributes")
def _attributes(data: TaskData) -> str:
    """Columns of a frame: the same for every example, of one type, with names of their own."""
    types: dict[str, type] | None = None
    for example in data.all_examples():
        mine = {name: type(value) for name, value in example.attributes.items()}
        taken = sorted({*mine} & _RESERVED)
        require(not taken, f"the attribute {', '.join(taken)} is a column of the results")
        odd = [name for name, kind in mine.items() if kind not in (str, int, float)]
        require(not odd, f"the attribute {', '.join(odd)} is not a text, integer or float")
        types = mine if types is None else types
        require(types == mine, f"{example.uid} has other attributes than the first example")
    return ", ".join(types or {}) or "none"


@_EXAMPLE_CHECKS.add("images")
def _images(data: TaskData) -> str:
    """Pillow reads each of them; a text task has none."""
    from PIL import Image

    pictured = data.task.modality is Modality.VISION
    for example in data.all_examples():
        require(pictured or not example.images, "it has pictures, and its modality is text")
        require(bool(example.images) or not pictured, f"{example.uid} has no picture")
    if not pictured:
        return "none, and its modality is text"
    sizes: Counter[tuple[int, int]] = Counter()
    for path in {path for example in data.all_examples() for path in example.images}:
        with Image.open(path) as image:
            image.load()
            sizes[image.size] += 1
    (width, height), _ = sizes.most_common(1)[0]
    return f"{sum(sizes.values())} can be read, mostly of {width} x {height} pixels"


@_EXAMPLE_CHECKS.add("metrics")
def _metrics(data: TaskData) -> str:
    """On right, wrong and empty completions."""
    return check_metrics(data.task, data.tested(_MEASURED))
