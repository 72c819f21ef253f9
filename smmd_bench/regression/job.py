"""A job of `smmd-bench regress` (`python -m smmd_bench.regression.job`): every missing suite of
every checkpoint of one base, with one start of the engine and one load of each checkpoint."""

from __future__ import annotations

import io
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import lm_eval.api.model
import lm_eval.api.task
from tqdm import tqdm

from ..contracts import Progress
from ..models.loading import quiet_libraries
from ..run.process import start
from ..storage.files import write_json, write_parquet
from .evaluate import run_suite
from .evaluation import Evaluation, Setting, Suite, Target
from .lm_eval_models import LoadModel, open_backend
from .load_tasks import load_tasks


def evaluations_of(payload: Mapping[str, Any]) -> list[Evaluation]:
    """What a request asks for."""
    return [
        Evaluation(Target(**e["target"]), Suite(**e["suite"]), Setting(**e["setting"]))
        for e in payload["evaluations"]
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
    first, setting = wanted[0].target, wanted[0].setting
    say = progress if setting.engine == "vllm" else _silent  # hf has nothing to start
    say("start engine", 0, 1)
    with open_backend(setting.engine, first.base, first.dtype, setting.batch_size) as load:
        say("start engine", 1, 1)
        for _, mine in groupby(wanted, key=lambda evaluation: evaluation.target):
            failures |= _evaluate(run, [*mine], load, tasks, progress)
    return failures


def _evaluate(
    run: Path,
    evaluations: Sequence[Evaluation],
    load: LoadModel,
    tasks: Mapping[str, Mapping[str, Any]],
    progress: Progress,
) -> dict[Path, Exception]:
    """All suites of one checkpoint, loaded once; the error of each that failed, by its folder."""
    try:
        model = load(evaluations[0].target)
    except Exception as error:
        traceback.print_exc()
        return {e.folder(run): error for e in evaluations}
    classes = {base.__module__ for base in type(model).__mro__}
    modules = [sys.modules[name] for name in classes if name.startswith("lm_eval.models")]
    failures = {}
    for evaluation in evaluations:
        try:
            with (
                _progress_bars([lm_eval.api.task, lm_eval.api.model], _silent, ""),
                _progress_bars(modules, progress, evaluation.label),
            ):
                _write(run, evaluation, model, tasks[evaluation.suite.name], progress)
        except Exception as error:
            traceback.print_exc()
            failures[evaluation.folder(run)] = error
    return failures


def _write(
    run: Path, evaluation: Evaluation, model: Any, tasks: Mapping[str, Any], progress: Progress
) -> None:
    found = run_suite(model, tasks, evaluation.setting.limit)
    folder, address = evaluation.folder(run), evaluation.address
    documents, truncated = len(found.samples), int(found.samples["truncated"].sum())
    if truncated:
        some = f"{truncated:,} of {documents:,} prompts"
        progress(
            f"{evaluation.label}: {'every prompt' if truncated == documents else some} had more "
            f"tokens than the context of {model.max_length:,} and lost the first of them, so fewer "
            "shots than asked for were seen.",
            0,
            0,
        )
    write_json(folder / "suite.json", evaluation.to_dict())
    write_parquet(folder / "samples.parquet", found.samples, address)
    results = {
        "address": address,
        "shots": found.shots,
        "documents": documents,
        "truncated": truncated,
        "context": int(model.max_length),
        "rows": found.rows,
    }
    write_json(folder / "results.json", results)


def _silent(what: str, done: int, total: int) -> None:
    """For what takes a moment only, such as building and tokenising the prompts."""


@contextmanager
def _progress_bars(modules: Iterable[ModuleType], progress: Progress, what: str) -> Iterator[None]:
    """Inside, the bars of lm-eval's modules report to `progress`."""

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no thread

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named, file=io.StringIO(), mininterval=0)

        def display(self, *_: Any, **__: Any) -> None:
            if self.total:
                progress(what, self.n, self.total)

    with ExitStack() as stack:
        for module in modules:
            if hasattr(module, "tqdm"):
                stack.enter_context(patch.object(module, "tqdm", Bar))
        yield


def main() -> int:
    """Run one job; status 1 if any of its evaluations failed."""
    with start() as (request, events):
        try:
            failures = run_job(request, events.progress)
        except Exception as error:  # the engine did not start: nothing was evaluated
            traceback.print_exc()
            run = Path(request["run"])
            wanted = evaluations_of(request)
            failures = {e.folder(run): error for e in wanted if not e.is_done(run)}
        return events.record(failures, "regress")


if __name__ == "__main__":
    sys.exit(main())
