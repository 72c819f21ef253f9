"""`smmd-bench regress`: what is missing is evaluated in jobs, one a checkpoint, then compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from ..contracts import Executor, Job, JobQueue, Progress, Resources
from ..errors import UserError
from ..plugin_system.registry import engine_identity, load, load_engine, plugin_files
from ..results.frames import read_run
from ..run.run_directory import Outcome, RunDirectory, record_failure
from ..storage.cell import failure_file
from ..storage.files import read_json
from .comparison import write_comparisons
from .evaluation import Evaluation, Target
from .suites import Suite, installed_version

_MEMORY_GB = 4.0


def plan(
    targets: Sequence[Target], suites: Sequence[Suite], engine: str, limit: int | None
) -> list[Evaluation]:
    """Every suite with every checkpoint; `auto` is vLLM on a GPU (where it can run the models),
    else hf.

    Raises UserError where vLLM is asked for and cannot run a model.
    """
    versions = {"lm-eval": installed_version()}
    refuses = getattr(load_engine("vllm"), "refuses", lambda _: None) if engine != "hf" else None
    reasons = {t.model: refuses(Path(t.base)) for t in targets} if refuses else {}
    refused = next((f"{name} ({why})" for name, why in reasons.items() if why), None)
    if engine == "auto":
        import torch

        engine = "vllm" if torch.cuda.is_available() and refused is None else "hf"
    elif refused is not None:
        raise UserError(f"--engine vllm cannot run {refused}: give --engine hf.")
    if engine == "vllm":
        identity = engine_identity("vllm")
        versions["vllm"] = str(identity.get("library", identity.get("version")))
    else:
        versions["transformers"] = version("transformers")
    return [Evaluation(t, suite, limit, engine, versions) for t in targets for suite in suites]


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
        missing = [e for e in evaluations if not e.is_done(path)]
        failures = {e.address: failure_file(path, e.address) for e in evaluations}
        for file in failures.values():
            file.unlink(missing_ok=True)
        groups = [[*group] for _, group in groupby(missing, key=lambda e: e.target)]
        jobs = JobQueue(job_for(group, batch_size) for group in groups)
        for result in runner.run(jobs, path, progress) if groups else ():
            for evaluation in missing:
                ended = evaluation.is_done(path) or failures[evaluation.address].exists()
                if result.failure and evaluation.address in result.job.cells and not ended:
                    record_failure(path, evaluation.address, "regress", result.failure)
        write_comparisons(read_run(path))
    failed: dict[str, str] = {}
    for evaluation in evaluations:
        if not evaluation.is_done(path):
            content = read_json(failures[evaluation.address]) or {}
            reason = str(content.get("error", "the process ended without an error"))
            failed[evaluation.label] = reason
    return Outcome(path, bool(missing), failed)


def job_for(evaluations: Sequence[Evaluation], batch_size: int | None) -> Job:
    """The job that does evaluations of one checkpoint."""
    return Job(
        stage="regress",
        label=", ".join(e.label for e in evaluations),
        cells=tuple(e.address for e in evaluations),
        payload={
            "plugins": [str(file) for file in plugin_files()],
            "cells": [
                {name: getattr(e.target, name) for name in ("model", "model_label", "task")}
                for e in evaluations
            ],
            "evaluations": [asdict(e) for e in evaluations],
            "batch_size": batch_size,
        },
        module="smmd_bench.regression.evaluate",
        resources=Resources(1, None, _MEMORY_GB),
    )
