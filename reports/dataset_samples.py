"""Appendix C.1 of the paper, dataset samples: test examples with what each loss answers.

Pictures are read from where the run decoded them; one that is gone leaves an empty frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run, parameter
from smmd_bench.publishing.examples import small_picture
from smmd_bench.publishing.style import loss_label, model_label

from ._caption import named_seeds, when, write_caption
from ._cells import main_losses, measured
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
        run, left = main_losses(run)
        cells = measured(run.cells)
        tasks = [task for task in cells["task"].cat.categories if (cells["task"] == task).any()]
        shown = [_of_one_model(run.cells[run.cells["task"] == task]) for task in tasks[:TASKS]]
        found = [_samples(run, of_task, self.rows) for of_task in shown]
        seeds = _trained(run.cells)
        hidden = (loss for of_task in shown for loss in of_task.loc[~_drawn(of_task), "loss"])
        names = ", ".join(dict.fromkeys(loss_label(str(loss)) for loss in hidden))
        caption = write_caption(
            run,
            pd.concat(shown),
            "Test examples, spread evenly over the test split and not chosen by their answers, "
            "with what each loss answers: ✓ exact, ✗ not. Long texts are cut. Of each task the "
            "first model is shown, with its first seed that has results.",
            when(seeds["seed"].nunique() > 1, f"The run has {named_seeds(seeds)}."),
            when(len(tasks) > TASKS, f"Drawn are {TASKS} of {len(tasks)} tasks."),
            when(names, f"Not drawn, but in the CSV: {names}."),
            left,
        )
        figure = sample_figure([block for block, _ in found])
        data = pd.concat([data for _, data in found], ignore_index=True)
        return Artefact(figure=figure, data=data, **caption)


def _trained(cells: pd.DataFrame) -> pd.DataFrame:
    """Those of the cells that have seeds of training, which the untuned base has not; else all."""
    found: pd.DataFrame = cells[cells["loss"] != "base"]
    return cells if found.empty else found


def _of_one_model(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of a task that are shown: of one model and seed, the untuned base beside."""
    done = measured(cells)
    done = _trained(done[done["model"] == done["model"].iloc[0]])
    of_model = cells[cells["model"] == done["model"].iloc[0]]
    shown = (of_model["seed"] == done["seed"].min()) | (of_model["loss"] == "base")
    found: pd.DataFrame = of_model[shown]
    return found


def _drawn(cells: pd.DataFrame) -> pd.Series[bool]:
    """Which of the cells shown of a task have a line in its panels."""
    return cells["loss"].isin(select_losses([str(loss) for loss in cells["loss"]], LOSSES))


def _heading(run: Run, cells: pd.DataFrame) -> str:
    first = cells.iloc[-1]
    parts = [str(first["task"]), model_label(str(first["model"])), f"seed {first['seed']}"]
    if data_source(run, parts[0]) == SYNTHETIC:
        parts.insert(1, "synthetic data")
    return " · ".join(parts)


def _samples(run: Run, cells: pd.DataFrame, rows: int) -> tuple[Block, pd.DataFrame]:
    """The panels of a task, and the same as a tidy frame: one row an example and loss."""
    done, drawn = measured(cells), cells[_drawn(cells)]
    asked = run.read("completions", ["uid", "prompt", "target", "image"], done["address"][:1])
    if "image" not in asked:
        asked["image"] = None
    columns = _columns(small_picture(asked["image"].iloc[0], LARGEST))
    number = min(len(asked), rows * columns)
    asked = asked.iloc[[int((at + 0.5) * len(asked) / number) for at in range(number)]]
    asked = asked.drop(columns=["address", "loss", "seed"])
    answers = {
        loss: _answers(run, str(address), asked["uid"])
        for loss, address in zip(done["loss"], done["address"], strict=True)
    }
    states = zip(drawn["loss"], drawn["status"], strict=True)
    lines = {
        str(loss): answers.get(loss, [(f"no result ({status})", None)] * number)
        for loss, status in states
    }
    panels = [
        Panel(
            question=_TEMPLATE.sub("", str(row["prompt"]).strip()),
            truth=str(row["target"]),
            answers=[(loss_label(loss), *found[at]) for loss, found in lines.items()],
            picture=small_picture(row["image"], LARGEST),
            pictured=isinstance(row["image"], str),
        )
        for at, row in enumerate(asked.to_dict("records"))
    ]
    tidy = []
    for loss, found in answers.items():
        said = pd.DataFrame(found, asked.index, ["completion", "exact"], dtype="object")
        tidy.append(asked.drop(columns="image").assign(loss=loss).join(said))
    data = pd.concat(tidy).sort_index(kind="stable")
    return Block(_heading(run, cells), panels, columns), data


def _columns(picture: Image | None) -> int:
    """Four panels side by side for square pictures; three for wide ones and for text."""
    return 4 if picture is not None and picture.width < 1.2 * picture.height else 3


def _answers(run: Run, address: str, uids: pd.Series[str]) -> list[tuple[str, bool | None]]:
    """Completion of each example and whether it is exact.

    None: the cell does not have it, or the answers of the task are no numbers.
    """
    texts = run.read("completions", ["uid", "completion"], [address])
    scores = run.read("scores", ["uid", "exact", "answer"], [address])
    numbers = scores["answer"].notna().any()
    texts, scores = (of[of["uid"].isin(uids)].set_index("uid") for of in (texts, scores))
    exact = scores["exact"].to_dict() if numbers else {}
    known = {uid: (str(text), exact.get(uid)) for uid, text in texts["completion"].items()}
    return [known.get(uid, ("", None)) for uid in uids]
