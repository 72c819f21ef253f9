"""Measures all rows, repeat by repeat, and keeps each repeat as soon as it is done.

OUT/manifest.json    settings, versions, hardware, command
OUT/steps.parquet    row, repeat, step (from 1), wall_seconds, cpu_seconds, dropped
OUT/runs.parquet     row, repeat, peak_bytes, device, threads, error: one line a row and repeat
OUT/logs/            what each process was asked, and what it wrote
"""

import json
import random
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pandas as pd

from ..contracts import Progress
from ..errors import UserError
from ..models.circumstances import circumstances
from ..run.run_directory import RunDirectory
from ..storage.files import read_json, write_json, write_parquet
from .process import RowProcess
from .settings import OverheadSettings

COLUMNS = {
    "steps": ["row", "repeat", "step", "wall_seconds", "cpu_seconds", "dropped"],
    "runs": ["row", "repeat", "peak_bytes", "device", "threads", "error"],
}
_TYPES = {"peak_bytes": "Int64", "threads": "Int64", "device": "str", "error": "str"}


def measure(
    settings: OverheadSettings, folder: Path, progress: Progress, plugins: Sequence[Path] = ()
) -> bool:
    """Measure the repeats that are missing, or in which a row failed; whether there were any.

    A row that fails in a repeat has its reason in runs.parquet; the others go on. Raises UserError
    if the folder holds anything else.
    """
    with RunDirectory(folder).locked():
        _claim(folder, settings)
        missing = missing_repeats(settings, folder)
        for repeat in missing:
            label = f"repeat {repeat + 1} of {settings.repeats}"
            processes = _measure_repeat(settings, repeat, folder / "logs", label, progress, plugins)
            # A repeat is done once it is in runs.parquet, which is written last.
            for name, new in _frames(settings, repeat, processes).items():
                kept = read_frames(folder)[name]
                parts = [f for f in (kept[kept["repeat"] != repeat], new) if not f.empty] or [new]
                joined = pd.concat(parts).sort_values("repeat", kind="stable", ignore_index=True)
                write_parquet(folder / f"{name}.parquet", joined)
        return bool(missing)


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


def _measure_repeat(
    settings: OverheadSettings,
    repeat: int,
    logs: Path,
    label: str,
    progress: Progress,
    plugins: Sequence[Path],
) -> list[RowProcess]:
    """The ended processes of all rows.

    With `steps`, all rows are in memory and take turns step by step, in a new random order at each
    step, so that what disturbs the machine for a while disturbs all of them. With `runs`, one row
    is in memory at a time.
    """
    order = random.Random(f"{settings.seed} {repeat}")
    rows = list(settings.rows)
    order.shuffle(rows)
    groups = [rows] if settings.interleave == "steps" else [[row] for row in rows]
    total, done = settings.steps * len(rows), 0
    ended: list[RowProcess] = []
    for group in groups:
        progress(label, done, total)
        with ExitStack() as stack:
            started = (RowProcess(settings, row, repeat, logs, plugins) for row in group)
            processes = [stack.enter_context(closing(process)) for process in started]
            for process in processes:
                process.hear()
            for process in processes:
                process.prepare()
            for _ in range(settings.steps):
                order.shuffle(processes)
                for process in processes:
                    process.step()
                done += len(processes)
                progress(label, done, total)
            for process in processes:
                process.hear()
        ended += processes
    return ended


def _frames(
    settings: OverheadSettings, repeat: int, processes: Sequence[RowProcess]
) -> dict[str, pd.DataFrame]:
    """The repeat's lines of steps.parquet (of the rows that got to the end) and runs.parquet."""
    steps: list[list[Any]] = []
    runs: list[list[Any]] = []
    for process in sorted(processes, key=lambda p: settings.rows.index(p.row)):
        facts = [process.facts.get(name) for name in ("peak_bytes", "device", "threads")]
        runs.append([process.row, repeat, *facts, process.failure])
        if process.failure is None:
            steps += [
                [process.row, repeat, step, wall, cpu, step <= settings.drop]
                for step, (wall, cpu) in enumerate(process.steps, start=1)
            ]
    return new_frames(steps, runs)


def new_frames(steps: list[list[Any]], runs: list[list[Any]]) -> dict[str, pd.DataFrame]:
    """`steps` and `runs` as frames with their columns."""
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
