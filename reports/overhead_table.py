"""Table 7 of the paper: training overhead, each ratio beside that of the published values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.overhead.geometry import named_geometries
from smmd_bench.overhead.measure import read_frames
from smmd_bench.overhead.ratios import overhead_frame
from smmd_bench.overhead.settings import CE, STOCK, OverheadSettings
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH, number, with_deviation, with_interval

from ._paper import published, reference

TABLE, TASK = "runtime", "gsm8k"
PUBLISHED = {"time": "step_time_ms", "memory": "memory_gb"}
OTHER_MODEL, OTHER_SETTING = "none for this model", "none for this setting"


@dataclass(frozen=True)
class OverheadTable:
    """Step time and peak memory by loss, and their ratios to cross-entropy in this harness."""

    name: ClassVar[str] = "overhead_table"
    title: ClassVar[str] = "Training overhead"
    paper: ClassVar[str] = "Table 7"

    def skip(self, run: Run) -> str | None:
        """Only a run of `smmd-bench overhead` has step times."""
        if "overhead" not in run.manifest:
            return "the run is none of `smmd-bench overhead`"
        return "no row was measured yet" if read_frames(run.path)["runs"].empty else None

    def build(self, run: Run) -> Artefact:
        """One row for cross-entropy in the stock Trainer, one for each loss here."""
        settings = OverheadSettings(**run.manifest["overhead"])
        frames = read_frames(run.path)
        data = overhead_frame(frames["steps"], frames["runs"], settings.rows)
        for name in PUBLISHED:
            data[f"published_{name}_to_ce"] = [
                _published_ratio(settings, row, name) for row in settings.rows
            ]
        clock = "cpu" if settings.device == "cpu" else "wall"
        lines = data.to_dict("records")
        table = pd.DataFrame([_row(line, settings, clock) for line in lines])
        table.attrs["title"] = f"{self.title}: {settings.geometry}, {settings.device}"
        devices = frames["runs"]["device"].dropna().unique()
        threads = frames["runs"]["threads"].dropna().unique()
        caption = _caption(settings, data, [str(d) for d in devices], [int(t) for t in threads])
        return Artefact(caption=caption, table=table, data=data)


def _row(line: dict[Any, Any], settings: OverheadSettings, clock: str) -> dict[str, str]:
    row, failed = line["row"], not line["repeats"]
    cells = {"Loss": "CE, stock Trainer" if row == STOCK else loss_label(row)}
    for name, label in (("wall", "Step time (ms)"), ("cpu", "CPU time (ms)")):
        if name == "wall" or settings.device == "cpu":
            mean, deviation = line[f"{name}_ms"], line[f"{name}_ms_deviation"]
            text = with_deviation(mean, None if pd.isna(deviation) else deviation)
            cells[label] = "failed" if failed else text
    cells["Time : CE"] = _ratio(line, f"{clock}_to_ce", row)
    cells["Mem. (GB)"] = number(line["memory_gb"])
    memory = "1.000" if row == CE else number(line["memory_to_ce"], 3)
    cells["Mem. : CE"] = DASH if failed else memory
    both = [number(line[f"published_{name}_to_ce"], 3) for name in PUBLISHED]
    paper = DASH if DASH in both else " / ".join(both)
    return {**cells, "Paper ratios": _why_unpublished(settings) or paper}


def _ratio(line: dict[Any, Any], name: str, row: str) -> str:
    if row == CE and line["repeats"]:
        return "1.000"
    return with_interval(line[name], line[f"{name}_low"], line[f"{name}_high"], 3)


def _published_ratio(settings: OverheadSettings, row: str, name: str) -> float | None:
    """The paper's value of a loss over its value of CE; None where it has no such row."""
    if _why_unpublished(settings):
        return None
    own, ce = (
        published(TABLE, model=settings.geometry, task=TASK, loss=loss) for loss in (row, CE)
    )
    key = PUBLISHED[name]
    return own[key] / ce[key] if own else None


def _why_unpublished(settings: OverheadSettings) -> str | None:
    """Why the paper's ratios cannot stand beside these; None: they can."""
    named = named_geometries().get(settings.geometry)
    if not (named and published(TABLE, model=named.name, task=TASK, loss=CE)):
        return OTHER_MODEL
    same = (settings.config, settings.numeric_tokens) == (named.config, named.numeric_tokens)
    return None if same and settings.method == "lora" else OTHER_SETTING


def _caption(
    settings: OverheadSettings, data: pd.DataFrame, devices: list[str], threads: list[int]
) -> str:
    on_cpu = settings.device == "cpu"
    device = " / ".join(devices) or settings.device
    if on_cpu and threads:
        device += f", {' / '.join(str(t) for t in threads)} thread{'s' * (threads != [1])}"
    turns = (
        "rows take one step each in turn, in an order that changes at each step"
        if settings.interleave == "steps"
        else "rows run one after the other, in an order that changes at each repeat"
    )
    method = "LoRA r=16, frozen head" if settings.method == "lora" else "full fine-tuning"
    memory = (
        "peak resident set of the process in two steps before these, libraries and weights"
        if on_cpu
        else "peak allocated, weights"
    )
    repeats = f"{settings.repeats} repeat{'s' * (settings.repeats > 1)}"
    parts = [
        f"{device}; {settings.geometry} with random weights, {settings.dtype}, {method}, "
        f"N = {settings.numeric_tokens}; batches of {settings.batch_size} x {settings.length} "
        f"tokens, the last {settings.supervised_tokens} of each row supervised, "
        f"{settings.numeric:.0%} of these numeric.",
        f"{repeats} of {settings.steps} optimiser steps, the first {settings.drop} left out; each "
        f"row has a fresh process in each repeat, and {turns}.",
        "Times: mean ± standard deviation over repeats.",
        f"Time : CE is of {'CPU seconds of the process' if on_cpu else 'wall time'}: the median "
        "over steps paired by repeat and number, with its 95 % bootstrap interval over these "
        "pairs.",
        f"Memory: {memory} included, median over repeats.",
    ]
    parts += _to_stock(data, "cpu" if on_cpu else "wall")
    why = _why_unpublished(settings)
    if why is None:
        parts.append(
            f"Paper ratios: time and memory of {reference(TABLE)} to its own CE, on an NVIDIA L20; "
            "it does not give its batch."
        )
    else:
        parts.append(f"{reference(TABLE)} has {why}.")
    lacking = data[data["error"] != ""]
    parts += [f"Failed: {e.row}, {e.error}." for e in lacking.itertuples()]
    return " ".join(parts)


def _to_stock(data: pd.DataFrame, clock: str) -> list[str]:
    """The sentence on CE here against CE in the stock Trainer."""
    line = data[data["row"] == CE].iloc[0]
    time = f"{clock}_to_stock"
    if pd.isna(line[time]):
        return []
    text = with_interval(line[time], line[f"{time}_low"], line[f"{time}_high"], 3)
    return [
        f"CE here : CE in stock Trainer: time {text}, memory {number(line['memory_to_stock'], 3)}."
    ]
