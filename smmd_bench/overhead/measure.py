"""Measures all rows, repeat by repeat, a process each, and keeps each repeat once it is done.

OUT/manifest.json    settings, versions, hardware, command
OUT/steps.parquet    row, repeat, step (from 1), wall_seconds, cpu_seconds, dropped
OUT/runs.parquet     row, repeat, peak_bytes, device, threads, error: one line a row and repeat
OUT/logs/            what each process was asked, and what it wrote
"""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

from ..contracts import Progress
from ..errors import UserError
from ..models.circumstances import circumstances
from ..run.process import WorkerProcess, threads_of
from ..run.run_directory import RunDirectory
from ..storage.files import read_json, write_json, write_parquet
from .settings import CE, STOCK, OverheadSettings

COLUMNS = {
    "steps": ["row", "repeat", "step", "wall_seconds", "cpu_seconds", "dropped"],
    "runs": ["row", "repeat", "peak_bytes", "device", "threads", "error"],
}
_TYPES = {"peak_bytes": "Int64", "threads": "Int64", "device": "str", "error": "str"}


def measure(
    settings: OverheadSettings, folder: Path, progress: Progress, plugins: Sequence[Path] = ()
) -> bool:
    """Measure the repeats that are missing, or in which a row failed; whether there were any.

    The rows of a repeat run one after the other, in an order that changes. A row that fails has its
    reason in runs.parquet; the others go on. Raises UserError if the folder holds anything else.
    """
    with RunDirectory(folder).locked():
        _claim(folder, settings)
        missing = missing_repeats(settings, folder)
        for repeat in missing:
            rows = list(settings.rows)
            random.Random(f"{settings.seed} {repeat}").shuffle(rows)
            label, total = f"repeat {repeat + 1} of {settings.repeats}", settings.steps * len(rows)
            found: dict[str, dict[str, Any]] = {}
            for done, row in enumerate(rows):

                def report(step: int, done: int = done) -> None:
                    progress(label, done * settings.steps + step, total)  # noqa: B023

                report(0)
                found[row] = _measure_row(settings, row, repeat, folder, plugins, report)
            # A repeat is done once it is in runs.parquet, which is written last.
            for name, new in _frames(settings, repeat, found).items():
                kept = read_frames(folder)[name]
                parts = [f for f in (kept[kept["repeat"] != repeat], new) if not f.empty] or [new]
                joined = pd.concat(parts).sort_values("repeat", kind="stable", ignore_index=True)
                write_parquet(folder / f"{name}.parquet", joined)
        return bool(missing)


def _measure_row(
    settings: OverheadSettings,
    row: str,
    repeat: int,
    folder: Path,
    plugins: Sequence[Path],
    report: Callable[[int], None],
) -> dict[str, Any]:
    """What the process of a row says at its end, and as `error` why it ended too early."""
    name = f"{repeat}-" + re.sub(r"[^\w.-]", "-", row).strip("-")
    request = {"settings": settings.to_dict(), "row": row, "repeat": repeat}
    worker = WorkerProcess(
        "smmd_bench.overhead.worker",
        {**request, "plugins": [str(file) for file in plugins]},
        folder / "logs",
        name,
        environment=threads_of(settings.threads),
    )
    found: dict[str, Any] = {}
    with closing(worker):
        while (event := worker.hear()) is not None:
            if event["event"] == "progress":
                report(event["done"])
            elif event["event"] == "done":
                found = event
        failure = worker.ending()
    return found if failure is None else {"error": failure.rstrip(".")}


def missing_repeats(settings: OverheadSettings, folder: Path) -> list[int]:
    """The repeats that are not there with all their rows."""
    runs = read_frames(folder)["runs"]
    whole = runs[runs["error"].isna()].groupby("repeat")["row"].agg(set).to_dict()
    return [k for k in range(settings.repeats) if whole.get(k, set()) != set(settings.rows)]


def read_frames(folder: Path) -> dict[str, pd.DataFrame]:
    """`steps` and `runs` of a measurement; empty where nothing was measured yet."""
    frames = {}
    for name, columns in COLUMNS.items():
        file = folder / f"{name}.parquet"
        frames[name] = pd.read_parquet(file) if file.exists() else pd.DataFrame(columns=columns)
    return frames


def _frames(
    settings: OverheadSettings, repeat: int, found: Mapping[str, Mapping[str, Any]]
) -> dict[str, pd.DataFrame]:
    """The repeat's lines of steps.parquet (of the rows that got to the end) and runs.parquet."""
    names = "peak_bytes", "device", "threads", "error"
    runs = [[row, repeat, *(found[row].get(name) for name in names)] for row in settings.rows]
    steps = [
        [row, repeat, step, wall, cpu, step <= settings.drop]
        for row in settings.rows
        for step, (wall, cpu) in enumerate(found[row].get("steps", ()), start=1)
    ]
    return {
        "steps": pd.DataFrame(steps, columns=COLUMNS["steps"]),
        "runs": pd.DataFrame(runs, columns=COLUMNS["runs"]).astype(_TYPES),
    }


def _claim(folder: Path, settings: OverheadSettings) -> None:
    """Write the manifest, or check that the folder is this measurement's."""
    manifest = read_json(folder / "manifest.json")
    wanted = json.loads(json.dumps(settings.to_dict()))
    if manifest is None:
        write_json(
            folder / "manifest.json",
            {"name": settings.folder.name, **circumstances(), "overhead": wanted},
        )
    elif manifest.get("overhead") != wanted:
        raise UserError(
            f"The output folder {folder} belongs to another measurement or experiment "
            f"({manifest['name']}): choose another with --out."
        )


def overhead_frame(steps: pd.DataFrame, runs: pd.DataFrame, rows: Sequence[str]) -> pd.DataFrame:
    """One line a row: times in ms, peak memory in GB (10^9 bytes), ratios to CE here and to stock.

    A time is the median of the steps of a process. Times are means and sample deviations over
    repeats; a ratio is the median over repeats, with the smallest and the largest one.
    """
    kept = steps[~steps["dropped"].astype(bool)]
    done = runs[runs["error"].isna()]
    clocks = {name: _by_repeat(kept, f"{name}_seconds") for name in ("wall", "cpu")}
    tables = {**clocks, "memory": _by_repeat(done, "peak_bytes")}
    lines = []
    for row in rows:
        own, peaks = kept[kept["row"] == row], done[done["row"] == row]["peak_bytes"].dropna()
        line: dict[str, Any] = {
            "row": row,
            "repeats": own["repeat"].nunique(),
            "steps": len(own),
            "memory_gb": float(peaks.median()) / 1e9 if len(peaks) else None,
        }
        for clock, table in clocks.items():
            times = 1000 * table[row] if row in table else pd.Series(dtype="float64")
            line |= {f"{clock}_ms": times.mean(), f"{clock}_ms_deviation": times.std(ddof=1)}
        for name, against in {"ce": CE, "stock": STOCK}.items():
            for what, table in tables.items():
                both = {row, against} <= {*table.columns}
                ratios = (table[row] / table[against]).dropna() if both else pd.Series(dtype=float)
                found = [ratios.median(), ratios.min(), ratios.max()]
                names = (f"{what}_to_{name}{end}" for end in ("", "_low", "_high"))
                line |= zip(names, found, strict=True)
        errors = runs[(runs["row"] == row) & runs["error"].notna()]
        said = zip(errors["repeat"], errors["error"], strict=True)
        line["error"] = "; ".join(f"repeat {repeat + 1}: {error}" for repeat, error in said)
        lines.append(line)
    return pd.DataFrame(lines)


def _by_repeat(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """The median of a column by repeat and row."""
    return frame.astype({column: "float64"}).groupby(["repeat", "row"])[column].median().unstack()
