"""Where an evaluation is kept in a run: `RUN/regression/<address>/`.

suite.json       what it is of: checkpoint, suite, limit, engine, versions
samples.parquet  one row a document: subtask, doc_id, doc_hash, its score by each metric, truncated
results.json     one row a task or group and metric: value and standard error (percent)
comparison.json  how it differs, question by question, from another checkpoint of the run
FAILED.json      stage, error, traceback; in place of results

results.json is written last, so that what has it is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..storage.addresses import address
from ..storage.files import read_json
from .suite import Setting, Suite
from .target import Target

VERSION = 2
"""Raise it when the files of an evaluation would say something else."""


@dataclass(frozen=True)
class Evaluation:
    """One suite with one checkpoint in one setting."""

    target: Target
    suite: Suite
    setting: Setting

    @cached_property
    def address(self) -> str:
        """What all the results follow from, as 16 digits."""
        return address(
            {
                "version": VERSION,
                "checkpoint": {**self.target.identity, "dtype": self.target.dtype},
                "suite": self.suite.identity(),
                **self.setting.identity(),
            }
        )

    @property
    def label(self) -> str:
        """How people read of it: `mmlu ce seed 0`."""
        return f"{self.suite.name} {self.target.label}"

    def folder(self, run: Path) -> Path:
        """Where its files are."""
        return run / "regression" / self.address

    def is_done(self, run: Path) -> bool:
        """Whether all its files are there."""
        results = read_json(self.folder(run) / "results.json")
        return results is not None and results.get("address") == self.address

    def to_dict(self) -> dict[str, Any]:
        """The content of suite.json."""
        target = self.target
        return {
            "address": self.address,
            "model": target.model,
            "model_label": target.model_label,
            "params": target.params,
            "task": target.task,
            "loss": target.loss,
            "seed": target.seed,
            "cell": target.cell,
            "epoch": target.epoch,
            "kind": target.kind,
            "identity": dict(target.identity),
            "dtype": target.dtype,
            "suite": self.suite.name,
            "suite_version": self.suite.version,
            "shots": self.suite.shots,
            "data": dict(self.suite.data),
            **self.setting.identity(),
        }


def plan(targets: Sequence[Target], suites: Sequence[Suite], setting: Setting) -> list[Evaluation]:
    """Every suite with every checkpoint, each once; those of one checkpoint stand together."""
    every = [Evaluation(target, suite, setting) for target in targets for suite in suites]
    return list({evaluation.address: evaluation for evaluation in every}.values())


def by_base(evaluations: Iterable[Evaluation]) -> list[list[Evaluation]]:
    """Those that one engine can serve: of one base and dtype."""
    groups: dict[tuple[str, str], list[Evaluation]] = {}
    for evaluation in evaluations:
        key = (evaluation.target.base, evaluation.target.dtype)
        groups.setdefault(key, []).append(evaluation)
    return list(groups.values())
