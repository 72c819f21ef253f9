"""Table 7 of the paper: training overhead, each ratio beside that of the published values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.overhead.measure import overhead_frame, read_rows
from smmd_bench.overhead.settings import CE, STOCK, OverheadSettings, named_geometries
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH, number, with_deviation, with_interval

from ._paper import published

TABLE, TASK = "runtime", "gsm8k"
PUBLISHED = {"time": "step_time_ms", "memory": "memory_gb"}
SHOWN = (
    "{device}; {s.geometry} with random weights, {s.dtype}, {s.method}, N = {s.numeric_tokens}; "
    "batches of {s.batch_size} x {s.length} tokens, the last quarter of each row supervised and "
    "numeric; {s.repeats} x {s.steps} optimiser steps, the first quarter of which does not count. "
    "Times: median of a step, mean ± standard deviation over repeats. Time : CE: ratio of {clock}, "
    "its median over repeats with the smallest and the largest. Memory: peak {memory}, median over "
    "repeats. The paper's ratios are to its own CE on an NVIDIA L20; it does not give its batch."
)
ON_GPU = {"clock": "wall time", "memory": "allocated, weights included"}
ON_CPU = {"clock": "CPU seconds", "memory": "resident set of the process"}


@dataclass(frozen=True)
class OverheadTable:
    """Step time and peak memory by loss, and their ratios to cross-entropy in this harness."""

    name: ClassVar[str] = "overhead_table"
    title: ClassVar[str] = "Training overhead"
    paper: ClassVar[str] = "Table 7"
    order: ClassVar[int] = 150

    def skip(self, run: Run) -> str | None:
        """Only a run of `smmd-bench overhead` has step times."""
        if "overhead" not in run.manifest:
            return "the run is none of `smmd-bench overhead`"
        return "no row was measured yet" if read_rows(run.path).empty else None

    def build(self, run: Run) -> Artefact:
        """One row for cross-entropy in the stock Trainer, one for each loss here."""
        settings = OverheadSettings(**run.manifest["overhead"])
        rows = read_rows(run.path)
        data = overhead_frame(rows, settings)
        why = _why_unpublished(settings)
        names = {"model": settings.geometry, "task": TASK}
        paper = [{} if why else published(TABLE, **names, loss=row) for row in settings.rows]
        ce = paper[settings.rows.index(CE)]
        for name, column in PUBLISHED.items():
            ratios = [own[column] / ce[column] if own else None for own in paper]
            data[f"published_{name}_to_ce"] = pd.Series(ratios, dtype="float64")
        table = pd.DataFrame([_row(line, settings, why) for line in data.to_dict("records")])
        table.attrs["title"] = f"{self.title}: {settings.geometry}, {settings.device}"
        device = " / ".join(rows["device"].dropna().unique()) or settings.device
        words = ON_CPU if settings.device == "cpu" else ON_GPU
        failed = [f"Failed: {e.row}, {e.error}." for e in data[data["error"] != ""].itertuples()]
        caption = " ".join([SHOWN.format(device=device, s=settings, **words), *failed])
        return Artefact(caption, table, data=data)


def _row(line: dict[Any, Any], settings: OverheadSettings, why: str | None) -> dict[str, str]:
    row, failed, on_cpu = line["row"], not line["repeats"], settings.device == "cpu"
    cells = {"Loss": "CE, stock Trainer" if row == STOCK else loss_label(row)}
    for name, label in (("wall", "Step time (ms)"), ("cpu", "CPU time (ms)"))[: 1 + on_cpu]:
        text = with_deviation(line[f"{name}_ms"], line[f"{name}_ms_deviation"])
        cells[label] = "failed" if failed else text
    is_one, ratio = row == CE and not failed, f"{'cpu' if on_cpu else 'wall'}_to_ce"
    bounds = line[ratio], line[f"{ratio}_low"], line[f"{ratio}_high"]
    both = [number(line[f"published_{name}_to_ce"], 3) for name in PUBLISHED]
    return {
        **cells,
        "Time : CE": "1.000" if is_one else with_interval(*bounds, 3),
        "Mem. (GB)": number(line["memory_gb"]),
        "Mem. : CE": "1.000" if is_one else number(line["memory_to_ce"], 3),
        "Paper ratios": why or (DASH if DASH in both else " / ".join(both)),
    }


def _why_unpublished(settings: OverheadSettings) -> str | None:
    """Why the paper's ratios cannot stand beside these; None: they can."""
    named = named_geometries().get(settings.geometry)
    if not (named and published(TABLE, model=named.name, task=TASK, loss=CE)):
        return "none for this model"
    same = (settings.config, settings.numeric_tokens) == (named.config, named.numeric_tokens)
    return None if same and settings.method == "lora" else "none for this setting"
