"""`lm_eval/results_DATE.json` and `samples_TASK_DATE.jsonl`, as lm-eval 0.4.13 writes them.

lm_eval/loggers/evaluation_tracker.py and lm_eval/result_schema.py say the layout. Accuracies are
shares there, from 0 to 1. `truncated` of a sample is ours, 1.0 where the completion was cut off;
`smmd-bench score` reads it again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...storage.addresses import file_word
from ...storage.files import write_text
from .exported_cell import ExportedCell

FOLDER = "lm_eval"


def write_lm_eval_files(cell: ExportedCell, folder: Path) -> None:
    """Write results and samples of a cell."""
    task = file_word(str(cell.row["task"]))
    date = cell.created.replace(tzinfo=None).isoformat().replace(":", "-")
    samples = [*_samples(cell)]
    hashes = (s["doc_hash"] + s["prompt_hash"] + s["target_hash"] for s in samples)
    results = _results(cell, task) | {"task_hashes": {task: _hash("".join(hashes))}}
    text = json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / FOLDER / f"results_{date}.json", text)
    lines = (json.dumps(s, ensure_ascii=False, allow_nan=False) + "\n" for s in samples)
    write_text(folder / FOLDER / f"samples_{task}_{date}.jsonl", "".join(lines))


def _results(cell: ExportedCell, task: str) -> dict[str, Any]:
    n, whole = len(cell.frame), int(cell.task.paper_sizes["test"])
    values: dict[str, Any] = {"alias": task, "name": task, "sample_len": n}
    for metric in cell.metrics:
        values[f"{metric.name},none"] = metric.value * metric.unit
        error = metric.standard_error
        values[f"{metric.name}_stderr,none"] = "N/A" if error is None else error
    higher = {metric.name: metric.metric.better == "higher" for metric in cell.metrics}
    config: dict[str, Any] = {
        "task": task,
        "output_type": "generate_until",
        "test_split": "test",
        "num_fewshot": 0,
        "repeats": 1,
        "generation_kwargs": _generation(cell),
        "metadata": {"version": float(cell.task.version), "spec": str(cell.row["task"])},
    }
    if cell.dataset is not None:
        config["dataset_path"] = cell.dataset.hub.repository
        config["dataset_name"] = cell.dataset.hub.configuration
    seconds = cell.created.timestamp()
    return {
        "results": {task: values},
        "group_subtasks": {task: []},
        "configs": {task: config},
        "versions": {task: float(cell.task.version)},
        "n-shot": {task: 0},
        "higher_is_better": {task: higher},
        "n-samples": {task: {"original": max(n, whole), "effective": n}},
        "config": {
            "model": str(cell.engine.get("name", "smmd-bench")),
            "model_args": {"pretrained": f"local/{cell.name}", "base": cell.base_name},
            "model_num_parameters": cell.params,
            "batch_size": None, "batch_sizes": [], "device": None, "use_cache": None,
            "limit": n if n < whole else None, "bootstrap_iters": 0, "gen_kwargs": {},
            "random_seed": int(cell.row["seed"]),
        },
        "git_hash": "",
        "date": seconds,
        "transformers_version": str(cell.versions.get("transformers", "")),
        "model_source": "smmd-bench",
        "model_name": f"local/{cell.name}",
        "model_name_sanitized": f"local__{cell.name}",
        "system_instruction": None, "system_instruction_sha": None,
        "fewshot_as_multiturn": False, "chat_template": None, "chat_template_sha": None,
    }  # fmt: skip


def _samples(cell: ExportedCell) -> Iterator[dict[str, Any]]:
    """One sample an example. `doc_id` is its position in the split, in whose order they stand."""
    generation = _generation(cell)
    shares = {m.name: m.shares for m in cell.metrics if m.shares is not None}
    for at, line in enumerate(cell.frame.to_dict("records")):
        prompt, target, text = (str(line[k]) for k in ("prompt", "target", "completion"))
        doc = {"uid": str(line["uid"]), "prompt": prompt, "target": target}
        scores = {name: float(values[at]) for name, values in shares.items()}
        scores = {name: value for name, value in scores.items() if not math.isnan(value)}
        yield {
            "doc_id": at,
            "doc": doc,
            "target": target,
            "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": generation}},
            "resps": [[text]],
            "filtered_resps": [text],
            "filter": "none",
            "metrics": [*scores],
            "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False)),
            "prompt_hash": _hash(prompt),
            "target_hash": _hash(target),
            "truncated": float(line.get("finish_reason") == "length"),
            **scores,
        }


def _generation(cell: ExportedCell) -> dict[str, Any]:
    most = int(cell.generation.get("max_new_tokens") or cell.task.max_new_tokens)
    return {"until": [], "do_sample": False, "temperature": 0.0, "max_gen_toks": most}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
