"""Table 7 of the paper: training overhead, each ratio beside that of the published values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.overhead.measure import overhead_frame, read_frames
from smmd_bench.overhead.settings import CE, STOCK, OverheadSettings, named_geometries
from smmd_bench.publishing.style import loss_label
from smmd_bench.publishing.tables import DASH, number, with_deviation, with_interval

from ._caption import join_sentences, split_caption
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
    order: ClassVar[int] = 150

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
            ratios = [_published_ratio(settings, row, name) for row in settings.rows]
            data[f"published_{name}_to_ce"] = ratios
        table = pd.DataFrame([_row(line, settings) for line in data.to_dict("records")])
        table.attrs["title"] = f"{self.title}: {settings.geometry}, {settings.device}"
        caption = split_caption(_setup(settings, frames["runs"]), _reading(settings, data))
        return Artefact(table=table, data=data, **caption)


def _clock(settings: OverheadSettings) -> str:
    return "cpu" if settings.device == "cpu" else "wall"


def _row(line: dict[Any, Any], settings: OverheadSettings) -> dict[str, str]:
    row, failed = line["row"], not line["repeats"]
    cells = {"Loss": "CE, stock Trainer" if row == STOCK else loss_label(row)}
    for name, label in (("wall", "Step time (ms)"), ("cpu", "CPU time (ms)")):
        if name == "wall" or settings.device == "cpu":
            mean, deviation = line[f"{name}_ms"], line[f"{name}_ms_deviation"]
            text = with_deviation(mean, None if pd.isna(deviation) else deviation)
            cells[label] = "failed" if failed else text
    is_one = row == CE and not failed
    both = [number(line[f"published_{name}_to_ce"], 3) for name in PUBLISHED]
    return {
        **cells,
        "Time : CE": "1.000" if is_one else _ratio(line, f"{_clock(settings)}_to_ce"),
        "Mem. (GB)": number(line["memory_gb"]),
        "Mem. : CE": "1.000" if is_one else DASH if failed else number(line["memory_to_ce"], 3),
        "Paper ratios": _why_unpublished(settings) or (DASH if DASH in both else " / ".join(both)),
    }


def _ratio(line: Any, name: str) -> str:
    return with_interval(line[name], line[f"{name}_low"], line[f"{name}_high"], 3)


def _published_ratio(settings: OverheadSettings, row: str, name: str) -> float | None:
    """The paper's value of a loss over its value of CE; None where it has no such row."""
    if _why_unpublished(settings):
        return None
    own, ce = (
        published(TABLE, model=settings.geometry, task=TASK, loss=loss) for loss in (row, CE)
    )
    return own[PUBLISHED[name]] / ce[PUBLISHED[name]] if own else None


def _why_unpublished(settings: OverheadSettings) -> str | None:
    """Why the paper's ratios cannot stand beside these; None: they can."""
    named = named_geometries().get(settings.geometry)
    if not (named and published(TABLE, model=named.name, task=TASK, loss=CE)):
        return OTHER_MODEL
    same = (settings.config, settings.numeric_tokens) == (named.config, named.numeric_tokens)
    return None if same and settings.method == "lora" else OTHER_SETTING


def _setup(settings: OverheadSettings, runs: pd.DataFrame) -> str:
    """Sentences on the device, the model, the batches, and the order of the steps."""
    device = " / ".join(runs["device"].dropna().unique()) or settings.device
    threads = [int(count) for count in runs["threads"].dropna().unique()]
    if settings.device == "cpu" and threads:
        device += f", {' / '.join(map(str, threads))} thread{'s' * (threads != [1])}"
    method = "LoRA r=16, frozen head" if settings.method == "lora" else "full fine-tuning"
    return (
        f"{device}; {settings.geometry} with random weights, {settings.dtype}, {method}, "
        f"N = {settings.numeric_tokens}; batches of {settings.batch_size} x {settings.length} "
        f"tokens, the last {settings.supervised_tokens} of each row supervised, "
        f"{settings.numeric:.0%} of these numeric. "
        f"{settings.repeats} repeat{'s' * (settings.repeats > 1)} of {settings.steps} optimiser "
        f"steps, without the first {settings.drop}; each row has a fresh process in each repeat, "
        "and rows run one after the other, in an order that changes at each repeat."
    )


def _reading(settings: OverheadSettings, data: pd.DataFrame) -> str:
    """Sentences on the columns, on CE here against the stock Trainer, and on what failed."""
    on_cpu, why = settings.device == "cpu", _why_unpublished(settings)
    ce, to_stock = data[data["row"] == CE].iloc[0], f"{_clock(settings)}_to_stock"
    of_stock = f"time {_ratio(ce, to_stock)}, memory {number(ce['memory_to_stock'], 3)}"
    memory = (
        "peak resident set of the process, libraries and weights"
        if on_cpu
        else "peak allocated, weights"
    )
    return join_sentences(
        "Times: median of a step, its mean ± standard deviation over repeats.",
        f"Time : CE: ratio of the median {'CPU seconds' if on_cpu else 'wall time'} of a step, its "
        "median over repeats with the smallest and the largest.",
        f"Memory: {memory} included, median over repeats.",
        "" if pd.isna(ce[to_stock]) else f"CE here : CE in stock Trainer: {of_stock}.",
        f"{reference(TABLE)} has {why}."
        if why
        else f"Paper ratios: time and memory of {reference(TABLE)} to its own CE, on an NVIDIA "
        "L20; it does not give its batch.",
        *(f"Failed: {e.row}, {e.error}." for e in data[data["error"] != ""].itertuples()),
    )
