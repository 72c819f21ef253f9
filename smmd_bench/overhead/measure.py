"""Measures all rows by turns, a process each, and keeps each once it is done.

OUT/manifest.json          settings, versions, hardware, command
OUT/rows/REPEAT-ROW.json   row, repeat, device, peak_bytes, steps: wall and CPU seconds of each; or
                           row, repeat, error
OUT/logs/                  what each process was asked, and what it wrote
"""

import json
import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..contracts import Progress
from ..errors import UserError
from ..models.circumstances import circumstances
from ..run.process import WorkerProcess
from ..run.run_directory import RunDirectory
from ..storage.addresses import file_word
from ..storage.files import read_json, write_json
from .settings import CE, STOCK, OverheadSettings

_WORKER = "smmd_bench.overhead.worker"
COLUMNS = ("row", "repeat", "device", "peak_bytes", "steps", "error")


def measure(
    settings: OverheadSettings, folder: Path, progress: Progress, plugins: Sequence[Path] = ()
) -> bool:
    """Measure the repeats that are missing, or in which a row failed; whether there were any.

    The rows of a repeat run one after the other, in an order that changes. A row that fails has its
    reason in its file; the others go on. Raises UserError if the folder holds anything else.
    """
    with RunDirectory(folder).locked():
        _claim(folder, settings)
        done = read_rows(folder)
        whole = done[done["error"].isna()].groupby("repeat")["row"].agg(set).to_dict()
        missing = [k for k in range(settings.repeats) if whole.get(k, set()) != {*settings.rows}]
        for repeat in missing:
            rows = list(settings.rows)
            random.Random(repeat).shuffle(rows)
            for row in rows:
                name = f"{repeat}-{file_word(row)}"
                asked = {"row": row, "repeat": repeat}
                request = {"settings": vars(settings), "plugins": [*map(str, plugins)], **asked}
                worker = WorkerProcess(_WORKER, request, folder / "logs", name)
                with closing(worker):
                    failure = worker.follow(progress)
                found = worker.found if failure is None else {"error": failure.rstrip(".")}
                write_json(folder / "rows" / f"{name}.json", {**asked, **found})
        return bool(missing)


def read_rows(folder: Path) -> pd.DataFrame:
    """What was measured so far: one line a row and repeat."""
    files = sorted((folder / "rows").glob("*.json"))
    return pd.DataFrame([read_json(file) or {} for file in files], columns=list(COLUMNS))


def _claim(folder: Path, settings: OverheadSettings) -> None:
    """Write the manifest, or check that the folder is this measurement's."""
    manifest, wanted = read_json(folder / "manifest.json"), json.loads(json.dumps(vars(settings)))
    if manifest is None:
        content = {"name": settings.folder.name, **circumstances(), "overhead": wanted}
        write_json(folder / "manifest.json", content)
    elif manifest.get("overhead") != wanted:
        raise UserError(
            f"The output folder {folder} belongs to another measurement or experiment "
            f"({manifest['name']}): choose another with --out."
        )


def overhead_frame(rows: pd.DataFrame, settings: OverheadSettings) -> pd.DataFrame:
    """One line a row: times in ms, peak memory in GB (10^9 bytes), ratios to CE here and to stock.

    A time is the median of the steps of a process. Times are means and sample deviations over
    repeats; a ratio is the median over repeats, with the smallest and the largest one.
    """
    done = rows[rows["error"].isna()]
    medians = [np.median(steps[settings.steps // 4 :], axis=0) for steps in done["steps"]]
    wall, cpu = np.reshape(medians, (-1, 2)).T
    values = {"wall": 1000 * wall, "cpu": 1000 * cpu, "memory": done["peak_bytes"] / 1e9}
    tables = {  # [repeats, rows]
        name: done.assign(value=value).pivot(index="repeat", columns="row", values="value")
        .astype("float64").reindex(columns=list(settings.rows))
        for name, value in values.items()
    }  # fmt: skip
    found: dict[str, Any] = {"repeats": tables["wall"].count()}
    found["memory_gb"] = tables["memory"].median()
    for clock in ("wall", "cpu"):
        found[f"{clock}_ms"] = tables[clock].mean()
        found[f"{clock}_ms_deviation"] = tables[clock].std()
    for against, row in {"ce": CE, "stock": STOCK}.items():
        for name, table in tables.items():
            ratios, to = table.div(table[row], axis=0), f"{name}_to_{against}"
            found |= {to: ratios.median(), f"{to}_low": ratios.min(), f"{to}_high": ratios.max()}
    said: dict[str, list[str]] = {row: [] for row in settings.rows}
    for line in rows[rows["error"].notna()].to_dict("records"):
        said[line["row"]].append(f"repeat {line['repeat'] + 1}: {line['error']}")
    found["error"] = pd.Series({row: "; ".join(errors) for row, errors in said.items()})
    return pd.DataFrame(found).rename_axis("row").reset_index()
