"""How a checkpoint differs from another one of the run, question by question.

Each loss is compared with cross-entropy of the same task and seed, cross-entropy with the untuned
base, a checkpoint from elsewhere with the base. Differences are in points, with a 95 % interval by
a paired bootstrap over the questions; where an answer is right or wrong, McNemar's exact test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..experiment import BASE
from ..results.files import read_json, write_json
from .metrics import PERCENT, RIGHT_OR_WRONG, plain_name
from .store import Evaluation

if TYPE_CHECKING:
    import pandas as pd

REFERENCE = "ce"
VERSION = 1


def write_comparisons(run: Path, evaluations: Sequence[Evaluation]) -> None:
    """Write comparison.json of every finished evaluation that has an opponent here."""
    done = [evaluation for evaluation in evaluations if evaluation.is_done(run)]
    for evaluation in done:
        other = _opponent(evaluation, done)
        if other is not None:
            _write(run, evaluation, other)


def _opponent(evaluation: Evaluation, others: Sequence[Evaluation]) -> Evaluation | None:
    target = evaluation.target
    if target.loss == BASE:
        return None
    same = [
        other
        for other in others
        if (other.suite, other.setting) == (evaluation.suite, evaluation.setting)
        and other.target.model == target.model
    ]
    trained = [
        other
        for other in same
        if other.target.loss == REFERENCE
        and (other.target.task, other.target.seed) == (target.task, target.seed)
    ]
    base = [other for other in same if other.target.loss == BASE]
    ranked = base if target.loss == REFERENCE or target.cell is None else [*trained, *base]
    return ranked[0] if ranked else None


def _write(run: Path, evaluation: Evaluation, other: Evaluation) -> None:
    file = evaluation.folder(run) / "comparison.json"
    wanted = f"{VERSION}-{evaluation.address}-{other.address}"
    if (read_json(file) or {}).get("address") == wanted:
        return
    import pandas as pd

    mine, theirs = (pd.read_parquet(e.folder(run) / "samples.parquet") for e in (evaluation, other))
    metrics = [m for m in mine.columns if plain_name(m) in PERCENT and m in theirs.columns]
    write_json(
        file,
        {
            "address": wanted,
            "against": other.address,
            "against_loss": other.target.loss,
            "metrics": {metric: compare(mine, theirs, metric) for metric in metrics},
        },
    )


def compare(samples: pd.DataFrame, others: pd.DataFrame, metric: str) -> dict[str, Any]:
    """difference, low, high and n of a share, in points; with b, c and p where each document is
    right or wrong."""
    from ..scoring.metrics import ExactMatch
    from ..scoring.statistics import mcnemar_exact, paired_difference

    frames = [_scored(frame, metric) for frame in (samples, others)]
    found = paired_difference(ExactMatch(), *frames)
    content = {"difference": found.value, "low": found.low, "high": found.high, "n": found.n}
    return content | (
        asdict(mcnemar_exact(*frames)) if plain_name(metric) in RIGHT_OR_WRONG else {}
    )


def _scored(samples: pd.DataFrame, metric: str) -> pd.DataFrame:
    """As the comparison of two cells wants it: `uid`, and the metric as `exact`."""
    frame = samples.dropna(subset=[metric])
    uids = frame["subtask"] + "/" + frame["doc_id"].astype("str")
    return frame.assign(uid=uids, exact=frame[metric])[["uid", "exact"]]
