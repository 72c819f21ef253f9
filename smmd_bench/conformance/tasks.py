"""The checks of a task."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import get_args

import numpy as np
import pandas as pd

from ..contracts import (
    Answer,
    Completion,
    Example,
    Metric,
    Modality,
    Split,
    Task,
    first_number,
    last_number,
)
from ..decoding.decode import completions_frame
from ..results.summary import IDENTITY
from ..scoring.decoding_rules import RULES, columns_of
from ..scoring.score import COMPLETION_COLUMNS, SCORE_COLUMNS, reads_numbers, score_frame
from .checks import Finding, fail, require, run_checks
from .task_data import TaskData, content, fingerprints, fingerprints_elsewhere

_RESERVED = frozenset({*COMPLETION_COLUMNS, *SCORE_COLUMNS, *IDENTITY, *columns_of(RULES)})
_STRANGE = ("", " ", "####", "nan", "inf", "1/0", "-", "\u0663", "9" * 5000, "1e999", "1:2:3", "[")
_MEASURED = 300
_RESAMPLES = 4
_SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "blank lines before it": lambda text: f"\n\n \n{text}",
    "a byte-order mark before it": lambda text: f"\ufeff{text}",
    "lines that end in \\r\\n": lambda text: f"{text}\n".replace("\n", "\r\n"),
    "non-breaking spaces": lambda text: text.replace(" ", "\u00a0"),
    "an end-of-text token": lambda text: f"{text}<|im_end|>",
}


def task_findings(task: Task) -> list[Finding]:
    """Every check of a task; its data are those that are here."""
    data = TaskData(task)
    found = run_checks(_TASK_CHECKS, data)
    if found[-1].state == "passed":
        return [*found, *run_checks(_EXAMPLE_CHECKS, data)]
    return [*found, Finding(", ".join(_EXAMPLE_CHECKS), "unchecked", "they need the examples")]


def _contract(data: TaskData) -> None:
    """It has what Task asks for, and sizes of its splits."""
    task = data.task
    require(isinstance(task, Task), "it lacks an attribute or method of Task")
    require(task.modality in Modality, f"modality is {task.modality!r}, not one of Modality")
    require(task.max_new_tokens > 0, f"max_new_tokens is {task.max_new_tokens}, not > 0")
    unknown = {*task.paper_sizes} - {*get_args(Split)}
    require(not unknown, f"paper_sizes has unknown splits: {', '.join(map(str, unknown))}")
    require(len(data.splits) > 0, "paper_sizes gives no split any example")
    licence = str(getattr(task, "licence", "") or "").strip()
    require(bool(licence), 'the data have no licence: add `licence: ClassVar[str] = "..."`')


def _strange(data: TaskData) -> None:
    """Strange completions raise nothing, and an empty one has no answer."""
    for text in _STRANGE:
        found = data.task.parse(text)
        fits = found is None or isinstance(found, Answer)
        require(fits, f"parse({text[:20]!r}) gives {found!r}: neither an Answer nor None")
    require(data.task.parse("") is None, "parse('') gives an answer: give None if there is none")


def _examples(data: TaskData) -> None:
    """Every split has its examples, each with a prompt, a target and an id of its own."""
    for split, found in data.examples.items():
        asked, there = data.asked[split], len(found)
        enough = there == asked or (there > 0 and not data.made_here)
        require(enough, f"{split} has {there:,} of {asked:,} examples: lower paper_sizes")
        wrong = [e for e in found if not (isinstance(e, Example) and e.prompt and e.target)]
        require(not wrong, f"{split} has an example without prompt or target")
    uid, most = Counter(e.uid for e in data.all_examples).most_common(1)[0]
    require(most == 1, f"the uid {uid!r} stands {most} times")


def _splits(data: TaskData) -> None:
    """No question is in two splits, and hardly any twice in one."""
    asked = {s: {content(e): e.uid for e in found} for s, found in data.examples.items()}
    for one, other in combinations(asked, 2):
        for key in asked[one].keys() & asked[other].keys():
            fail(f"{asked[one][key]} of {one} asks the same as {asked[other][key]} of {other}")
    for split, found in data.examples.items():
        n, different = len(found), len(asked[split])
        require(2 * different >= n, f"{n:,} examples of {split} are {different:,} questions")


def _seeds(data: TaskData) -> None:
    """Identity and examples depend on the seed, or neither; fewer examples are the first ones."""
    here, other = (fingerprints(data.task, data.few, seed) for seed in (0, 1))
    for split, few in data.few.items():
        changed = [one != two for one, two in zip(here[split], other[split], strict=True)]
        one = "the examples" if changed[0] else "identity()"
        require(changed[0] == changed[1], f"of {split} only {one} depend on the seed")
        n = max(1, few // 2)
        same = list(data.task.examples(split, 0, n)) == data.examples[split][:n]
        require(same, f"the first {n} examples of {split} depend on how many are asked for")


def _reproducible(data: TaskData) -> None:
    """Another process with an empty cache makes the same examples and identity."""
    here, again = (fingerprints(data.task, data.few) for _ in range(2))
    require(here == again, "examples or identity() change from call to call")
    there = fingerprints_elsewhere(data)
    for split, found in here.items():
        same = found == there[split]
        require(same, f"examples or identity() of {split} are different in another process")


def _answers(data: TaskData) -> None:
    """The target, read as a completion, gives the answer."""
    numbers = reads_numbers(data.task)
    for example in data.all_examples:
        found, wanted = data.task.parse(example.target), example.answer
        what = f"parse({example.target[-40:]!r}) of {example.uid}"
        require(found == wanted, f"{what} gives {found}, and its answer is {wanted}")
        require(not numbers or wanted is not None, f"{example.uid} has no answer for the metrics")


def _answer_starts(data: TaskData) -> None:
    """The final answer begins at answer_start, after any rationale."""
    for example in data.all_examples:
        start, target = example.answer_start, example.target
        inside = 0 <= start < len(target)
        require(inside, f"answer_start of {example.uid} is {start}, outside its target")
        value = None if example.answer is None else example.answer.value
        fits = value in (None, first_number(target[start:])) or value != last_number(target)
        require(fits, f"at answer_start of {example.uid} another number than its answer begins")


def _invisible(data: TaskData) -> None:
    """Blank lines, line ends, non-breaking spaces and the like change no score."""
    examples, targets = _tested(data)
    plain = _scored(data.task, examples, targets)
    read = {"parsed", "valid", "exact", *data.task.metrics()[0].columns} & {*plain.columns}
    for what, spell in _SPELLINGS.items():
        found = _scored(data.task, examples, [spell(text) for text in targets])
        for name in sorted(read):
            same = (found[name] == plain[name]) | (found[name].isna() & plain[name].isna())
            at = int(same.argmin())
            spelt = f"{what} of {examples[at].uid} change `{name}` from {plain[name][at]} to"
            require(bool(same.all()), f"{spelt} {found[name][at]}: parse plain_text(completion)")


def _attributes(data: TaskData) -> None:
    """Attributes are the same for every example, of one type, with names of their own."""
    first = {name: type(value) for name, value in data.all_examples[0].attributes.items()}
    for name, kind in first.items():
        require(name not in _RESERVED, f"the attribute {name} is a column of the results")
        require(kind in (str, int, float), f"the attribute {name} is no text, integer or float")
    for example in data.all_examples:
        mine = {name: type(value) for name, value in example.attributes.items()}
        require(mine == first, f"{example.uid} has other attributes than the first example")


def _images(data: TaskData) -> None:
    """Every picture can be read; a text task has none."""
    from PIL import Image

    pictured = data.task.modality is Modality.VISION
    for example in data.all_examples:
        require(pictured or not example.images, "it has pictures, and its modality is text")
        require(bool(example.images) or not pictured, f"{example.uid} has no picture")
        for path in example.images:
            with Image.open(path) as image:
                image.load()


def _metrics(data: TaskData) -> None:
    """Metrics are bounded, best for right answers, and vectorised."""
    metrics = data.task.metrics()
    names = [metric.name for metric in metrics]
    require(len(set(names)) == len(names) > 0, f"metrics() has none, or two of a name: {names}")
    examples, targets = _tested(data)
    texts = {"right": targets, "wrong": [*targets[1:], targets[0]], "empty": [""] * len(targets)}
    cases = {name: _scored(data.task, examples, text) for name, text in texts.items()}
    for metric in metrics:
        require(isinstance(metric, Metric), f"{metric!r} lacks an attribute of Metric")
        lacking = {*metric.columns, *([metric.subset] if metric.subset else [])}
        lacking -= {*cases["right"].columns}
        require(not lacking, f"{metric.name} needs the column {', '.join(sorted(lacking))}")
        _check_bounds(metric, {name: _value(metric, frame) for name, frame in cases.items()})
        _check_axis(metric, cases["wrong"])
    first = _value(metrics[0], cases["right"])
    require(math.isfinite(first), f"{names[0]} has no value for right answers, and it selects")


_TASK_CHECKS = {"contract": _contract, "parse": _strange, "examples": _examples}
_EXAMPLE_CHECKS: dict[str, Callable[[TaskData], None]] = {
    "splits": _splits,
    "seeds": _seeds,
    "reproducible": _reproducible,
    "parse(target)": _answers,
    "answer_start": _answer_starts,
    "invisible characters": _invisible,
    "attributes": _attributes,
    "images": _images,
    "metrics": _metrics,
}
"""Those that look at examples, which must be here."""


def _tested(data: TaskData) -> tuple[list[Example], list[str]]:
    """Examples of the last split, the test if there is one, and their targets."""
    examples = data.examples[data.splits[-1]][:_MEASURED]
    return examples, [example.target for example in examples]


def _scored(task: Task, examples: Sequence[Example], texts: Sequence[str]) -> pd.DataFrame:
    """The scores that a cell with these completions would have."""
    answers = [Completion(text, (0,), "stop") for text in texts]
    return score_frame(task, completions_frame(examples, answers, [1] * len(answers)))


def _check_bounds(metric: Metric, values: dict[str, float]) -> None:
    for name, value in values.items():
        fits = "(%)" not in metric.label or math.isnan(value) or -1e-9 <= value <= 100 + 1e-9
        fits = fits and not math.isinf(value)
        require(fits, f"{metric.name} is {value:g} {metric.label} for {name} answers")
    right, wrong = values["right"], values["wrong"]
    better = wrong > right + 1e-9 if metric.better == "higher" else wrong < right - 1e-9
    what = f"{wrong:g} for wrong answers, {right:g} for right ones, and {metric.better} is better"
    require(not better, f"{metric.name} is {what}")


def _check_axis(metric: Metric, frame: pd.DataFrame) -> None:
    """Several resamples at once, along either axis, against one after the other."""
    columns = _columns(metric, frame)
    if not (n := len(columns[0])):
        return
    rows = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))  # [R, n]
    loop = [float(metric.statistic(*(column[at] for column in columns))) for at in rows]
    for axis in (-1, 0):
        given = [column[rows] if axis else column[rows].T for column in columns]
        found = np.asarray(metric.statistic(*given, axis=axis))
        same = found.shape == (_RESAMPLES,) and np.allclose(found, loop, equal_nan=True)
        require(bool(same), f"{metric.name}.statistic differs along axis={axis} of resamples")


def _columns(metric: Metric, frame: pd.DataFrame) -> list[np.ndarray]:
    frame = frame if metric.subset is None else frame[frame[metric.subset]]
    return [frame[name].to_numpy(np.float64) for name in metric.columns]


def _value(metric: Metric, frame: pd.DataFrame) -> float:
    columns = _columns(metric, frame)
    return float(metric.statistic(*columns)) if len(columns[0]) else math.nan
