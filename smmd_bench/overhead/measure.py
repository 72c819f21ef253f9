"""Measures all rows by turns, a process each, and keeps each once it is done.

OUT/manifest.json          settings, versions, hardware, command
OUT/rows/REPEAT-ROW.json   row, repeat, device, peak_bytes, operations of a step, and of each of
                           the steps its wall and CPU seconds; or row, repeat, error
OUT/logs/                  what each process was asked, and what it wrote
"""

from __future__ import annotations

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
from ..experiment.provenance import describe_run
from ..run.process import WorkerProcess
from ..run.run_directory import RunDirectory
from ..storage.addresses import file_word
from ..storage.files import read_json, write_json
from .settings import CE, STOCK, OverheadSettings

_WORKER = "smmd_bench.overhead.worker"
COLUMNS = ("row", "repeat", "device", "peak_bytes", "operations", "steps", "error")


def measure(
    settings: OverheadSettings,
    folder: Path,
    progress: Progress,
    plugins: Sequence[Path] = (),
) -> bool:
    """Measure the repeats that are missing, or in which a row failed; whether there were any.

    The rows of a repeat run one after the other, in an order that changes. A row that fails has its
    reason in its file; the others go on. Raises UserError if the folder holds anything else.
    """
    with RunDirectory(folder).locked():
        _claim(folder, settings)
        missing = _find_missing(folder, settings)
        request: dict[str, Any] = {
            "settings": vars(settings),
            "plugins": [str(file) for file in plugins],
        }

        for repeat in missing:
            # Whatever slows the machine down for a while meets another row in each repeat.
            rows = list(settings.rows)
            random.Random(repeat).shuffle(rows)
            for row in rows:
                request["row"] = row
                request["repeat"] = repeat
                _measure_row(folder, request, progress)
        return bool(missing)


def _find_missing(folder: Path, settings: OverheadSettings) -> list[int]:
    """Find the repeats in which a row was not measured: they are measured again as a whole."""
    measured = read_rows(folder)
    measured = measured[measured["error"].isna()]
    rows_of_repeats = measured.groupby("repeat")["row"].agg(set).to_dict()
    complete = {*settings.rows}
    return [
        k for k in range(settings.repeats) if rows_of_repeats.get(k, set()) != complete
    ]


def _measure_row(folder: Path, request: dict[str, Any], progress: Progress) -> None:
    """Train a row in a process of its own, and write its file."""
    row_of_repeat = {key: request[key] for key in ("row", "repeat")}
    name = f"{request['repeat']}-{file_word(request['row'])}"
    worker = WorkerProcess(_WORKER, request, folder / "logs", name)
    with closing(worker):
        failure = worker.follow(progress)

    # The other rows go on; the next command measures this repeat again.
    result = worker.found
    if failure is not None:
        result = {"error": failure.rstrip(".")}
    file = folder / "rows" / f"{name}.json"
    write_json(file, {**row_of_repeat, **result})


def read_rows(folder: Path) -> pd.DataFrame:
    """Read what was measured so far: one line a row and repeat."""
    files = sorted((folder / "rows").glob("*.json"))
    return pd.DataFrame(
        [read_json(file) or {} for file in files], columns=list(COLUMNS)
    )


def _claim(folder: Path, settings: OverheadSettings) -> None:
    """Write the manifest, or check that the folder is this measurement's."""
    manifest = read_json(folder / "manifest.json")
    # a file has lists where the settings have tuples
    wanted = json.loads(json.dumps(vars(settings)))
    if manifest is None:
        content = {"name": settings.folder.name, **describe_run(), "overhead": wanted}
        write_json(folder / "manifest.json", content)
    elif manifest.get("overhead") != wanted:
        raise UserError(
            f"The output folder {folder} belongs to another measurement or experiment "
            f"({manifest['name']}): choose another with --out."
        )


def overhead_frame(rows: pd.DataFrame, settings: OverheadSettings) -> pd.DataFrame:
    """Summarise each row: times in ms, peak memory in GB (10^9 bytes), operations of a step (none
    in an older measurement), ratios to CE and to stock.

    A time is the median of the steps of a process. Times are means and sample deviations over
    repeats; a ratio is the median over repeats, with the smallest and the largest one.
    """
    tables = _tabulate_repeats(rows, settings)
    columns: dict[str, Any] = {"repeats": tables["wall"].count()}
    columns["memory_gb"] = tables["memory"].median()
    operations = rows.groupby("row")["operations"].median()
    columns["operations"] = operations.reindex(list(settings.rows))
    for clock in ("wall", "cpu"):
        columns[f"{clock}_ms"] = tables[clock].mean()
        columns[f"{clock}_ms_deviation"] = tables[clock].std()

    # A ratio is taken within a repeat, so that what changes between repeats cancels.
    for against, row in {"ce": CE, "stock": STOCK}.items():
        for name, table in tables.items():
            ratios = table.div(table[row], axis=0)
            column = f"{name}_to_{against}"
            columns[column] = ratios.median()
            columns[f"{column}_low"] = ratios.min()
            columns[f"{column}_high"] = ratios.max()

    columns["error"] = _collect_errors(rows, settings)
    return pd.DataFrame(columns).rename_axis("row").reset_index()


def _tabulate_repeats(
    rows: pd.DataFrame, settings: OverheadSettings
) -> dict[str, pd.DataFrame]:
    """Tabulate wall and CPU time in ms and memory in GB, each as [repeats, rows]."""
    measured = rows[rows["error"].isna()]
    # The first steps warm caches and the allocator up.
    first = settings.steps // 4
    medians = [np.median(steps[first:], axis=0) for steps in measured["steps"]]
    wall, cpu = np.reshape(medians, (-1, 2)).T  # [rows], also where all rows failed
    measured = measured.assign(
        wall=1000 * wall, cpu=1000 * cpu, memory=measured["peak_bytes"] / 1e9
    )

    tables = {}
    for name in ("wall", "cpu", "memory"):
        table = measured.pivot(index="repeat", columns="row", values=name)
        table = table.astype("float64")
        tables[name] = table.reindex(columns=list(settings.rows))
    return tables


def _collect_errors(rows: pd.DataFrame, settings: OverheadSettings) -> pd.Series[str]:
    """Collect what failed of each row, by repeat; empty where nothing did."""
    errors: dict[str, list[str]] = {row: [] for row in settings.rows}
    for failed in rows[rows["error"].notna()].to_dict("records"):
        # Repeats count from 0 in files, and from 1 for people.
        sentence = f"repeat {failed['repeat'] + 1}: {failed['error']}"
        errors[failed["row"]].append(sentence)
    return pd.Series({row: "; ".join(sentences) for row, sentences in errors.items()})
