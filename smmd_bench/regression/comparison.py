"""How a checkpoint differs from another one of the run, question by question.

Each loss is compared with cross-entropy of the same task and seed, cross-entropy with the untuned
base. Differences are in points, with a 95 % interval by a paired bootstrap over the questions;
where an answer is right or wrong, McNemar's exact test.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from ..contracts import ExactMatch
from ..results.frames import RunFrames
from ..results.regression import (
    compared_evaluations,
    comparison_folder,
    current_evaluations,
    regression_samples,
)
from ..scoring.statistics import paired_difference
from ..storage.files import write_folder, write_json

RIGHT_OR_WRONG = frozenset(
    ("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "em")
)
"""Metrics that are 0 or 1 for each document."""
SHARES = RIGHT_OR_WRONG | {"f1", "rouge1", "rouge2", "rougeL", "rougeLsum"}
"""Metrics that most tasks of lm-eval give as a share of one, and we in percent; some tasks give
them in percent already, or not for each document."""


def is_share(metric: str, values: pd.Series[float] | None) -> bool:
    """Check whether a metric is a share by its name, with documents that have 0 to 1."""
    if _drop_filter(metric) not in SHARES or values is None:
        return False
    # A name says what lm-eval's own tasks mean by it; other tasks may mean another thing.
    scored = values.dropna()
    return len(scored) > 0 and bool(scored.between(0, 1).all())


def write_comparisons(run: RunFrames) -> None:
    """Write comparison.json of every evaluation that the run can compare with another one."""
    for pair in compared_evaluations(current_evaluations(run)):
        place = comparison_folder(run.path, *pair)
        # Its name says both sides, so what exists is current.
        if place.exists():
            continue
        samples, other_samples = (
            regression_samples(run.path, str(e["address"])) for e in pair
        )
        metrics = {}
        for metric in map(str, samples.columns):
            # A difference in points is one of shares: of perplexities, say, it would be none.
            values = samples[metric], other_samples.get(metric)
            if all(is_share(metric, one) for one in values):
                comparison = compare(samples, other_samples, metric)
                if comparison:
                    metrics[metric] = comparison
        with write_folder(place) as folder:
            write_json(folder / "comparison.json", {"metrics": metrics})


def compare(
    samples: pd.DataFrame, other_samples: pd.DataFrame, metric: str
) -> dict[str, Any]:
    """Compare shares, in points: difference, low, high, n and left_out; with b, c and p where each
    document is right or wrong. Empty if the two share no document.

    A document whose content differs, as when lm-eval's data changed in between, is left out.
    """
    scores = _select_scored(samples, metric)
    other_scores = _select_scored(other_samples, metric)
    shared = scores.merge(other_scores, on="uid", suffixes=("", "_other"))
    unchanged = shared
    if "doc_other" in shared:
        unchanged = shared[shared["doc"] == shared["doc_other"]]
    if unchanged.empty:
        return {}

    scores = scores[scores["uid"].isin(unchanged["uid"])]
    other_scores = other_scores[other_scores["uid"].isin(unchanged["uid"])]

    # Any share is a mean over documents in points, as exact match is.
    difference = paired_difference(ExactMatch(), scores, other_scores)
    names = ["difference", "low", "high", "n"]

    # McNemar's test counts documents, so that a score between 0 and 1 has none.
    if _drop_filter(metric) in RIGHT_OR_WRONG:
        names += ["b", "c", "p"]
    content = {name: getattr(difference, name) for name in names}
    return {**content, "left_out": len(shared) - len(unchanged)}


def _select_scored(samples: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Select the columns that a comparison of cells needs: `uid`, the metric as `exact`, `doc`."""
    frame = samples.dropna(subset=[metric])
    # `doc_id` counts from 0 in every subtask.
    uids = frame["subtask"] + "/" + frame["doc_id"].astype("str")
    frame = frame.assign(uid=uids, exact=frame[metric]).rename(
        columns={"doc_hash": "doc"}
    )
    return frame[[name for name in ("uid", "exact", "doc") if name in frame]]


def _drop_filter(metric: str) -> str:
    """Drop the filter: `exact_match,strict-match` is `exact_match`."""
    return metric.partition(",")[0]
