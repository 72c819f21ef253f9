"""The checks of a task, on the first examples of its splits."""

import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, get_args

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
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import load_plugin_file, load_task, plugin_files
from ..scoring.score import reads_numbers, score_frame
from ..scoring.statistics import metric_values
from ..storage.addresses import address, content_digest
from .checks import Finding, require, run_checks

Examples = dict[Split, Sequence[Example]]
_MOST = {Modality.TEXT: 2000, Modality.VISION: 24}
_FEW = {Modality.TEXT: 200, Modality.VISION: 6}
"""Examples of a split that are looked at, and those that are asked for again."""
_STRANGE = (
    "",
    " ",
    "####",
    "nan",
    "inf",
    "1/0",
    "-",
    "\u0663",
    "9" * 5000,
    "1e999",
    "1:2:3",
    "[",
)


def check_task(task: Task) -> list[Finding]:
    """Run every check of a task, on the data that are here."""
    examples: Examples = {}
    of_task = run_checks(_TASK_CHECKS, task, examples)
    # The last of them has taken the examples.
    if of_task[-1].state == "passed":
        return [*of_task, *run_checks(_EXAMPLE_CHECKS, task, examples)]
    names = ", ".join(_EXAMPLE_CHECKS)
    return [*of_task, Finding(names, "unchecked", "they need the examples")]


def _check_contract(task: Task, _: Examples) -> None:
    """It has a modality, a length, sizes of its splits and a licence."""
    require(
        task.modality in Modality, f"modality is {task.modality!r}, not one of Modality"
    )
    require(
        task.max_new_tokens > 0, f"max_new_tokens is {task.max_new_tokens}, not > 0"
    )
    sizes = dict(task.paper_sizes)
    are_splits = {*sizes} <= {*get_args(Split)}
    are_sizes = are_splits and any(sizes.values())
    require(are_sizes, f"paper_sizes has other splits, or none: {sizes}")
    licence = str(getattr(task, "licence", "") or "").strip()
    require(licence, 'the data have no licence: add `licence: ClassVar[str] = "..."`')


def _check_strange(task: Task, _: Examples) -> None:
    """Strange completions raise nothing, and an empty one has no answer."""
    # Models write anything, and one of a million completions must not end a run.
    for text in _STRANGE:
        answer = task.parse(text)
        fits = answer is None or (isinstance(answer, Answer) and text != "")
        require(fits, f"parse({text[:20]!r}) gives {answer!r}")


def _check_examples(task: Task, examples: Examples) -> None:
    """Every split has its examples, each with a prompt, a target and an id of its own."""
    for split in _find_splits(task):
        wanted = min(_MOST[task.modality], task.paper_sizes[split])
        examples[split] = list(task.examples(split, 0, wanted))
        number = len(examples[split])
        # A copy of the data may be smaller than the paper's; a generator has no such reason.
        is_copy = number > 0 and bool(getattr(task, "sources", ()))
        require(
            number == wanted or is_copy,
            f"{split} has {number:,} of {wanted:,} examples: lower paper_sizes",
        )

    # The files of a run tell examples by their uid alone.
    uids: Counter[str] = Counter()
    for example in chain(*examples.values()):
        _require_complete(task, example)
        uids[example.uid] += 1
    uid, times = uids.most_common(1)[0]
    require(times == 1, f"the uid {uid!r} stands {times} times")


def _require_complete(task: Task, example: Example) -> None:
    require(example.prompt and example.target, f"{example.uid} lacks prompt or target")
    # A text task with pictures would be answered without a look at them.
    has_images = example.images and all(map(Path.is_file, example.images))
    fits = has_images if task.modality is Modality.VISION else not example.images
    require(fits, f"{example.uid} has pictures that are absent, or not of its modality")


def _check_splits(task: Task, examples: Examples) -> None:
    """No question is in two splits, and hardly any twice in one."""
    first_asked: dict[tuple[str, ...], tuple[Split, str]] = {}
    for split, of_split in examples.items():
        questions = {_read_content(example): example.uid for example in of_split}
        for question, uid in questions.items():
            other_split, other_uid = first_asked.setdefault(question, (split, uid))
            # Who has trained on a question is not tested by it.
            require(
                other_split == split,
                f"{other_uid} of {other_split} and {uid} of {split} ask the same",
            )

        # A question with many copies would weigh as much as many questions.
        number = len(of_split)
        require(
            2 * len(questions) >= number,
            f"{number:,} examples of {split} are {len(questions):,} questions",
        )


def _check_reproducible(task: Task, examples: Examples) -> None:
    """Examples and identity are those of another process; both follow the seed, or neither."""
    of_seed_0 = digests(task)
    require(
        of_seed_0 == digests_elsewhere(task),
        "examples or identity() are different in another process",
    )

    # Addresses follow from the identity: examples that change without it would be taken for others.
    of_seed_1 = digests(task, seed=1)
    for split, of_split in examples.items():
        examples_change = of_seed_0[split].examples != of_seed_1[split].examples
        identity_changes = of_seed_0[split].identity != of_seed_1[split].identity
        changing = "the examples" if examples_change else "identity()"
        require(
            examples_change == identity_changes,
            f"of {split} only {changing} depend on the seed",
        )

        # A smoke run asks for a few examples, and must get those of the whole run.
        require(
            list(task.examples(split, 0, 3)) == of_split[:3],
            f"the first 3 examples of {split} depend on how many are asked for",
        )


def _check_answers(task: Task, examples: Examples) -> None:
    """The target, read as a completion, gives the answer, which begins at answer_start."""
    needs_numbers = reads_numbers(task)
    for example in chain(*examples.values()):
        has_answer = example.answer is not None or not needs_numbers
        require(has_answer, f"{example.uid} has no answer for the metrics")
        _require_parsed(task, example)
        _require_start(example)


def _require_parsed(task: Task, example: Example) -> None:
    target = example.target
    # As models write it: after blank lines or a thought, or before the token that ends a turn.
    thought = f"<think>\n12345, or 6789?\n</think>\n\n{target}"
    for text in (target, f"\ufeff\n\n {target}", f"{target}\r\n<|im_end|>", thought):
        answer = task.parse(text)
        require(
            answer == example.answer,
            f"parse({text[-40:]!r}) of {example.uid} gives {answer}, not {example.answer}: "
            "parse plain_text(completion)",
        )


def _require_start(example: Example) -> None:
    target = example.target
    start = example.answer_start
    value = None if example.answer is None else example.answer.value
    # A clock's time, say, has a value that is no number of the target's: its place is not checked.
    is_first = value in (None, first_number(target[start:]))
    begins = is_first or value != last_number(target)
    fits = 0 <= start < len(target) and begins
    require(fits, f"the answer of {example.uid} does not begin at answer_start")


def _check_metrics(task: Task, examples: Examples) -> None:
    """Metrics are bounded, best for right answers, and vectorised."""
    # The test split, where the task has one.
    *_, of_last_split = examples.values()
    measured = of_last_split[: _FEW[Modality.TEXT]]
    targets = [example.target for example in measured]
    # Every example with the answer of the next one: most are wrong.
    rotated = [*targets[1:], targets[0]]
    right = _score(task, measured, targets)
    wrong = _score(task, measured, rotated)

    of_right = metric_values(task, right, resamples=2)
    of_wrong = metric_values(task, wrong, resamples=2)
    for metric in task.metrics():
        name = metric.name
        require(
            name in of_right,
            f"{name} needs columns that the scores lack: {metric.columns}",
        )
        best = float(of_right[name]["value"] or 0)
        other = float(of_wrong[name]["value"] or 0)
        _require_bounded(metric, best)
        _require_bounded(metric, other)
        sign = 1 if metric.better == "higher" else -1
        require(
            not sign * (other - best) > 1e-9,  # nan is none of both
            f"{name} is {other:g} for wrong answers and {best:g} for right ones",
        )
        _require_vectorised(metric, wrong)


def _score(
    task: Task, examples: Sequence[Example], texts: Sequence[str]
) -> pd.DataFrame:
    completions = [Completion(text, (0,), "stop") for text in texts]
    return score_frame(task, completions_frame(examples, completions, [1] * len(texts)))


def _require_bounded(metric: Metric, value: float) -> None:
    """Raise ViolationError where a label says percent and the value is none."""
    if "(%)" in metric.label:
        fits = math.isnan(value) or -1e-9 <= value <= 100 + 1e-9
        require(fits, f"{metric.name} is {value:g}, and its label is {metric.label}")


def _require_vectorised(metric: Metric, scores: pd.DataFrame) -> None:
    """Compare several resamples at once, along either axis, with one after the other."""
    if metric.subset is not None:
        scores = scores[scores[metric.subset]]
    n = len(scores)
    # No answer of these is in the subset.
    if not n:
        return

    columns = [scores[column].to_numpy(np.float64) for column in metric.columns]
    resamples = np.random.default_rng(0).integers(n, size=(4, n))  # [R, n]
    one_by_one = []
    for rows in resamples:
        drawn = (column[rows] for column in columns)
        one_by_one.append(float(metric.statistic(*drawn)))

    # The bootstrap draws thousands of resamples, for which a loop would take minutes.
    for axis, rows in ((-1, resamples), (0, resamples.T)):
        drawn = (column[rows] for column in columns)
        at_once = np.asarray(metric.statistic(*drawn, axis=axis))
        require(
            at_once.shape == (4,) and np.allclose(at_once, one_by_one, equal_nan=True),
            f"{metric.name}.statistic differs along axis={axis} of resamples",
        )


_TASK_CHECKS = {
    "contract": _check_contract,
    "parse": _check_strange,
    "examples": _check_examples,
}
_EXAMPLE_CHECKS: Mapping[str, Callable[[Task, Examples], None]] = {
    "splits": _check_splits,
    "reproducible": _check_reproducible,
    "parse(target)": _check_answers,
    "metrics": _check_metrics,
}
"""Those that look at examples, which must be here."""


def _find_splits(task: Task) -> list[Split]:
    return [split for split in get_args(Split) if task.paper_sizes.get(split)]


def _read_content(example: Example) -> tuple[str, ...]:
    """Read what a model is asked: the prompt, and the digests of the pictures."""
    # Their paths differ from cache to cache, and are no part of a question.
    pictures = map(content_digest, example.images)
    return (example.prompt, *pictures)


class Digests(NamedTuple):
    """What a split follows from: digests of its first examples in their order, and its identity."""

    examples: str
    identity: str


def digests(task: Task, seed: int = 0) -> dict[Split, Digests]:
    """Compute the digests of each split of a task."""
    by_split = {}
    for split in _find_splits(task):
        rows = []
        for example in task.examples(split, seed, _FEW[task.modality]):
            rows.append(
                [
                    example.uid,
                    *_read_content(example),
                    example.target,
                    str(example.answer),
                    example.answer_start,
                    str(example.attributes),
                ]
            )
        identity = address(task.identity(split, seed))
        by_split[split] = Digests(address({"examples": rows}), identity)
    return by_split


def digests_elsewhere(task: Task) -> dict[Split, Digests]:
    """Compute `digests` in another process, in which Python hashes texts otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        # Data that were fetched lie in the user's cache, and are not fetched again.
        cache = "" if getattr(task, "sources", ()) else folder
        # A fork would have this process's seed of hashes, and its caches.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(
                _compute_digests, canonical(task), plugin_files(), cache
            ).result()


def _compute_digests(
    spec: str, files: Sequence[Path], cache: str
) -> dict[Split, Digests]:
    # In a cache of its own, a task that generates its data makes them anew.
    if cache:
        os.environ["SMMD_BENCH_CACHE"] = cache
    for file in files:
        load_plugin_file(file)
    return digests(load_task(spec))
