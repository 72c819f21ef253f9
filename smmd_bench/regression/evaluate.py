"""One suite with one loaded checkpoint: lm-eval's numbers, as rows and as a frame of documents.

lm-eval's `simple_evaluate` would load the tasks and collect the environment for every checkpoint,
which takes seconds: `evaluate` is what it calls.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from lm_eval.evaluator import evaluate

from .comparison import is_share

SEED = 1234
"""lm-eval's default, also of few-shot examples that are drawn."""


@dataclass(frozen=True)
class Results:
    """rows: name, kind (task or group), metric, unit, value, stderr, n. shots: examples before each
    question, if all tasks have the same number."""

    rows: list[dict[str, Any]]
    samples: pd.DataFrame
    shots: int | None


def run_suite(model: Any, tasks: Mapping[str, Any], limit: int | None) -> Results:
    """Evaluate with the seeds of `lm_eval`'s command line, and without any cache of requests."""
    random.seed(0)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    for task in tasks["tasks"].values():
        task.set_fewshot_seed(seed=SEED)
    model.truncated = set()
    found = evaluate(lm=model, task_dict=tasks, limit=limit)
    assert found is not None
    samples = _samples(found["samples"], model.truncated)
    groups = found.get("groups", {})
    rows = []
    for name, metrics in {**groups, **found["results"]}.items():
        kind = "group" if name in groups else "task"
        own = samples if kind == "group" else samples[samples["subtask"] == name]
        rows += [{"name": str(name), "kind": kind, **row} for row in _rows(metrics, own)]
    shots = {task.get_config("num_fewshot") for task in tasks["tasks"].values()}
    return Results(rows, samples, shots.pop() if len(shots) == 1 else None)


def _rows(metrics: Mapping[str, Any], samples: pd.DataFrame) -> list[dict[str, Any]]:
    """In percent if the documents say that it is a share of one; else as lm-eval gives it."""
    rows = []
    for key, value in metrics.items():
        metric, comma, rule = str(key).partition(",")
        if not comma or metric.endswith("_stderr") or not isinstance(value, Real):
            continue
        spelled = _spelled(metric, rule)
        share = is_share(spelled, samples.get(spelled)) and 0 <= float(value) <= 1
        scale = 100.0 if share else 1.0
        rows.append(
            {
                "metric": spelled,
                "unit": "percent" if share else "",
                "value": _scaled(value, scale),
                "stderr": _scaled(metrics.get(f"{metric}_stderr,{rule}"), scale),
                "n": int(metrics["sample_len"]),
            }
        )
    return rows


def _samples(logged: Mapping[str, list[dict[str, Any]]], truncated: set[str]) -> pd.DataFrame:
    """One row a document, with its score by each metric and filter."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for name, samples in logged.items():
        for sample in samples:
            key = (str(name), int(sample["doc_id"]))
            same = {"subtask": key[0], "doc_id": key[1], "doc_hash": sample["doc_hash"]}
            row = rows.setdefault(key, same)
            row["truncated"] = any(request[0] in truncated for request in sample["arguments"])
            for metric in sample["metrics"]:
                if isinstance(sample[metric], Real):
                    row[_spelled(metric, sample["filter"])] = float(sample[metric])
    return pd.DataFrame(list(rows.values()))


def _spelled(metric: str, rule: str) -> str:
    """As lm-eval spells it, without the filter if there is none: `exact_match,strict-match`."""
    return metric if rule == "none" else f"{metric},{rule}"


def _scaled(value: Any, scale: float) -> float | None:
    """None for a value that is not a finite number, such as lm-eval's 'N/A'."""
    scaled = float(value) * scale if isinstance(value, Real) else np.nan
    return scaled if np.isfinite(scaled) else None
