"""An evaluation: one suite with one checkpoint, kept in `RUN/regression/<address>/`.

suite.json       what it is of: checkpoint, suite, limit, engine, versions
samples.parquet  one row a document: subtask, doc_id, doc_hash, its score by each metric, truncated
results.json     one row a task or group and metric: value and standard error (percent)
comparison.json  how it differs, question by question, from another checkpoint of the run
FAILED.json      stage, error, traceback, if it failed

results.json is written last: an evaluation that has it is whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..storage.addresses import address
from ..storage.files import read_json

if TYPE_CHECKING:
    from ..models.cards import ModelCard

VERSION = 2
"""Raise it when the files of an evaluation would say something else."""
_KEPT = ("model", "model_label", "params", "task", "loss", "seed", "cell", "epoch", "kind")


@dataclass(frozen=True)
class Target:
    """A checkpoint: what it is of, where its weights are, and what identifies them.

    base: the folder of the model it was trained from, which has the tokenizer. task: what it was
    trained on; None for the base. cell: the cell's address; None for weights of no cell. canary:
    what training wrote down of it, if anything. of: the model and the task if the run has several
    of them; its label names them.
    """

    model: str
    model_label: str
    params: int
    base: str
    kind: str
    path: str
    dtype: str
    identity: Mapping[str, Any]
    loss: str
    task: str | None = None
    seed: int = 0
    cell: str | None = None
    epoch: int | None = None
    canary: Mapping[str, Any] | None = None
    of: str = ""

    @classmethod
    def on(cls, card: ModelCard, **facts: Any) -> Target:
        """A checkpoint that was trained from the model of a card, or is it."""
        size, base = card.parameter_count(), str(card.folder)
        return cls(model=card.name, model_label=card.label, params=size, base=base, **facts)

    @property
    def label(self) -> str:
        """How people read of it: `ce seed 0`, and `Qwen2.5-0.5B gsm8k ce seed 0` among others."""
        words = [self.of, self.loss, "" if self.cell is None else f"seed {self.seed}"]
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Suite:
    """A suite as it is to be run.

    version: of our own file; 0 for a task of lm-eval. shots: examples before each question; None:
    as the task says. data: what identifies the questions. folder: where they are, if we know.
    """

    name: str
    version: int
    shots: int | None
    data: Mapping[str, Any]
    folder: str | None = None

    def identity(self) -> dict[str, Any]:
        """What of the suite can change a result."""
        return {name: value for name, value in asdict(self).items() if name != "folder"}


@dataclass(frozen=True)
class Setting:
    """How the suites of one call are run.

    limit: questions of each subject or task (None: all). engine: hf or vllm, with the versions of
    its libraries. batch_size: no part of an address.
    """

    limit: int | None
    engine: str
    versions: Mapping[str, str]
    batch_size: int | None = field(default=None, compare=False)

    def identity(self) -> dict[str, Any]:
        """What of the setting can change a result."""
        return {name: value for name, value in asdict(self).items() if name != "batch_size"}


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
        target, suite = self.target, self.suite
        return {
            "address": self.address,
            **{name: getattr(target, name) for name in _KEPT},
            "identity": dict(target.identity),
            "dtype": target.dtype,
            "suite": suite.name,
            "suite_version": suite.version,
            "shots": suite.shots,
            "data": dict(suite.data),
            **self.setting.identity(),
        }


def plan(targets: Sequence[Target], suites: Sequence[Suite], setting: Setting) -> list[Evaluation]:
    """Every suite with every checkpoint, each once; those of one checkpoint follow one another."""
    every = [Evaluation(target, suite, setting) for target in targets for suite in suites]
    return list({evaluation.address: evaluation for evaluation in every}.values())
