"""What `smmd-bench regress` leaves in a synthetic run, from a seeded generator."""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from smmd_bench.regression.comparison import write_comparisons
from smmd_bench.results.frames import read_run
from smmd_bench.storage.files import write_json, write_parquet

SIZES = {"mmlu_stem": 3153, "mmlu_humanities": 4705, "mmlu_social_sciences": 3077,
         "mmlu_other": 3107}  # fmt: skip
"""Questions of each group; 14,042 in all."""
SKILL = {"base": 0.62, "ce": 0.61, "smmd": 0.615, "ntl": 0.55}


def write_checks(
    run: Path,
    suite: str = "mmlu",
    *,
    limit: int | None = None,
    shots: int = 5,
    truncated: int = 0,
) -> None:
    """Evaluate the base and every trained cell of the run; each against CE, CE against the base."""
    frames = read_run(run)
    cells = frames.cells
    for cell in cells.drop_duplicates(["model", "loss", "seed"]).to_dict("records"):
        model, loss, seed = (cell[name] for name in ("model", "loss", "seed"))
        origin = repr((model, loss, seed, suite, limit, "hf"))
        digest = zlib.crc32(origin.encode())
        address = f"{digest:016x}"
        folder = run / "regression" / address
        frame = _answers(suite, loss, seed, limit)
        write_parquet(folder / "samples.parquet", frame)
        tested = frames.current(cell["address"]).tested
        suite_facts = {"suite": suite, "shots": shots, "limit": limit}
        content = {"address": address, **suite_facts, **_facts(cell, tested.digest)}
        write_json(folder / "suite.json", content)
        results = {
            "address": address, "shots": shots, "documents": len(frame),
            "truncated": truncated, "context": 2048, "rows": _rows(suite, frame),
        }  # fmt: skip
        write_json(folder / "results.json", results)
    write_comparisons(read_run(run))


def _facts(cell: Any, weights: str) -> dict[str, Any]:
    """What is said of the checkpoint of a cell."""
    address = cell["address"]
    facts = {
        "model": cell["model"], "model_label": cell["model"], "params": 1_540_000_000,
        "loss": cell["loss"], "seed": cell["seed"], "engine": "transformers",
    }  # fmt: skip
    if cell["loss"] == "base":
        identity = {"base": {"digest": "d"}}
        of_cell = dict.fromkeys(("task", "cell", "epoch"))
        return {**facts, **of_cell, "kind": "base", "identity": identity}

    identity = {"cell": address, "weights": weights}
    of_cell = {"task": cell["task"], "cell": address, "epoch": 4}
    return {**facts, **of_cell, "kind": "lora", "identity": identity}


def _answers(suite: str, loss: str, seed: int, limit: int | None) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    groups = SIZES if suite == "mmlu" else {suite: 200}
    sizes = {name: min(size, limit or size) for name, size in groups.items()}
    subtasks = np.repeat(list(sizes), list(sizes.values()))
    number = np.concatenate([np.arange(size) for size in sizes.values()])
    ease = rng.random(len(subtasks))
    noise = np.random.default_rng(zlib.crc32(loss.encode())).normal(
        0, 0.03, len(subtasks)
    )
    right = (ease + noise < SKILL[loss]).astype(float)
    frame = pd.DataFrame({"subtask": subtasks, "doc_id": number, "truncated": False})
    if suite == "gsm8k":
        return frame.assign(**{"exact_match,strict-match": right})
    return frame.assign(acc=right)


def _rows(suite: str, frame: pd.DataFrame) -> list[dict[str, Any]]:
    metric = str(frame.columns[3])
    parts = {
        str(name): part[metric] for name, part in frame.groupby("subtask", sort=False)
    }
    parts[suite] = frame[metric]
    kind = "group" if suite == "mmlu" else "task"
    return [
        {
            "name": name, "kind": kind, "metric": metric, "unit": "percent",
            "value": 100 * float(values.mean()),
            "stderr": 100 * float(values.std()) / len(values) ** 0.5, "n": len(values),
        }
        for name, values in parts.items()
    ]  # fmt: skip
