"""`smmd-bench regress`: what is missing is evaluated in jobs, then compared."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from ..contracts import Executor, Job, JobQueue, Progress, Resources
from ..errors import UserError
from ..plugin_system.registry import engine_identity, load, load_engine, plugin_files
from ..results.frames import read_run
from ..run.run_directory import Outcome, RunDirectory, record_failure
from ..storage.files import read_json
from .comparison import write_comparisons
from .evaluation import Evaluation, Setting, Suite, Target, plan
from .suite_names import installed_version

_MEMORY_GB = 4.0


def find_setting(
    engine: str, limit: int | None, batch_size: int | None, targets: Sequence[Target]
) -> Setting:
    """The setting of a call; `auto` is vLLM on a GPU (where it can run the models), else hf.

    Raises UserError where vLLM is asked for and cannot run a model.
    """
    libraries = {"lm-eval": installed_version()}
    if engine == "auto":
        import torch

        engine = "vllm" if torch.cuda.is_available() and _refused(targets) is None else "hf"
    if engine == "vllm":
        if (reason := _refused(targets)) is not None:
            raise UserError(f"--engine vllm cannot run {reason}: give --engine hf.")
        identity = engine_identity("vllm")
        libraries["vllm"] = str(identity.get("library", identity.get("version")))
    else:
        libraries["transformers"] = version("transformers")
    return Setting(limit, engine, libraries, batch_size)


def regress(
    path: Path,
    targets: Sequence[Target],
    suites: Sequence[Suite],
    setting: Setting,
    progress: Progress,
    *,
    executor: str = "local",
) -> Outcome:
    """Evaluate every suite with every target, unless the run has the result already."""
    run = RunDirectory(path)
    runner: Executor = load("executors", executor)
    evaluations = plan(targets, suites, setting)
    with run.locked():
        for leftover in (path / "regression").glob("*/.*.part"):  # of a killed process
            leftover.unlink()
        missing = [e for e in evaluations if not e.is_done(path)]
        for evaluation in missing:
            shutil.rmtree(evaluation.folder(path), ignore_errors=True)
        groups: dict[tuple[str, str], list[Evaluation]] = {}  # an engine serves each
        for evaluation in missing:
            key = evaluation.target.base, evaluation.target.dtype
            groups.setdefault(key, []).append(evaluation)
        jobs = JobQueue(job_for(group, several=len(groups) > 1) for group in groups.values())
        for result in runner.run(jobs, path, progress) if groups else ():
            for evaluation in missing:
                folder = evaluation.folder(path)
                ended = evaluation.is_done(path) or (folder / "FAILED.json").exists()
                if result.failure and evaluation.address in result.job.cells and not ended:
                    record_failure(folder, "regress", result.failure)
        write_comparisons(read_run(path))
    failed: dict[str, str] = {}
    for e in evaluations:
        if not e.is_done(path):
            label = f"{e.label} ({e.address})" if e.label in failed else e.label
            content = read_json(e.folder(path) / "FAILED.json") or {}
            failed[label] = str(content.get("error", "the process ended without an error"))
    return Outcome(path, bool(missing), failed)


def job_for(evaluations: Sequence[Evaluation], *, several: bool = False) -> Job:
    """The job that does evaluations of one base, of `several` that are in the run."""
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
        },
        module="smmd_bench.regression.job",
        resources=Resources(1, None, _MEMORY_GB),
        place=evaluations[0].target.model_label if several else "",
    )


def _refused(targets: Sequence[Target]) -> str | None:
    """A model that vLLM cannot run, and why; None: nothing is known against any."""
    refuses = getattr(load_engine("vllm"), "refuses", lambda _: None)
    for target in targets:
        if (reason := refuses(Path(target.base))) is not None:
            return f"{target.model} ({reason})"
    return None
