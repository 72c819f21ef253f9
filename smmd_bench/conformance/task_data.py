"""The examples of a task that the checks look at, what identifies them, and their scores.

Nothing is fetched. A fingerprint does not depend on where pictures lie. It is also taken in another
process, with another PYTHONHASHSEED and, for a task that makes its data itself, an empty cache, so
that a check finds out what depends on either.
"""

import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..contracts import Completion, Example, Metric, Modality, Split, Task
from ..decoding.decode import completions_frame
from ..errors import UserError
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import load_plugin_file, load_task, plugin_files
from ..scoring.score import score_frame
from ..storage.addresses import address
from .checks import UncheckedError, fail, require

_MOST = {Modality.TEXT: 2000, Modality.VISION: 24}
"""Generated examples of a split; from a file of texts, as many as `_MOST_OF_A_FILE`."""
_MOST_OF_A_FILE = 20_000
_FEW = {Modality.TEXT: 200, Modality.VISION: 6}
"""Examples that the checks ask for again."""


@dataclass(frozen=True)
class TaskData:
    """A task and the first examples of every split that it has, made once."""

    task: Task

    @property
    def made_here(self) -> bool:
        """Whether the examples come from no file."""
        return not getattr(self.task, "sources", ())

    @property
    def is_generated(self) -> bool:
        """Whether the task draws its examples, as its identity says: no data can be absent."""
        try:
            return self.made_here and "generator" in self.task.identity(self.splits[0], 0)
        except UserError:
            return False

    @property
    def splits(self) -> list[Split]:
        """Those that are not empty by `paper_sizes`."""
        return [split for split in get_args(Split) if self.task.paper_sizes.get(split, 0)]

    @property
    def few(self) -> dict[Split, int]:
        """How many examples the checks ask for again, by split."""
        most = _FEW[self.task.modality]
        return {split: min(most, len(found)) for split, found in self.examples.items()}

    @cached_property
    def examples(self) -> dict[Split, list[Example]]:
        """Raises UncheckedError or UserError if they are not here, and ViolationError if the task
        draws them and cannot draw enough."""
        for source in getattr(self.task, "sources", ()):
            if hasattr(source, "local_file"):
                absent = [split for split in source.local if source.local_file(split) is None]
                if absent:
                    raise UncheckedError(
                        f"the data are not here ({', '.join(absent)}) and nothing is fetched: run "
                        f"`smmd-bench prepare {self.task.name}`, or give --data-dir"
                    )
        whole = not self.made_here and self.task.modality is Modality.TEXT
        most = _MOST_OF_A_FILE if whole else _MOST[self.task.modality]
        return {s: self._first(s, min(most, self.task.paper_sizes[s])) for s in self.splits}

    def _first(self, split: Split, size: int) -> list[Example]:
        try:
            return list(self.task.examples(split, 0, size))
        except (ConnectionError, ImportError) as error:
            raise UncheckedError(f"the data are not available here: {error}") from error
        except UserError as error:
            absent = isinstance(error.__cause__, OSError | ImportError)  # a font, a library, room
            if absent or not self.is_generated:
                raise
            fail(
                f"paper_sizes promises {self.task.paper_sizes[split]:,} examples of {split}, and "
                f"the task cannot make {size:,}: {error}"
            )

    @property
    def filled(self) -> dict[Split, tuple[int, int]]:
        """How many examples of each split there are, and were asked for: texts up to
        `_MOST_OF_A_FILE`, pictures as many as are looked at."""
        text = self.task.modality is Modality.TEXT
        most = _MOST_OF_A_FILE if text else _MOST[self.task.modality]
        found = {}
        for split, examples in self.examples.items():
            there, asked = len(examples), min(most, int(self.task.paper_sizes[split]))
            if text and there < asked:
                there = len(self._first(split, asked))
            found[split] = there, asked
        return found

    def all_examples(self) -> Iterator[Example]:
        """The examples of all splits."""
        for found in self.examples.values():
            yield from found

    def tested(self, most: int) -> list[Example]:
        """The first examples of the test split, or of the last one that there is."""
        return self.examples["test" if "test" in self.examples else self.splits[-1]][:most]

    def counts(self) -> str:
        """`2,000 train, 300 validation, 1,000 test`."""
        return ", ".join(f"{len(found):,} {split}" for split, found in self.examples.items())


def content(example: Example) -> tuple[str, ...]:
    """The prompt and the digests of the pictures: what a model is asked."""
    pictures = (hashlib.blake2b(path.read_bytes(), digest_size=8) for path in example.images)
    return (example.prompt, *(digest.hexdigest() for digest in pictures))


def fingerprints(task: Task, sizes: Mapping[Split, int], seed: int = 0) -> dict[str, list[str]]:
    """By split, a digest of the first examples in their order, and one of the identity.

    That of the examples covers ids, texts, answers, attributes and pictures.
    """
    found = {}
    for split, size in sizes.items():
        rows = [
            [e.uid, *content(e), e.target, str(e.answer), e.answer_start,
             {k: str(v) for k, v in e.attributes.items()}]
            for e in task.examples(split, seed, size)
        ]  # fmt: skip
        found[str(split)] = [address({"examples": rows}), address(task.identity(split, seed))]
    return found


def fingerprints_elsewhere(data: TaskData) -> dict[str, list[str]]:
    """`fingerprints` in another process. Raises UncheckedError if that fails."""
    request = json.dumps([canonical(data.task), [str(file) for file in plugin_files()], data.few])
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    with tempfile.TemporaryDirectory() as folder:
        cache = {"SMMD_BENCH_CACHE": folder} if data.made_here else {}
        done = subprocess.run(
            [sys.executable, "-m", __name__, request],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, **cache},
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["without a message"])[-1]
        raise UncheckedError(f"the second process ended early: {last}")
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


_RESAMPLES = 4
_SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "blank lines before it": lambda text: f"\n\n \n{text}",
    "a byte-order mark before it": lambda text: f"\ufeff{text}",
    "lines that end in \\r\\n": lambda text: f"{text}\n".replace("\n", "\r\n"),
    "non-breaking spaces": lambda text: text.replace(" ", "\u00a0"),
    "an end-of-text token after it": lambda text: f"{text}<|im_end|>",
}
"""What a person does not see in a completion."""
_READ = ("parsed", "valid", "exact")


def completions(examples: Sequence[Example], texts: Sequence[str]) -> pd.DataFrame:
    """The frame of completions that a cell would have."""
    answers = [Completion(text, (0,), "stop") for text in texts]
    return completions_frame(examples, answers, [1] * len(answers))


def check_metrics(task: Task, examples: Sequence[Example]) -> str:
    """Raises ViolationError; returns what it looked at."""
    metrics = task.metrics()
    require(len(metrics) > 0, "metrics() is empty: the first one selects the checkpoint")
    names = [metric.name for metric in metrics]
    require(len(set(names)) == len(names), f"two metrics have one name: {', '.join(names)}")
    targets = [e.target for e in examples]
    texts = {"right": targets, "wrong": [*targets[1:], targets[0]], "empty": [""] * len(targets)}
    cases = {name: score_frame(task, completions(examples, text)) for name, text in texts.items()}
    for metric in metrics:
        require(isinstance(metric, Metric), f"{metric!r} lacks an attribute of Metric")
        lacking = {*metric.columns, *([metric.subset] if metric.subset else [])}
        lacking -= {*cases["right"].columns}
        require(not lacking, f"{metric.name} needs the column {', '.join(sorted(lacking))}")
        _check_bounds(metric, {name: _value(metric, frame) for name, frame in cases.items()})
        _check_axis(metric, _columns(metric, cases["wrong"]))
    first = _value(metrics[0], cases["right"])
    require(math.isfinite(first), f"{names[0]} has no value for right answers, and it selects")
    return f"{', '.join(names)}: bounded, best for right answers, vectorised"


def check_spellings(task: Task, examples: Sequence[Example]) -> str:
    """Raises ViolationError if a spelling that looks the same changes an answer, or what the metric
    that selects reads of it; returns what it looked at."""
    targets = [e.target for e in examples]
    plain = score_frame(task, completions(examples, targets))
    columns = {*_READ, *task.metrics()[0].columns} & {*plain.columns}
    for what, spell in _SPELLINGS.items():
        found = score_frame(task, completions(examples, [spell(text) for text in targets]))
        for name in sorted(columns):
            same = (found[name] == plain[name]) | (found[name].isna() & plain[name].isna())
            if not same.all():
                at = int(same.argmin())
                fail(
                    f"{what} of {examples[at].uid} change `{name}` from {plain[name][at]} to "
                    f"{found[name][at]}: parse plain_text(completion), from smmd_bench.contracts"
                )
    return f"{', '.join(_SPELLINGS)} change no answer"


def _check_bounds(metric: Metric, values: dict[str, float]) -> None:
    for name, value in values.items():
        require(not math.isinf(value), f"{metric.name} is infinite for {name} answers")
        require(
            "(%)" not in metric.label or math.isnan(value) or -1e-9 <= value <= 100 + 1e-9,
            f"{metric.name} is {value:g} for {name} answers, and its label says percent",
        )
    worse = values["wrong"] - values["right"]
    require(
        not (worse if metric.better == "higher" else -worse) > 1e-9,
        f"{metric.name} is {values['wrong']:g} for wrong answers and {values['right']:g} for right "
        f"ones, but {metric.better} is better",
    )


def _check_axis(metric: Metric, columns: list[NDArray[np.float64]]) -> None:
    """Several resamples at once, along either axis, against one after the other."""
    n = len(columns[0]) if columns else 0
    if not n:
        return
    rows = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))  # [R, n]
    loop = [float(metric.statistic(*(column[at] for column in columns))) for at in rows]
    resampled = [column[rows] for column in columns]
    for axis, given in ((-1, resampled), (0, [c.T for c in resampled])):
        found: Any = np.asarray(metric.statistic(*given, axis=axis))
        require(
            found.shape == (_RESAMPLES,),
            f"{metric.name}.statistic(axis={axis}) gives the shape {list(found.shape)} for "
            f"{_RESAMPLES} resamples: reduce `axis` of every column",
        )
        require(
            bool(np.allclose(found, loop, rtol=1e-9, atol=1e-9, equal_nan=True)),
            f"{metric.name}.statistic(axis={axis}) differs from one resample at a time",
        )


def _columns(metric: Metric, frame: pd.DataFrame) -> list[NDArray[np.float64]]:
    if metric.subset is not None:
        frame = frame[frame[metric.subset]]
    return [frame[name].to_numpy(np.float64) for name in metric.columns]


def _value(metric: Metric, frame: pd.DataFrame) -> float:
    """NaN where no row counts."""
    columns = _columns(metric, frame)
    return float(metric.statistic(*columns)) if len(columns[0]) else math.nan


if __name__ == "__main__":
    spec, files, sizes = json.loads(sys.argv[1])
    for file in files:
        load_plugin_file(Path(file))
    print(json.dumps(fingerprints(load_task(spec), sizes)))
