"""A job of `smmd-bench regress`: every missing suite of every checkpoint of one base, in a process
of its own, with one start of the engine and one load of each checkpoint."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lm_eval.api.model
import lm_eval.api.task

from ..contracts import Progress
from ..models.loading import quiet_libraries
from ..storage.files import write_json, write_parquet
from .evaluate import run_suite
from .store import Evaluation
from .suite import Setting, Suite
from .target import Target
from .tasks import load_tasks
from .watched import progress_bars


def evaluations_of(payload: Mapping[str, Any]) -> list[Evaluation]:
    """What a request asks for; its `cells` are the targets."""
    targets = [Target(**content) for content in payload["cells"]]
    setting = Setting(**payload["setting"])
    return [
        Evaluation(targets[at], Suite(**suite), setting) for at, suite in payload["evaluations"]
    ]


def run_job(payload: Mapping[str, Any], progress: Progress) -> dict[Path, Exception]:
    """Evaluate; returns the error of each evaluation that failed, by its folder."""
    quiet_libraries()
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    run = Path(payload["run"])
    wanted = evaluations_of(payload)
    failures: dict[Path, Exception] = {}
    tasks: dict[str, dict[str, Any]] = {}
    for suite in {e.suite.name: e.suite for e in wanted}.values():
        progress(f"load {suite.name}", 0, 1)
        try:
            tasks[suite.name] = load_tasks(suite)
        except Exception as error:
            traceback.print_exc()
            failures |= {e.folder(run): error for e in wanted if e.suite == suite}
        progress(f"load {suite.name}", 1, 1)
    wanted = [e for e in wanted if e.suite.name in tasks]
    if not wanted:
        return failures
    with _opened(wanted, progress) as load:
        for target in {id(e.target): e.target for e in wanted}.values():
            mine = [e for e in wanted if e.target is target]
            failures |= _evaluate(run, target, mine, load, tasks, progress)
    return failures


def _evaluate(
    run: Path,
    target: Target,
    evaluations: Sequence[Evaluation],
    load: Callable[[Target], Any],
    tasks: Mapping[str, Mapping[str, Any]],
    progress: Progress,
) -> dict[Path, Exception]:
    """All suites of one checkpoint, loaded once; the error of each that failed, by its folder."""
    try:
        model = load(target)
    except Exception as error:
        traceback.print_exc()
        return {e.folder(run): error for e in evaluations}
    failures = {}
    for evaluation in evaluations:
        try:
            with (
                progress_bars([lm_eval.api.task, lm_eval.api.model], _silent, ""),
                progress_bars(_modules(model), progress, evaluation.label),
            ):
                _write(run, evaluation, model, tasks[evaluation.suite.name], progress)
        except Exception as error:
            traceback.print_exc()
            failures[evaluation.folder(run)] = error
    return failures


def _write(
    run: Path,
    evaluation: Evaluation,
    model: Any,
    tasks: Mapping[str, Any],
    progress: Progress,
) -> None:
    found = run_suite(model, tasks, evaluation.setting.limit)
    folder, address = evaluation.folder(run), evaluation.address
    documents, truncated = len(found.samples), int(found.samples["truncated"].sum())
    if truncated:
        whole = (
            "every prompt" if truncated == documents else f"{truncated:,} of {documents:,} prompts"
        )
        progress(
            f"{evaluation.label}: {whole} had more tokens than the context of {model.max_length:,} "
            "and lost the first of them, so fewer shots than asked for were seen.",
            0,
            0,
        )
    write_json(folder / "suite.json", evaluation.to_dict())
    write_parquet(folder / "samples.parquet", found.samples, address)
    write_json(
        folder / "results.json",
        {
            "address": address,
            "shots": found.shots,
            "documents": documents,
            "truncated": truncated,
            "context": int(model.max_length),
            "rows": found.rows,
        },
    )


@contextmanager
def _opened(
    evaluations: Sequence[Evaluation], progress: Progress
) -> Iterator[Callable[[Target], Any]]:
    first = evaluations[0]
    size = first.setting.batch_size
    if first.setting.engine == "hf":
        from .hf_backend import open_hf

        with open_hf(first.target.base, size) as load:
            yield load
        return
    from .vllm_backend import open_vllm

    progress("start engine", 0, 1)
    with open_vllm(first.target.base, first.target.dtype, size) as load:
        progress("start engine", 1, 1)
        yield load


def _modules(model: Any) -> list[Any]:
    """The modules of lm-eval's classes that a model has, where their bars are."""
    names = {base.__module__ for base in type(model).__mro__}
    return [sys.modules[name] for name in names if name.startswith("lm_eval.models")]


def _silent(what: str, done: int, total: int) -> None:
    """For what takes a moment only: building and tokenising the prompts."""
