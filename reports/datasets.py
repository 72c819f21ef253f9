"""Table 8 and Appendix C.1 of the paper: the sizes of the datasets, and samples of them.

Samples are test examples; the page has the answers of each loss.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.plugin_system.parameters import split_spec
from smmd_bench.publishing.examples import small_picture
from smmd_bench.publishing.style import WIDTH, new_figure
from smmd_bench.publishing.tables import DASH
from smmd_bench.results.verdict import main_losses

from ._cells import measured
from ._panels import pair_name
from ._paper import SYNTHETIC, data_source, other_data, rows
from ._text import caption, without_dashes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPLITS = {"train": "Train", "validation": "Validation", "test": "Test"}
BESIDE = {"published_train": "Paper train", "published_test": "Paper test"}
SIZES_CAPTION = (
    "Examples of each split that the run used, as its manifest says. The paper rounds to tens, "
    "counts GSM8K's whole training set and names no validation split."
)


@dataclass(frozen=True)
class DatasetSizes:
    """Training, validation and test examples of every task of the run."""

    name: ClassVar[str] = "dataset_sizes"
    title: ClassVar[str] = "Dataset sizes"
    paper: ClassVar[str] = "Table 8"
    order: ClassVar[int] = 200

    def skip(self, run: Run) -> str | None:
        """The manifest must say the sizes."""
        return None if _sizes(run) else "the run's manifest does not say how many examples it has"

    def build(self, run: Run) -> Artefact:
        """One row a task, as it is spelled in the run."""
        found, papers = [], {row["task"]: row for row in rows("dataset_sizes")}
        for task, sizes in _sizes(run).items():
            paper = {} if other_data(run, task) else papers.get(split_spec(task)[0], {})
            line: dict[str, Any] = {"task": task, "source": data_source(run, task)}
            line |= {split: sizes.get(split) for split in SPLITS}
            found.append(line | {c: paper.get(c.removeprefix("published_")) for c in BESIDE})
        data = pd.DataFrame(found).astype(dict.fromkeys([*SPLITS, *BESIDE], "Int64"))
        table = data.rename(columns={"task": "Task", "source": "Data", **SPLITS, **BESIDE})
        for column in (*SPLITS.values(), *BESIDE.values()):
            table[column] = [DASH if pd.isna(size) else f"{size:,}" for size in table[column]]
        table = without_dashes(table, ["Data", *BESIDE.values()])
        table.attrs["title"] = self.title
        return Artefact(SIZES_CAPTION, table, data=data)


def _sizes(run: Run) -> dict[str, dict[str, int]]:
    data = run.manifest.get("data") or {}
    return {task: known["sizes"] for task, known in data.items() if known.get("sizes")}


TASKS, ROWS, COLUMNS = 6, 2, 4
"""Tasks drawn at most, rows of each, and examples of a row."""
LARGEST = 512
"""Pixels of the longer side of a picture in the figure."""
SHOWN = "Test examples, spread evenly over the test split and not chosen by their answers."


@dataclass(frozen=True)
class DatasetSamples:
    """Pictures, questions and true answers of a few test examples a task."""

    name: ClassVar[str] = "dataset_samples"
    title: ClassVar[str] = "Dataset samples"
    paper: ClassVar[str] = "Figure 4 (Appendix C.1)"

    def skip(self, run: Run) -> str | None:
        """Without a measured cell there are no examples."""
        return "no cell has results yet" if measured(run.cells).empty else None

    def build(self, run: Run) -> Artefact:
        """One grid a task."""
        run = main_losses(run)
        groups = [own for _, own in measured(run.cells).groupby("task", observed=True)][:TASKS]
        shown = [_samples(run, cells, ROWS * COLUMNS) for cells in groups]
        words = caption(run, run.cells[run.cells["model"].isin(pd.concat(shown)["model"])], SHOWN)
        data = pd.concat(shown, ignore_index=True).drop(columns="image")
        return Artefact(words, figure=_figure(run, shown), data=data)


def _samples(run: Run, cells: pd.DataFrame, number: int) -> pd.DataFrame:
    """One row an example: prompt, target and image."""
    columns = ["uid", "prompt", "target", "image"]
    found = run.read("completions", columns, cells["address"][:1])
    spread = [int((at + 0.5) * len(found) / number) for at in range(number)]
    found = found.iloc[[*dict.fromkeys(spread)]].drop(columns=["address", "loss", "seed"])
    return found.assign(image=found.get("image"))


def _figure(run: Run, blocks: list[pd.DataFrame]) -> Figure:
    """The examples of each task below a heading: picture, question and truth."""
    rows = [-(-len(own) // COLUMNS) for own in blocks]
    heights = [0.35 + count * (2.4 if own["image"].notna().any() else 0.9)
               for count, own in zip(rows, blocks, strict=True)]  # fmt: skip
    figure = new_figure(WIDTH, sum(heights))
    parts = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)[:, 0]
    how: Any = {"size": 7.5, "parse_math": False, "va": "top", "in_layout": False}
    for part, own, count in zip(parts, blocks, rows, strict=True):
        model, task = str(own["model"].iloc[0]), str(own["task"].iloc[0])
        source = " (synthetic data)" * (data_source(run, task) == SYNTHETIC)
        part.suptitle(pair_name((model, task)) + source, x=0.01, ha="left", fontsize=10)
        pictured = own["image"].notna().any()
        step, ratios = (2, [5, 3]) if pictured else (1, [1])
        axes = part.subplots(
            step * count, COLUMNS, squeeze=False, height_ratios=ratios * count
        )  # the text of a picture stands below it
        for axis in axes.flat:
            axis.set_axis_off()
        pairs = zip(axes[::step].flat, axes[step - 1 :: step].flat, strict=True)
        for (above, below), row in zip(pairs, own.to_dict("records"), strict=False):
            lines = textwrap.wrap(str(row["prompt"]), 36, max_lines=4, placeholder=" …")
            truth = " ".join(str(row["target"]).split())
            lines.append(f"→ {truth if len(truth) < 34 else '…' + truth[-33:]}")
            below.text(0, 1, "\n".join(lines), transform=below.transAxes, **how)
            if pictured:
                picture = small_picture(row["image"], LARGEST)
                if picture is None:
                    above.text(0.5, 0.5, "picture not found", ha="center", va="center")
                else:
                    above.imshow(picture)
                    above.set_anchor("NW")
    return figure
