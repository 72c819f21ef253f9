"""A record of every_eval_ever (schema 0.3.0), and its samples, in the layout of its datastore.

`data/smmd-bench/local/NAME/UUID.json` has every metric with its interval; `UUID_samples.jsonl` has
one line an example, of the first metric. https://github.com/evaleval/every_eval_ever has the
schema; the tests hold both files against it. Accuracies are shares, from 0 to 1.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import uuid
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...scoring.statistics import RESAMPLES, is_share
from ...storage.files import write_text
from .exported_cell import ExportedCell
from .measured_metric import MeasuredMetric

SCHEMA = "0.3.0"
FOLDER = "every_eval_ever"
_COLLECTION = "smmd-bench"
_OWNER = "local"
"""In place of the hub's user or organisation: the model is on no hub yet."""


def write_every_eval_ever(cell: ExportedCell, folder: Path) -> None:
    """Write the record of a cell; its UUID follows from the completions and how they are scored."""
    stamp = hashlib.sha256(str(cell.now.measure_stamp).encode()).digest()[:16]
    name, now = str(uuid.UUID(bytes=stamp, version=4)), str(int(time.time()))
    model = f"{_OWNER}/{cell.name}"
    place = f"data/{_COLLECTION}/{model}"
    record: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": f"{_COLLECTION}/{model}/{now}",
        "evaluation_timestamp": cell.created.isoformat(),
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": "smmd-bench",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "first_party",
        },
        "eval_library": {"name": "smmd-bench", "version": version("smmd-bench")},
        "model_info": _model_info(cell, model),
        "evaluation_results": [_result(cell, metric) for metric in cell.metrics],
    }
    lines = [json.dumps(s, ensure_ascii=False, allow_nan=False) for s in _samples(cell, record)]
    if lines:
        text = "".join(f"{line}\n" for line in lines)
        file = f"{place}/{name}_samples.jsonl"
        write_text(folder / FOLDER / file, text)
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": file,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256((folder / FOLDER / file).read_bytes()).hexdigest(),
            "total_rows": len(lines),
        }
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / FOLDER / place / f"{name}.json", f"{text}\n")


def _model_info(cell: ExportedCell, model: str) -> dict[str, Any]:
    row = cell.row
    info: dict[str, Any] = {
        "name": cell.name,
        "id": model,
        "developer": _OWNER,
        "additional_details": {
            "deployment_type": "self_deployed",
            "model_availability": "unknown",
            "base_model": cell.base_name,
            "loss": str(row["loss"]),
            "seed": str(row["seed"]),
            **{f"recipe_{key}": str(value) for key, value in row["recipe"].items()},
        },
    }
    if cell.engine:
        library = str(cell.engine.get("library", "unknown"))
        info["inference_engine"] = {"name": str(cell.engine["name"]), "version": library}
    return info


def _result(cell: ExportedCell, metric: MeasuredMetric) -> dict[str, Any]:
    low, high = metric.bounds
    share = metric.unit != 1.0
    by_wilson = is_share(metric.metric, cell.frame)
    uncertainty: dict[str, Any] = {"num_samples": metric.n}
    if not by_wilson:
        uncertainty["num_bootstrap_samples"] = RESAMPLES
    if metric.low is not None and metric.high is not None:
        uncertainty["confidence_interval"] = {
            "lower": metric.low * metric.unit,
            "upper": metric.high * metric.unit,
            "confidence_level": 0.95,
            "method": "Wilson score" if by_wilson else "bootstrap over examples",
        }
    if (error := metric.standard_error) is not None:
        uncertainty["standard_error"] = {"value": error, "method": "analytic"}
    return {
        "evaluation_result_id": metric.name,
        "evaluation_name": str(cell.row["task"]),
        "source_data": _source(cell),
        "metric_config": {
            "evaluation_description": (type(metric.metric).__doc__ or metric.name).split("\n")[0],
            "metric_id": metric.name,
            "metric_name": metric.name,
            "metric_unit": "proportion" if share else "points",
            "lower_is_better": metric.metric.better == "lower",
            "score_type": "continuous",
            "min_score": _bound(low),
            "max_score": _bound(high),
        },
        "score_details": {"score": metric.value * metric.unit, "uncertainty": uncertainty},
        "generation_config": {
            "generation_args": {
                "temperature": 0.0,
                "max_tokens": int(
                    cell.generation.get("max_new_tokens") or cell.task.max_new_tokens
                ),
                "execution_command": str(cell.run.manifest.get("command", "")),
            },
            "additional_details": {"num_fewshot": "0", "greedy": "true"},
        },
    }


def _source(cell: ExportedCell) -> dict[str, Any]:
    if cell.dataset is None:
        return {"dataset_name": str(cell.row["task"]), "source_type": "other"}
    return {
        "dataset_name": str(cell.row["task"]),
        "source_type": "hf_dataset",
        "hf_repo": cell.dataset.hub.repository,
        "hf_split": "test",
        "samples_number": len(cell.frame),
    }


def _bound(value: float) -> float | str:
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _samples(cell: ExportedCell, record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One line an example; none where the first metric is no mean over examples."""
    shares = cell.metrics[0].shares if cell.metrics else None
    if shares is None:
        return
    for line, score in zip(cell.frame.to_dict("records"), shares.tolist(), strict=True):
        if math.isnan(score):
            continue
        prompt, target, text = (str(line[k]) for k in ("prompt", "target", "completion"))
        parsed = line.get("parsed")
        read = parsed is not None and not math.isnan(parsed)
        raw = json.dumps({"raw": prompt, "reference": target}, sort_keys=True)
        tokens = [line.get("prompt_tokens"), line.get("completion_tokens")]
        sample = {
            "schema_version": SCHEMA,
            "evaluation_id": record["evaluation_id"],
            "model_id": record["model_info"]["id"],
            "evaluation_name": str(cell.row["task"]),
            "evaluation_result_id": cell.metrics[0].name,
            "sample_id": str(line["uid"]),
            "sample_hash": hashlib.sha256(raw.encode("utf-8", "replace")).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": prompt, "reference": [target]},
            "output": {"raw": [text]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": f"{parsed:.12g}" if read else text,
                    "extraction_method": f"parser of {cell.task.name}" if read else "none",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": score, "is_correct": score == 1.0},
        }
        if all(isinstance(count, int) for count in tokens):
            given, made = map(int, tokens)  # type: ignore[arg-type]
            total = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
            sample["token_usage"] = total
        yield sample
