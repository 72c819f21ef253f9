"""Completions and spellings of plugins."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

import pandas as pd

from smmd_bench.contracts import Task
from smmd_bench.contracts.numbers import parse_number
from smmd_bench.errors import UserError
from smmd_bench.plugin_system.parameters import canonical, split_list, split_spec
from smmd_bench.plugin_system.registry import GROUPS, load, load_task, names
from smmd_bench.scoring.categories import CATEGORIES
from smmd_bench.scoring.measure import compare, measure
from smmd_bench.scoring.score import score_frame

TARGETS_OF_TASKS = {"clock_time": " 1:05", "samsum": " Ann meets Bob."}
LONGEST = 400
"""Digits of a number that is read."""


def text_of(data: bytes) -> str:
    """The input as text that a UTF-8 file may hold."""
    return data.decode("utf-8", "replace")


@contextmanager
def brief_errors(most: int, *words: str) -> Iterator[None]:
    """An error has at most so many characters, and names these words."""
    try:
        yield
    except UserError as error:
        _require(str(error), most, words)
        raise


def _require(said: str, most: int, words: Sequence[str]) -> None:
    assert len(said) <= most
    assert all(word in said for word in words)


def answers(data: bytes) -> None:
    """A completion becomes an exact number or None, always the same; its scores are numbers."""
    text = text_of(data)
    for name in names("tasks"):
        task = load_task(name)
        found = task.parse(text)
        assert found == task.parse(text)
        assert found is None or type(found.value) is Fraction
        row = score_frame(task, _completions(name, [text])).iloc[0]
        assert bool(row["valid"]) == (found is not None)
        assert row["category"] in CATEGORIES
        assert not (row["exact"] and not row["valid"])
        for kind in ("rouge1", "rouge2", "rougeL"):
            assert 0 <= row.get(kind, 0) <= 1
        if found is not None and len(str(found.value)) <= LONGEST:
            assert parse_number(str(found.value)) == found.value


def measures(data: bytes) -> None:
    """The lines of a text as completions of each task: the metrics are numbers or None."""
    lines = text_of(data).split("\n")[:8]
    for name in names("tasks"):
        task = load_task(name)
        scores, content = measure(task, _completions(name, lines), resamples=5)
        other = score_frame(task, _completions(name, lines[::-1]))
        for said in (content, compare(task, scores, other, resamples=5)):
            json.dumps(said, allow_nan=False)
        for metric in content["metrics"].values():
            assert metric["value"] is None or math.isfinite(metric["value"])


def specs(data: bytes) -> None:
    """A plugin's spelling: what `canonical` writes makes the same plugin."""
    for spec in split_list(text_of(data)):
        name, _ = split_spec(spec)
        for group in GROUPS:
            if name in names(group):
                plugin = load(group, spec)
                again = canonical(plugin)
                assert load(group, again) == plugin, again
                assert canonical(load(group, again)) == again
                assert split_list(again) == [again]


def _completions(name: str, texts: list[str]) -> pd.DataFrame:
    target = TARGETS_OF_TASKS.get(name, " 12")
    uids = [f"test-{at}" for at in range(len(texts))]
    return pd.DataFrame({"uid": uids, "target": target, "completion": texts})


def task_of_numbers() -> Task:
    """A task whose examples are made here."""
    return load_task("arithmetic[level=easy,operations=1]")
