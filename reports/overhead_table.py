"""Table 7 of the paper: training overhead, each ratio beside that of the published values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.overhead.measure import overhead_frame, read_rows
from smmd_bench.overhead.settings import CE, STOCK, OverheadSettings, named_geometries
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH, number, with_deviation, with_interval

from ._paper import find_published

TABLE, TASK = "runtime", "gsm8k"
PUBLISHED = {"time": "step_time_ms", "memory": "memory_gb"}
SHOWN = (
    "{device}; {s.geometry} with random weights, {s.dtype}, {s.method}, N = {s.numeric_tokens}; "
    "batches of {s.batch_size} x {s.length} tokens, the last quarter of each row supervised and "
    "numeric; {s.repeats} x {s.steps} optimiser steps, the first quarter of which does not count. "
    "Times: median of a step, mean ± standard deviation over repeats. Time : CE: ratio of {clock}, "
    "its median over repeats with the smallest and the largest. {operations}Memory: peak "
    "{memory}, median over repeats. The paper's ratios are to its own CE on an NVIDIA L20; it does "
    "not give its batch."
)
OPERATIONS = (
    "Operations: those of a step that are no views, most of which a GPU launches. "
)
ON_GPU = {"clock": "wall time", "memory": "allocated, weights included"}
ON_CPU = {"clock": "CPU seconds", "memory": "resident set of the process"}


@dataclass(frozen=True)
class OverheadTable:
    """Step time and peak memory by loss, and their ratios to cross-entropy in this harness."""

    name = "overhead_table"
    title = "Training overhead"
    paper = "Table 7"
    order = 150

    def build(self, run: Run) -> Artefact:
        """One row for cross-entropy in the stock Trainer, one for each loss here."""
        if "overhead" not in run.manifest:
            raise ReportSkippedError("the run is none of `smmd-bench overhead`")
        rows = read_rows(run.path)
        if rows.empty:
            raise ReportSkippedError("no row was measured yet")

        # What was measured is what the manifest says, not today's defaults.
        settings = OverheadSettings(**run.manifest["overhead"])
        data = overhead_frame(rows, settings)
        data = _add_published(data, settings)

        # Rows may have been measured on several devices: all of them are named.
        devices = rows["device"].dropna().unique()
        device = " / ".join(devices) or settings.device
        measures = ON_CPU if settings.device == "cpu" else ON_GPU
        # An older measurement has none.
        has_operations = data["operations"].notna().any()
        operations = OPERATIONS if has_operations else ""
        sentences = [
            SHOWN.format(device=device, s=settings, operations=operations, **measures)
        ]

        lines = []
        for line in data.to_dict("records"):
            lines.append(_make_row(line, settings))
            if line["error"]:
                sentences.append(f"Failed: {line['row']}, {line['error']}.")

        table = pd.DataFrame(lines)
        if not has_operations:
            table = table.drop(columns="Operations")
        table.attrs["title"] = f"{self.title}: {settings.geometry}, {settings.device}"
        return Artefact(" ".join(sentences), table, data=data)


def _add_published(data: pd.DataFrame, settings: OverheadSettings) -> pd.DataFrame:
    """The rows with the paper's ratios to its own cross-entropy; missing where it has none."""
    is_comparable = _explain_unpublished(settings) is None
    # Seconds on another GPU cannot be compared, and ratios within one harness can.
    for name, column in PUBLISHED.items():
        # The paper has no row of the stock Trainer, and none of every loss.
        values = []
        for row in (CE, *settings.rows):
            published = find_published(TABLE, settings.geometry, TASK, row)
            values.append(published.get(column) if is_comparable else None)

        of_ce, *of_rows = values
        ratios = pd.Series(of_rows, dtype="float64") / (of_ce or math.nan)
        data[f"published_{name}_to_ce"] = ratios
    return data


def _make_row(line: dict[Any, Any], settings: OverheadSettings) -> dict[str, str]:
    name = loss_label(line["row"])
    if line["row"] == STOCK:
        name = "CE, stock Trainer"
    row = {"Loss": name, "Step time (ms)": _format_step_time(line, "wall")}

    # On a CPU other processes take wall time away, and the seconds of the process count.
    clock = "wall"
    if settings.device == "cpu":
        clock = "cpu"
        row["CPU time (ms)"] = _format_step_time(line, clock)
    return {
        **row,
        **_format_ratios(line, clock),
        **_format_published_ratios(line, settings),
    }


def _format_step_time(line: dict[Any, Any], clock: str) -> str:
    # Repeats that ended count, also where a later one failed.
    if not line["repeats"]:
        return "failed"
    return with_deviation(line[f"{clock}_ms"], line[f"{clock}_ms_deviation"])


def _format_ratios(line: dict[Any, Any], clock: str) -> dict[str, str]:
    """Time and memory over those of cross-entropy."""
    name = f"{clock}_to_ce"
    time = with_interval(line[name], line[f"{name}_low"], line[f"{name}_high"], 3)
    memory = number(line["memory_to_ce"], 3)

    # Cross-entropy over itself is no measurement.
    if line["row"] == CE and line["repeats"]:
        time = memory = "1.000"
    return {
        "Time : CE": time,
        "Operations": number(line["operations"], 0),
        "Mem. (GB)": number(line["memory_gb"]),
        "Mem. : CE": memory,
    }


def _format_published_ratios(
    line: dict[Any, Any], settings: OverheadSettings
) -> dict[str, str]:
    ratios = [number(line[f"published_{name}_to_ce"], 3) for name in PUBLISHED]
    text = DASH if DASH in ratios else " / ".join(ratios)
    return {"Paper ratios": _explain_unpublished(settings) or text}


def _explain_unpublished(settings: OverheadSettings) -> str | None:
    """Why the paper's ratios cannot stand beside these; None: they can."""
    geometry = named_geometries().get(settings.geometry)
    if geometry is None or not find_published(TABLE, geometry.name, TASK, CE):
        return "none for this model"

    # A geometry can be changed on the command line, and keeps its name.
    is_same = (
        settings.config == geometry.config
        and settings.numeric_tokens == geometry.numeric_tokens
        and settings.method == "lora"
    )
    return None if is_same else "none for this setting"
