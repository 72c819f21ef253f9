"""Which checkpoints of a run are evaluated: the base of each model, and each finished cell.

An evaluation is one suite with one checkpoint, kept in `RUN/regression/ADDRESS/`:

suite.json       what it is of: checkpoint, suite, limit, engine, versions
samples.parquet  one row a document: subtask, doc_id, doc_hash, its score by each metric, truncated
results.json     one row a task or group and metric: value and standard error (percent)

How it differs from another one, question by question, is in `RUN/compare/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import UserError, did_you_mean
from ..models.cards import ModelCard
from ..results.frames import RunFrames, read_run
from ..results.summary import again, card_of_run
from ..storage.addresses import address
from ..storage.cell import BASE
from .suites import Suite

VERSION = 3
"""Raise it when the files of an evaluation would say something else."""
_KEPT = ("model", "model_label", "params", "task", "loss", "seed", "cell", "epoch", "kind")


@dataclass(frozen=True)
class Target:
    """A checkpoint: what it is of, where its weights are, and what identifies them.

    base: the folder of the model it was trained from, which has the tokenizer. task: what it was
    trained on; None for the base, as `cell` and `epoch`. of: the model and the task if the run has
    several of them; its label names them.
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
    of: str = ""

    @property
    def label(self) -> str:
        """How people read of it: `ce seed 0`, and `Qwen2.5-0.5B gsm8k ce seed 0` among others."""
        words = [self.of, self.loss, "" if self.cell is None else f"seed {self.seed}"]
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Evaluation:
    """One suite with one checkpoint.

    limit: questions of each subject or task (None: all). engine: hf or vllm, with the versions of
    its libraries.
    """

    target: Target
    suite: Suite
    limit: int | None
    engine: str
    versions: Mapping[str, str]

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All that the results follow from."""
        return {
            "identity": dict(self.target.identity),
            "dtype": self.target.dtype,
            "suite": self.suite.name,
            "suite_version": self.suite.version,
            "shots": self.suite.shots,
            "data": dict(self.suite.data),
            "limit": self.limit,
            "engine": self.engine,
            "versions": dict(self.versions),
        }

    @cached_property
    def address(self) -> str:
        """That of its facts, as 16 digits."""
        return address({"version": VERSION, **self.facts})

    @property
    def label(self) -> str:
        """How people read of it: `mmlu ce seed 0`."""
        return f"{self.suite.name} {self.target.label}"

    def folder(self, run: Path) -> Path:
        """Where its files are."""
        return run / "regression" / self.address

    def is_done(self, run: Path) -> bool:
        """Whether all its files are there."""
        return self.folder(run).exists()

    def to_dict(self) -> dict[str, Any]:
        """The content of suite.json."""
        target = {name: getattr(self.target, name) for name in _KEPT}
        return {"address": self.address, **target, **self.facts}


def find_targets(path: Path, losses: Sequence[str] = ()) -> tuple[list[Target], list[str]]:
    """The base and the selected checkpoint of every finished cell of a run.

    `losses` keeps those of these losses (`base` is one). The second value has a sentence for each
    cell that cannot be evaluated. Raises UserError if none can, or if a model has changed.
    """
    run = read_run(path)
    cells = run.cells[run.cells["trained_on"].isna()]
    if "predictions" in run.manifest or cells.empty:
        raise UserError(
            f"{path} holds no checkpoint: give a folder that `smmd-bench train-eval` has made."
        )
    known = {BASE, *cells["loss"].unique(), *cells["loss_name"].unique()}
    if unknown := next((loss for loss in losses if loss not in known), None):
        hint = did_you_mean(unknown, known)
        raise UserError(f"No cell of {path} has the loss '{unknown}': {hint}")
    wanted = cells["loss"].isin(losses) | cells["loss_name"].isin(losses) | (not losses)
    cards = {str(model): card_of_run(str(model), run) for model in cells["model"].unique()}
    several, tasks = len(cards) > 1, cells.loc[cells["loss"] != BASE, "task"].nunique() > 1
    found: list[Target] = []
    notes: list[str] = []
    for model, card in cards.items():
        own = cells[cells["model"] == model]
        targets: list[Target | str] = []
        if not losses or BASE in losses:
            targets.append(_base(card, str(own.iloc[0]["recipe"].get("dtype", "float32"))))
        for cell in own[wanted & (own["loss"] != BASE)].to_dict("records"):
            targets.append(_trained(card, {str(k): v for k, v in cell.items()}, run))
        for target in targets:
            if isinstance(target, str):
                notes.append(target)
                continue
            words = target.model_label if several else "", target.task if tasks else ""
            found.append(replace(target, of=" ".join(word for word in words if word)))
    if not found:
        raise UserError(f"{path} has no finished cell to evaluate: {' '.join(notes)}")
    return found, notes


def _base(card: ModelCard, dtype: str, **facts: Any) -> Target:
    """A target of a model; facts: what a trained one has otherwise."""
    own = {"kind": "base", "path": str(card.folder), "identity": {"base": dict(card.identity)}}
    return Target(
        model=card.name,
        model_label=card.label,
        params=card.parameter_count(),
        base=str(card.folder),
        dtype=dtype,
        **{**own, "loss": BASE, **facts},
    )


def _trained(card: ModelCard, cell: Mapping[str, Any], run: RunFrames) -> Target | str:
    """The selected checkpoint of a cell; a sentence if it has none."""
    now = run.current(str(cell["address"]))
    name = f"{cell['model']} {cell['task']} {cell['loss']} seed {cell['seed']}"
    if cell["status"] != "done" or now.receipt is None or now.tested is None:
        return f"{name} is {cell['status']} and is left out."
    if now.checkpoint is None:
        return f"{name} has no weights and is left out: {again(run.path)}."
    return _base(
        card,
        str(cell["recipe"].get("dtype", "float32")),
        kind=str(now.receipt["kind"]),
        path=str(now.checkpoint.resolve()),
        identity={"cell": str(cell["address"]), "weights": now.tested.digest},
        loss=str(cell["loss"]),
        task=str(cell["task"]),
        seed=int(cell["seed"]),
        cell=str(cell["address"]),
        epoch=now.tested.epoch,
    )
