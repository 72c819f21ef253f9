"""Table 8 and Appendix C.1 of the paper: the sizes of the datasets, and samples of them.

Samples are test examples; the page has the answers of each loss.
"""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.plugin_system.parameters import split_spec
from smmd_bench.publishing.examples import small_picture
from smmd_bench.publishing.style import WIDTH, folded, new_figure, task_label
from smmd_bench.publishing.tables import DASH
from smmd_bench.results.pairing import drop_short_variants

from ._panels import name_pair, stack_parts
from ._paper import SYNTHETIC, describe_other_data, find_source, read_rows
from ._results import require_results, select_measured
from ._text import drop_dashes, write_caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

SPLITS = {"train": "Train", "validation": "Validation", "test": "Test"}
BESIDE = {"published_train": "Paper train", "published_test": "Paper test"}
SIZES_CAPTION = (
    "Examples of each split that the run used, as its manifest says. The paper rounds to tens, "
    "counts GSM8K's whole training set and names no validation split."
)


@dataclass(frozen=True)
class DatasetSizes:
    """Training, validation and test examples of every task of the run."""

    name = "dataset_sizes"
    title = "Dataset sizes"
    paper = "Table 8"
    order = 200

    def build(self, run: Run) -> Artefact:
        """One row a task, as it is spelled in the run."""
        sizes_of_tasks = _read_sizes(run)
        if not sizes_of_tasks:
            raise ReportSkippedError(
                "the run's manifest does not say how many examples it has"
            )

        lines = []
        for task, sizes in sizes_of_tasks.items():
            line: dict[str, Any] = {"task": task, "source": find_source(run, task)}
            for split in SPLITS:
                line[split] = sizes.get(split)
            lines.append(line | _find_published_sizes(run, task))

        # A size that is not known is missing, and the others stay whole numbers.
        sizes_of = [*SPLITS, *BESIDE]
        data = pd.DataFrame(lines).astype(dict.fromkeys(sizes_of, "Int64"))
        headings = {
            "task": "Task",
            "source": "Data",
            **SPLITS,
            **BESIDE,
        }
        numbers = data[sizes_of].astype("object")
        texts = numbers.map("{:,}".format, na_action="ignore").fillna(DASH)
        texts["task"] = data["task"].map(task_label)
        table = data.assign(**texts).rename(columns=headings)

        # Only pictures have a source, and only the paper's own tasks its sizes.
        table = drop_dashes(table, ["Data", *BESIDE.values()])
        return Artefact(SIZES_CAPTION, table, data=data)


def _read_sizes(run: Run) -> dict[str, dict[str, int]]:
    """The sizes of the splits by task, as far as the manifest has them."""
    data = run.manifest.get("data") or {}
    return {task: entry["sizes"] for task, entry in data.items() if entry.get("sizes")}


def _find_published_sizes(run: Run, task: str) -> dict[str, int | None]:
    """The paper's sizes of a task whose data is the paper's; of another None each."""
    sizes: Mapping[str, int] = {}
    name, _ = split_spec(task)
    for row in read_rows("dataset_sizes"):
        # Sizes of other data say nothing about a copy of the paper's.
        if row["task"] == name and not describe_other_data(run, task):
            sizes = row
    return {column: sizes.get(column.removeprefix("published_")) for column in BESIDE}


TASKS, ROWS, COLUMNS = 6, 2, 4
"""Tasks drawn at most, rows of each, and examples of a row."""
LETTERS, LINES, TRUTH = 34, 6, 3
"""Letters of a line that a column holds, also of digits; lines of a prompt, and of an answer."""
PICTURE = 1.45
"""Inches of the height of a picture."""
LARGEST = 512
"""Pixels of the longer side of a picture in the figure."""
SHOWN = (
    "Test examples, spread evenly over the test split and not chosen by their answers."
)


@dataclass(frozen=True)
class DatasetSamples:
    """Pictures, questions and true answers of a few test examples a task."""

    name = "dataset_samples"
    title = "Dataset samples"
    paper = "Figure 4 (Appendix C.1)"

    def build(self, run: Run) -> Artefact:
        """One grid a task."""
        require_results(run)
        run = drop_short_variants(run)
        groups = select_measured(run.cells).groupby("task")
        blocks = [_select_samples(run, cells) for _, cells in [*groups][:TASKS]]
        data = pd.concat(blocks, ignore_index=True).drop(columns="image")

        # The samples of a task are those of its first model.
        cells = run.cells[run.cells["model"].isin(data["model"])]
        return Artefact(
            write_caption(run, cells, SHOWN),
            figure=_draw_figure(run, blocks),
            data=data,
        )


def _select_samples(run: Run, cells: pd.DataFrame) -> pd.DataFrame:
    """One row an example: prompt, target and image."""
    # All cells of a task answer the same examples, so that those of one are enough.
    columns = ["uid", "prompt", "target", "image"]
    examples = run.read("completions", columns, cells["address"][:1])

    # The middle of each of so many equal parts; a small test set is shown once, and whole.
    number = ROWS * COLUMNS
    positions = [int((part + 0.5) * len(examples) / number) for part in range(number)]
    samples = examples.iloc[[*dict.fromkeys(positions)]]
    samples = samples.drop(columns=["address", "loss", "seed"])
    return samples.assign(image=samples.get("image"))


def _draw_figure(run: Run, blocks: list[pd.DataFrame]) -> Figure:
    """The examples of each task below a heading: picture, question and truth."""
    for block in blocks:
        block["text"] = [*map(_write_text, block.to_dict("records"))]
        block["picture"] = [_read_picture(image) for image in block["image"]]
    heights = [0.35 + sum(_measure_rows(block)) for block in blocks]
    figure = new_figure(WIDTH, sum(heights))
    for part, block in zip(stack_parts(figure, heights), blocks, strict=True):
        model, task = str(block["model"].iloc[0]), str(block["task"].iloc[0])
        heading = name_pair((model, task))
        if find_source(run, task) == SYNTHETIC:
            heading += " (synthetic data)"
        if block["image"].notna().any() and not _has_pictures(block):
            heading += ": pictures not found"
        part.suptitle(
            folded(heading, 100),
            x=0.01,
            ha="left",
            fontsize=10,
        )
        _draw_block(part, block)
    return figure


def _write_text(example: Mapping[Hashable, Any]) -> str:
    """The prompt and the true answer, line by line; of long ones the middle is left out."""
    lines = []
    for line in str(example["prompt"]).splitlines():
        lines += textwrap.wrap(line, LETTERS)
    # The last line tells how an answer is asked for.
    if len(lines) > LINES:
        lines = [*lines[: LINES - 2], "…", lines[-1]]

    answer = " ".join(str(example["target"]).split())
    truth = textwrap.wrap(f"→ {answer}", LETTERS)
    # Of a rationale the end counts: the last line may be a word of it, and another goes before it.
    if len(truth) > TRUTH:
        truth = [f"{truth[0]} …", *truth[1 - TRUTH :]]
    return "\n".join([*lines, *truth])


def _read_picture(image: Any) -> Any:
    # The run's folder may have moved without its pictures; the question is still worth a place.
    return None if pd.isna(image) else small_picture(image, LARGEST)


def _has_pictures(block: pd.DataFrame) -> bool:
    return bool(block["picture"].notna().any())


def _measure_rows(block: pd.DataFrame) -> list[float]:
    """The heights of the rows of axes, in inches: of texts as high as their lines."""
    lines = block["text"].str.count("\n") + 1
    heights = []
    for start in range(0, len(block), COLUMNS):
        if _has_pictures(block):
            heights.append(PICTURE)
        most = lines[start : start + COLUMNS].max()
        heights.append(0.2 + 0.135 * float(most))
    return heights


def _draw_block(part: SubFigure, block: pd.DataFrame) -> None:
    # The text of a picture stands below it, in axes of its own.
    has_pictures = _has_pictures(block)
    step = 1 + has_pictures
    heights = _measure_rows(block)
    axes = part.subplots(
        len(heights),
        COLUMNS,
        squeeze=False,
        height_ratios=heights,
    )
    for axis in axes.flat:
        axis.set_axis_off()

    # Without pictures both are the same axes.
    places = zip(axes[::step].flat, axes[step - 1 :: step].flat, strict=True)
    for (above, below), example in zip(places, block.to_dict("records"), strict=False):
        # A dollar sign of a word problem is no formula.
        below.text(
            0,
            1,
            example["text"],
            transform=below.transAxes,
            size=7.5,
            parse_math=False,
            va="top",
            in_layout=False,
        )
        if has_pictures:
            _draw_picture(above, example["picture"])


def _draw_picture(axis: Axes, picture: Any) -> None:
    if picture is None:
        axis.text(0, 1, "picture not found", va="top")
        return
    axis.imshow(picture)
    # Pictures differ in shape: their left edges line up with the texts.
    axis.set_anchor("NW")
