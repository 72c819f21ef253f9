"""Which checkpoints of a run are evaluated: the base of each model, and each finished cell.

An evaluation is one suite with one checkpoint, kept in `RUN/regression/ADDRESS/`:

suite.json       what it is of: checkpoint, suite, limit, engine, versions
samples.parquet  one row a document: subtask, doc_id, doc_hash, its score by each metric, truncated
results.json     one row a task or group and metric: value and standard error (percent)

What is missing is evaluated in jobs, one a checkpoint, and compared question by question in
`RUN/compare/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from ..contracts import Executor, Job, JobQueue, Progress, Resources
from ..errors import UserError, did_you_mean
from ..plugin_system.registry import engine_identity, load, load_engine, plugin_files
from ..results.frames import RunFrames, read_run
from ..results.summary import again, card_of_run, require_plugins
from ..run.run_directory import Outcome, RunDirectory, record_failure
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
        return address({"version": VERSION, **{name: self.facts[name] for name in _KEY}})

    @property
    def label(self) -> str:
        """How people read of it: `mmlu Qwen2.5-0.5B gsm8k ce seed 0`."""
        return f"{self.suite.name} {self.target.label}"

    def folder(self, run: Path) -> Path:
        """Where its files are, all or none."""
        return run / "regression" / self.address


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
    known = {BASE, *cells["loss"], *cells["loss_name"]}
    if unknown := next((loss for loss in losses if loss not in known), None):
        hint = did_you_mean(unknown, known)
        raise UserError(f"No cell of {path} has the loss '{unknown}': {hint}")
    require_plugins(run)
    trained = cells["loss"].isin(losses) | cells["loss_name"].isin(losses) | (not losses)
    trained &= cells["loss"] != BASE
    with_base = not losses or BASE in losses
    found = [
        target
        for model, own in cells.groupby("model", observed=True)
        for target in _targets(str(model), own, own[trained], run)
    ]
    targets = [t for t in found if isinstance(t, Target) and (with_base or t.facts["cell"])]
    notes = [note for note in found if isinstance(note, str)]
    if not targets:
        raise UserError(f"{path} has no finished cell to evaluate: {' '.join(notes)}")
    return targets, notes


def _targets(
    model: str, own: pd.DataFrame, trained: pd.DataFrame, run: RunFrames
) -> Iterator[Target | str]:
    """The base of a model, then its trained cells; a sentence where a cell has no checkpoint."""
    card = card_of_run(model, run)
    base = str(card.folder)
    same = {"model": card.name, "model_label": card.label, "params": card.parameter_count()}
    same["dtype"] = str(own.iloc[0]["recipe"].get("dtype", "float32"))
    none = {"task": None, "seed": 0, "cell": None, "epoch": None}
    identity = {"base": dict(card.identity)}
    facts = {**same, **none, "kind": "base", "loss": BASE, "identity": identity}
    yield Target(f"{card.label} {BASE}", base, base, facts)
    for cell in trained.to_dict("records"):
        key = str(cell["address"])
        now, name = run.current(key), f"{cell['task']} {cell['loss']} seed {cell['seed']}"
        if cell["status"] != "done" or now.receipt is None or now.tested is None:
            yield f"{model} {name} is {cell['status']} and is left out."
        elif now.checkpoint is None:
            yield f"{model} {name} has no weights and is left out: {again(run.path)}."
        else:
            facts = {
                **same,
                "dtype": str(cell["recipe"].get("dtype", "float32")),
                **{"task": str(cell["task"]), "loss": str(cell["loss"]), "seed": cell["seed"]},
                **{"cell": key, "epoch": now.tested.epoch, "kind": now.receipt["kind"]},
                "identity": {"cell": key, "weights": now.tested.digest},
            }
            yield Target(f"{card.label} {name}", base, str(now.checkpoint.resolve()), facts)


def plan(
    targets: Sequence[Target], suites: Sequence[Suite], engine: str, limit: int | None
) -> list[Evaluation]:
    """Every suite with every checkpoint; `auto` is vLLM on a GPU (where it can run the models),
    else transformers. Raises UserError where vLLM is asked for and cannot run a model."""
    if engine != "transformers":
        import torch

        vllm: Any = load_engine("vllm")
        reasons = {t.facts["model"]: vllm.refuses(Path(t.base)) for t in targets}
        refused = next((f"{model} ({why})" for model, why in reasons.items() if why), None)
        if engine == "vllm" and refused:
            raise UserError(f"--engine vllm cannot run {refused}: give --engine transformers.")
        if engine == "auto":
            engine = "vllm" if torch.cuda.is_available() and not refused else "transformers"
    library = engine_identity("vllm")["library"] if engine == "vllm" else version(engine)
    versions = {"lm-eval": installed_version(), engine: library}
    how = {"limit": limit, "engine": engine, "versions": versions}
    found = []
    for target in targets:
        for suite in suites:
            asked = {"suite": suite.name, "suite_version": suite.version, "shots": suite.shots}
            facts = {**target.facts, **asked, "data": dict(suite.data), **how}
            found.append(Evaluation(target, suite, facts))
    return found


def regress(
    path: Path,
    evaluations: Sequence[Evaluation],
    progress: Progress,
    *,
    executor: str = "local",
    batch_size: int | None = None,
) -> Outcome:
    """Make every evaluation that the run does not have yet, and compare them."""
    runner: Executor = load("executors", executor)
    with RunDirectory(path).locked():
        missing = {e.address: e for e in evaluations if not e.folder(path).exists()}
        for key in missing:
            failure_file(path, key).unlink(missing_ok=True)
        groups = [[*group] for _, group in groupby(missing.values(), key=lambda e: e.target)]
        payload = {"plugins": [*map(str, plugin_files())], "batch_size": batch_size}
        jobs = JobQueue(_job(group, payload) for group in groups)
        for result in runner.run(jobs, path, progress) if groups else ():
            for key in result.job.cells if result.failure else ():
                if not missing[key].folder(path).exists() and not failure_file(path, key).exists():
                    record_failure(path, key, "regress", str(result.failure))
        write_comparisons(read_run(path))
    failures = {e.label: read_json(failure_file(path, key)) for key, e in missing.items()}
    failed = {label: str(content["error"]) for label, content in failures.items() if content}
    return Outcome(path, bool(missing), failed)


def _job(evaluations: Sequence[Evaluation], payload: Mapping[str, Any]) -> Job:
    """The job that does evaluations of one checkpoint."""
    return Job(
        stage="regress",
        label=", ".join(e.label for e in evaluations),
        cells=tuple(e.address for e in evaluations),
        payload={**payload, "evaluations": [asdict(e) for e in evaluations]},
        module="smmd_bench.regression.evaluate",
        resources=Resources(1, None, memory_gb=4.0),
    )
