"""Appendix C.1 of the paper, dataset samples: test examples with what each loss answers.

Each task has a grid of panels: the picture where there is one, question, truth, and an answer a
loss, marked ✓ or ✗. The examples are spread evenly over the test split and not chosen by their
answers. Pictures are read from where the run decoded them; one that is gone leaves an empty frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run, parameter
from smmd_bench.publishing.style import loss_label, model_label
from smmd_bench.publishing.thumbnails import small_picture

from ._cells import measured, missing_note
from ._figure_notes import n_and_seeds, trained
from ._main_losses import main_losses
from ._panels import select_losses
from ._sample_panels import Block, Panel, sample_figure
from ._setting import SYNTHETIC, data_source

if TYPE_CHECKING:
    from PIL.Image import Image

TASKS, LOSSES = 6, 8
"""Tasks, and losses of each, drawn at most; the CSV has all losses."""

_TEMPLATE = re.compile(r"^(Question|Q):\s*|\s*(Answer|A):$")
LARGEST = 512
"""Pixels of the longer side of a picture in the figure."""


def _is_count(value: int) -> str | None:
    return None if 1 <= value <= 10 else "must be from 1 to 10"


@dataclass(frozen=True)
class DatasetSamples:
    """Pictures, questions, truths and the answers of each loss, for a few test examples a task."""

    name: ClassVar[str] = "dataset_samples"
    title: ClassVar[str] = "Dataset samples"
    paper: ClassVar[str] = "Figure 4 (Appendix C.1)"

    rows: int = parameter(2, "rows of examples for each task", check=_is_count)

    def skip(self, run: Run) -> str | None:
        """Without a measured cell there are no answers."""
        return "no cell has results yet" if measured(run.cells).empty else None

    def build(self, run: Run) -> Artefact:
        """One grid a task, of the first model and the first seed that have results."""
        run, left_to_ablations = main_losses(run)
        cells = measured(run.cells)
        tasks = [task for task in cells["task"].cat.categories if (cells["task"] == task).any()]
        shown = [_of_one_model(run.cells[run.cells["task"] == task]) for task in tasks[:TASKS]]
        found = [_samples(run, of_task, self.rows) for of_task in shown]
        every = pd.concat(shown)
        caption = (
            "Test examples, spread evenly over the test split and not chosen by their answers, "
            "with what each loss answers: ✓ exact, ✗ not. Long texts are cut. Of each task the "
            "first model is shown, with its first seed that has results."
        )
        caption += n_and_seeds(run, every)
        if len(seeds := sorted(trained(run.cells)["seed"].unique())) > 1:
            caption += f" The run has seeds {', '.join(map(str, seeds))}."
        if len(tasks) > TASKS:
            caption += f" Drawn are {TASKS} of {len(tasks)} tasks."
        caption += _left_out_note(shown) + left_to_ablations + missing_note(every)
        figure = sample_figure([block for block, _ in found])
        data = pd.concat([data for _, data in found], ignore_index=True)
        return Artefact(caption, figure=figure, data=data)


def _of_one_model(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of a task that are shown: of one model and seed, the untuned base beside.

    Both have results; the cells of other losses with them may have none.
    """
    done = measured(cells)
    done = trained(done[done["model"] == done["model"].iloc[0]])
    of_model = cells[cells["model"] == done["model"].iloc[0]]
    shown: pd.DataFrame = of_model[
        (of_model["seed"] == done["seed"].min()) | (of_model["loss"] == "base")
    ]
    return shown


def _drawn(cells: pd.DataFrame) -> pd.Series[bool]:
    """Which of the cells shown of a task have a line in its panels."""
    return cells["loss"].isin(select_losses([str(loss) for loss in cells["loss"]], LOSSES))


def _left_out_note(shown: list[pd.DataFrame]) -> str:
    """A sentence on the losses that are not drawn; empty where all are."""
    left = (loss for cells in shown for loss in cells.loc[~_drawn(cells), "loss"])
    names = dict.fromkeys(loss_label(str(loss)) for loss in left)
    return f" Not drawn, but in the CSV: {', '.join(names)}." if names else ""


def _heading(run: Run, cells: pd.DataFrame) -> str:
    first = cells.iloc[-1]
    parts = [str(first["task"]), model_label(str(first["model"])), f"seed {first['seed']}"]
    if data_source(run, parts[0]) == SYNTHETIC:
        parts.insert(1, "synthetic data")
    return " · ".join(parts)


def _samples(run: Run, cells: pd.DataFrame, rows: int) -> tuple[Block, pd.DataFrame]:
    """The panels of a task, and the same as a tidy frame: one row an example and loss."""
    done = measured(cells)
    addresses = [str(address) for address in done["address"]]
    asked = run.read("completions", ["uid", "prompt", "target", "image"], addresses[:1])
    if "image" not in asked:
        asked["image"] = None
    columns = _columns(small_picture(asked["image"].iloc[0], LARGEST))
    asked = asked.iloc[_spread(len(asked), rows * columns)]
    answers = {address: _answers(run, address, list(asked["uid"])) for address in addresses}
    panels, tidy = [], []
    drawn = cells[_drawn(cells)]
    labels = [loss_label(str(loss)) for loss in drawn["loss"]]
    for at, row in enumerate(asked.to_dict("records")):
        shown = [
            answers[str(cell.address)][at]
            if cell.status == "done"
            else (f"no result ({cell.status})", None)
            for cell in drawn.itertuples()
        ]
        panels.append(
            Panel(
                question=_TEMPLATE.sub("", str(row["prompt"]).strip()),
                truth=str(row["target"]),
                answers=[(label, *answer) for label, answer in zip(labels, shown, strict=True)],
                picture=small_picture(row["image"], LARGEST),
                pictured=isinstance(row["image"], str),
            )
        )
        shared = {name: row[name] for name in ("model", "task", "uid", "prompt", "target")}
        for cell in done.itertuples():
            text, exact = answers[str(cell.address)][at]
            tidy.append({**shared, "loss": cell.loss, "completion": text, "exact": exact})
    return Block(_heading(run, cells), panels, columns), pd.DataFrame(tidy)


def _columns(picture: Image | None) -> int:
    """Four panels side by side for square pictures; three for wide ones and for text."""
    return 4 if picture is not None and picture.width < 1.2 * picture.height else 3


def _spread(total: int, number: int) -> list[int]:
    """That many positions, evenly over the whole: the middles of equal parts."""
    number = min(total, number)
    return [int((part + 0.5) * total / number) for part in range(number)]


def _answers(run: Run, address: str, uids: list[str]) -> list[tuple[str, bool | None]]:
    """Completion of each example and whether it is exact.

    None: the cell does not have it, or the answers of the task are no numbers.
    """
    texts = run.read("completions", ["uid", "completion"], [address]).set_index("uid")
    scores = run.read("scores", ["uid", "exact", "answer"], [address]).set_index("uid")
    exact, numbers = scores["exact"], scores["answer"].notna().any()
    known = texts["completion"]
    return [
        (str(known[uid]), bool(exact[uid]) if numbers else None) if uid in known.index
        else ("", None)
        for uid in uids
    ]  # fmt: skip
