"""The checks of a task, on the first examples of its splits."""

import hashlib
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import get_args

import numpy as np

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
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import load_plugin_file, load_task, plugin_files
from ..scoring.score import reads_numbers, score_frame
from ..scoring.statistics import metric_values
from ..storage.addresses import address
from .checks import Finding, ViolationError, require, run_checks

Examples = dict[Split, Sequence[Example]]
_MOST = {Modality.TEXT: 2000, Modality.VISION: 24}
_FEW = {Modality.TEXT: 200, Modality.VISION: 6}
"""Examples of a split that are looked at, and those that are asked for again."""
_STRANGE = ("", " ", "####", "nan", "inf", "1/0", "-", "\u0663", "9" * 5000, "1e999", "1:2:3", "[")


def task_findings(task: Task) -> list[Finding]:
    """Every check of a task; its data are those that are here."""
    examples: Examples = {}
    found = run_checks(_TASK_CHECKS, task, examples)
    if found[-1].state == "passed":
        return [*found, *run_checks(_EXAMPLE_CHECKS, task, examples)]
    return [*found, Finding(", ".join(_EXAMPLE_CHECKS), "unchecked", "they need the examples")]


def _contract(task: Task, _: Examples) -> None:
    """It has a modality, a length, sizes of its splits and a licence."""
    require(task.modality in Modality, f"modality is {task.modality!r}, not one of Modality")
    require(task.max_new_tokens > 0, f"max_new_tokens is {task.max_new_tokens}, not > 0")
    known = {*task.paper_sizes} <= {*get_args(Split)} and any(task.paper_sizes.values())
    require(known, f"paper_sizes has other splits, or none: {dict(task.paper_sizes)}")
    licence = str(getattr(task, "licence", "") or "").strip()
    require(bool(licence), 'the data have no licence: add `licence: ClassVar[str] = "..."`')


def _strange(task: Task, _: Examples) -> None:
    """Strange completions raise nothing, and an empty one has no answer."""
    for text in _STRANGE:
        found = task.parse(text)
        fits = found is None or (isinstance(found, Answer) and text != "")
        require(fits, f"parse({text[:20]!r}) gives {found!r}")


def _examples(task: Task, examples: Examples) -> None:
    """Every split has its examples, each with a prompt, a target and an id of its own."""
    for split in _splits_of(task):
        asked = min(_MOST[task.modality], task.paper_sizes[split])
        examples[split] = found = list(task.examples(split, 0, asked))
        enough = len(found) == asked or bool(found and getattr(task, "sources", ()))
        require(enough, f"{split} has {len(found):,} of {asked:,} examples: lower paper_sizes")
    every = [example for found in examples.values() for example in found]
    for example in every:
        require(bool(example.prompt and example.target), f"{example.uid} lacks prompt or target")
        pictured = task.modality is Modality.VISION
        fits = bool(example.images) == pictured and all(map(Path.is_file, example.images))
        require(fits, f"{example.uid} has pictures that are absent, or not of its modality")
    uid, most = Counter(example.uid for example in every).most_common(1)[0]
    require(most == 1, f"the uid {uid!r} stands {most} times")


def _splits(task: Task, examples: Examples) -> None:
    """No question is in two splits, and hardly any twice in one."""
    asked = {s: {_content(e): e.uid for e in found} for s, found in examples.items()}
    for one, other in combinations(asked, 2):
        for key in asked[one].keys() & asked[other].keys():
            twins = f"{asked[one][key]} of {one} and {asked[other][key]} of {other}"
            raise ViolationError(f"{twins} ask the same")
    for split, found in examples.items():
        n, different = len(found), len(asked[split])
        require(2 * different >= n, f"{n:,} examples of {split} are {different:,} questions")


def _reproducible(task: Task, examples: Examples) -> None:
    """Examples and identity are those of another process; both follow the seed, or neither."""
    here, other = digests(task), digests(task, seed=1)
    same = here == digests_elsewhere(task)
    require(same, "examples or identity() are different in another process")
    for split, found in examples.items():
        changed = [one != two for one, two in zip(here[split], other[split], strict=True)]
        one = "the examples" if changed[0] else "identity()"
        require(changed[0] == changed[1], f"of {split} only {one} depend on the seed")
        same = list(task.examples(split, 0, 3)) == found[:3]
        require(same, f"the first 3 examples of {split} depend on how many are asked for")


def _answers(task: Task, examples: Examples) -> None:
    """The target, read as a completion, gives the answer, which begins at answer_start."""
    numbers = reads_numbers(task)
    for example in (example for found in examples.values() for example in found):
        target, wanted, start = example.target, example.answer, example.answer_start
        require(not numbers or wanted is not None, f"{example.uid} has no answer for the metrics")
        thought = f"<think>\n12345, or 6789?\n</think>\n\n{target}"
        for text in (target, f"\ufeff\n\n {target}", f"{target}\r\n<|im_end|>", thought):
            found = task.parse(text)
            said = f"parse({text[-40:]!r}) of {example.uid} gives {found}, not {wanted}"
            require(found == wanted, f"{said}: parse plain_text(completion)")
        value = None if wanted is None else wanted.value
        begins = value in (None, first_number(target[start:])) or value != last_number(target)
        fits = 0 <= start < len(target) and begins
        require(fits, f"the answer of {example.uid} does not begin at answer_start")


def _metrics(task: Task, examples: Examples) -> None:
    """Metrics are bounded, best for right answers, and vectorised."""
    measured = [*examples.values()][-1][: _FEW[Modality.TEXT]]
    targets, frames = [example.target for example in measured], []
    for texts in (targets, [*targets[1:], targets[0]]):
        answers = [Completion(text, (0,), "stop") for text in texts]
        frames.append(score_frame(task, completions_frame(measured, answers, [1] * len(texts))))
    right, wrong = (metric_values(task, frame, resamples=2) for frame in frames)
    for metric in task.metrics():
        name, label, frame = metric.name, metric.label, frames[1]
        require(name in right, f"{name} needs columns that the scores lack: {metric.columns}")
        best, other = (float(values[name]["value"] or 0) for values in (right, wrong))
        for value in (best, other) if "(%)" in label else ():
            fits = math.isnan(value) or -1e-9 <= value <= 100 + 1e-9
            require(fits, f"{name} is {value:g}, and its label is {label}")
        better = other > best + 1e-9 if metric.better == "higher" else other < best - 1e-9
        require(not better, f"{name} is {other:g} for wrong answers and {best:g} for right ones")
        frame = frame if metric.subset is None else frame[frame[metric.subset]]
        _check_axis(metric, [frame[column].to_numpy(np.float64) for column in metric.columns])


def _check_axis(metric: Metric, columns: Sequence[np.ndarray]) -> None:
    """Several resamples at once, along either axis, against one after the other."""
    if not (n := len(columns[0])):
        return
    rows = np.random.default_rng(0).integers(n, size=(4, n))  # [R, n]
    loop = [float(metric.statistic(*(column[at] for column in columns))) for at in rows]
    for axis in (-1, 0):
        given = [column[rows] if axis else column[rows].T for column in columns]
        found = np.asarray(metric.statistic(*given, axis=axis))
        same = found.shape == (4,) and np.allclose(found, loop, equal_nan=True)
        require(bool(same), f"{metric.name}.statistic differs along axis={axis} of resamples")


_TASK_CHECKS = {"contract": _contract, "parse": _strange, "examples": _examples}
_EXAMPLE_CHECKS: Mapping[str, Callable[[Task, Examples], None]] = {
    "splits": _splits,
    "reproducible": _reproducible,
    "parse(target)": _answers,
    "metrics": _metrics,
}
"""Those that look at examples, which must be here."""


def _splits_of(task: Task) -> list[Split]:
    return [split for split in get_args(Split) if task.paper_sizes.get(split)]


def _content(example: Example) -> tuple[str, ...]:
    """The prompt and the digests of the pictures: what a model is asked."""
    pictures = (hashlib.blake2b(path.read_bytes()).hexdigest() for path in example.images)
    return (example.prompt, *pictures)


def digests(task: Task, seed: int = 0) -> dict[Split, list[str]]:
    """By split, a digest of the first examples in their order, and one of the identity."""
    found = {}
    for split in _splits_of(task):
        rows = [
            [e.uid, *_content(e), e.target, str(e.answer), e.answer_start, str(e.attributes)]
            for e in task.examples(split, seed, _FEW[task.modality])
        ]
        found[split] = [address({"examples": rows}), address(task.identity(split, seed))]
    return found


def digests_elsewhere(task: Task) -> dict[Split, list[str]]:
    """`digests` in another process, in which Python hashes texts otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        cache = "" if getattr(task, "sources", ()) else folder
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(_digests_of, canonical(task), plugin_files(), cache).result()


def _digests_of(spec: str, files: Sequence[Path], cache: str) -> dict[Split, list[str]]:
    os.environ.update({"SMMD_BENCH_CACHE": cache} if cache else {})
    for file in files:
        load_plugin_file(file)
    return digests(load_task(spec))
