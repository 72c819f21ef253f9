"""One suite with one loaded checkpoint: lm-eval's numbers, as rows and as a frame of documents."""

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

from .metrics import is_share
from .tasks import SEED


@dataclass(frozen=True)
class Results:
    """rows: name, kind (task or group), metric, unit, value, stderr, n. shots: examples before each
    question, where all tasks have the same number."""

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
    groups = found.get("groups", {})
    samples = _samples(found["samples"], model.truncated)
    rows = []
    for name, metrics in {**groups, **found["results"]}.items():
        kind = "group" if name in groups else "task"
        own = samples if kind == "group" else samples[samples["subtask"] == name]
        rows += _rows(str(name), kind, metrics, own)
    shots = {task.get_config("num_fewshot") for task in tasks["tasks"].values()}
    return Results(rows, samples, shots.pop() if len(shots) == 1 else None)


def _rows(
    name: str, kind: str, metrics: Mapping[str, Any], samples: pd.DataFrame
) -> list[dict[str, Any]]:
    """In percent where the documents say that it is a share of one; else as lm-eval gives it."""
    rows = []
    for key, value in metrics.items():
        metric, comma, rule = str(key).partition(",")
        if not comma or metric.endswith("_stderr") or not isinstance(value, Real):
            continue
        error = metrics.get(f"{metric}_stderr,{rule}")
        spelled = _spelled(metric, rule)
        share = is_share(spelled, samples.get(spelled)) and 0 <= float(value) <= 1
        scale = 100.0 if share else 1.0
        rows.append(
            {
                "name": name,
                "kind": kind,
                "metric": spelled,
                "unit": "percent" if share else "",
                "value": _finite(float(value) * scale),
                "stderr": _finite(float(error) * scale) if isinstance(error, Real) else None,
                "n": int(metrics["sample_len"]),
            }
        )
    return rows


def _samples(logged: Mapping[str, list[dict[str, Any]]], truncated: set[str]) -> pd.DataFrame:
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
    """As lm-eval spells it, without the filter where there is none: `exact_match,strict-match`."""
    return metric if rule == "none" else f"{metric},{rule}"


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
