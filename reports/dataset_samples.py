"""Appendix C.1 of the paper, dataset samples: test examples with what each loss answers.

Pictures are read from where the run decoded them; one that is gone leaves an empty frame. The text
is monospaced: a line of so many letters fits in a panel, whatever it says.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run, parameter
from smmd_bench.publishing.examples import small_picture
from smmd_bench.publishing.style import WIDTH, loss_label, model_label, new_figure, shortened
from smmd_bench.publishing.tables import DASH

from ._cells import main_losses, measured, select_losses
from ._panels import say
from ._paper import SYNTHETIC, data_source
from ._text import NOTES, caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

TASKS, LOSSES = 6, 8
"""Tasks, and losses of each, drawn at most; the CSV has all losses."""
LARGEST = 512
"""Pixels of the longer side of a picture in the figure."""
FONT, LINE, LETTER = "DejaVu Sans Mono", 0.16, 0.0645
"""The text's font, and inches from line to line and from letter to letter."""
HEAD, GAP, TALLEST = 0.35, 0.2, 1.9
"""Inches: of a heading, between panels, and of a picture at most."""
LABEL = 12
"""Letters of the name of a loss."""
MARKS = {True: "✓", False: "✗", None: DASH}
_TEMPLATE = re.compile(r"^(Question|Q):\s*|\s*(Answer|A):$")
SHOWN = (
    "Test examples, spread evenly over the test split and not chosen by their answers, with what "
    "each loss answers: ✓ exact, ✗ not. Long texts are cut. Of each task the first model is shown, "
    f"with its first seed that has results; at most {TASKS} tasks and {LOSSES} losses are drawn."
)


@dataclass(frozen=True)
class Panel:
    """An example. `answers` are label, text and whether it is exact (None: there is none).

    `pictured` without a `picture`: the example has one that cannot be read.
    """

    question: str
    truth: str
    answers: Sequence[tuple[str, str, bool | None]]
    picture: Image | None = None
    pictured: bool = False


@dataclass(frozen=True)
class Block:
    """The panels of a task under a heading, in that many columns."""

    heading: str
    panels: Sequence[Panel]
    columns: int


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
        run = main_losses(run)
        groups = [cells for _, cells in run.cells.groupby("task", observed=True)]
        shown = [_of_one_model(cells) for cells in groups if len(measured(cells))][:TASKS]
        found = [_samples(run, cells, self.rows) for cells in shown]
        figure = sample_figure([block for block, _ in found])
        data = pd.concat([data for _, data in found], ignore_index=True)
        return Artefact(caption(run, pd.concat(shown), SHOWN), None, figure, data, NOTES)


def _of_one_model(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of a task that are shown: of one model and seed, the untuned base beside."""
    done = measured(cells)
    own, done = (x[x["model"] == done["model"].iloc[0]] for x in (cells, done))
    trained = done[done["loss"] != "base"]
    seed = (done if trained.empty else trained)["seed"].min()
    found: pd.DataFrame = own[(own["seed"] == seed) | (own["loss"] == "base")]
    return found


def _samples(run: Run, cells: pd.DataFrame, rows: int) -> tuple[Block, pd.DataFrame]:
    """The panels of a task, and the same as a tidy frame: one row an example and loss."""
    done, last = measured(cells), cells.iloc[-1]
    asked = run.read("completions", ["uid", "prompt", "target", "image"], done["address"][:1])
    asked["image"] = asked.get("image")
    first = small_picture(asked["image"].iloc[0], LARGEST)
    columns = 4 if first is not None and first.width < 1.2 * first.height else 3
    number = min(len(asked), rows * columns)
    asked = asked.iloc[[int((at + 0.5) * len(asked) / number) for at in range(number)]]
    asked = asked.drop(columns=["address", "loss", "seed"])
    answers = {
        str(loss): _answers(run, str(address), asked["uid"])
        for loss, address in zip(done["loss"], done["address"], strict=True)
    }
    states = {str(k): str(v) for k, v in zip(cells["loss"], cells["status"], strict=True)}
    lines = {
        loss: answers.get(loss, [(f"no result ({states[loss]})", None)] * number)
        for loss in select_losses(states, LOSSES)
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
    task = str(last["task"])
    source = ["synthetic data"] * (data_source(run, task) == SYNTHETIC)
    heading = " · ".join([task, *source, model_label(str(last["model"])), f"seed {last['seed']}"])
    return Block(heading, panels, columns), pd.concat(tidy).sort_index(kind="stable")


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


def sample_figure(blocks: Sequence[Block]) -> Figure:
    """The blocks, one under another: a heading, then rows of pictures and of texts."""
    texts = [_texts(block) for block in blocks]
    lines = [max(text.count("\n") for text in of_block) + 3.0 for of_block in texts]
    heights = []
    for block, most in zip(blocks, lines, strict=True):
        rows = -(-len(block.panels) // block.columns)
        heights.append(HEAD + rows * (LINE * most + TALLEST * _is_pictured(block)))
    figure = new_figure(WIDTH, sum(heights))
    figure.set_layout_engine("constrained", h_pad=0.0, w_pad=GAP / 2, hspace=0, wspace=0)
    parts = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, block, own, most in zip(parts, blocks, texts, lines, strict=True):
        part.suptitle(block.heading, x=0.01, ha="left", fontsize=10, fontweight="bold")
        step = 1 + _is_pictured(block)
        rows = -(-len(block.panels) // block.columns)
        ratios = [TALLEST, LINE * most][-step:] * rows
        axes = part.subplots(step * rows, block.columns, squeeze=False, height_ratios=ratios)
        for axis in axes.flat:
            axis.set_axis_off()
        for axis, panel in zip(axes[::step].flat, block.panels, strict=False):
            if step > 1:
                _show(axis, panel.picture)
        for axis, text in zip(axes[step - 1 :: step].flat, own, strict=False):
            how: Any = {"family": FONT, "size": 7.5, "parse_math": False, "linespacing": 1.3}
            axis.text(0, 1, text, va="top", transform=axis.transAxes, in_layout=False, **how)
    return figure


def _is_pictured(block: Block) -> bool:
    return any(panel.pictured for panel in block.panels)


def _texts(block: Block) -> list[str]:
    """The text of each panel: the question, the truth and the answers, as many lines in all."""
    letters = int(((WIDTH - block.columns * GAP) / block.columns) / LETTER)
    most = 3 if _is_pictured(block) else 6
    asked = [
        textwrap.wrap(drawable(panel.question), letters, max_lines=most, placeholder="…")
        for panel in block.panels
    ]
    first, room = max(map(len, asked)), letters - LABEL - 3
    found = []
    for panel, question in zip(block.panels, asked, strict=True):
        truth = drawable(panel.truth)
        keep_end = len(truth) > room
        lines = [
            *question,
            *[""] * (first - len(question)),
            _line(" ", "truth", clipped(truth, room, keep_end=keep_end)),
        ]
        for label, text, exact in panel.answers:
            shown = drawable(text) if text.strip() or exact is None else "(nothing)"
            lines.append(_line(MARKS[exact], label, clipped(shown, room, keep_end=keep_end)))
        found.append("\n".join(lines))
    return found


def _line(mark: str, label: str, text: str) -> str:
    return f"{mark} {shortened(label, LABEL):<{LABEL}} {text}"


def drawable(text: str) -> str:
    """One line, with a box for every character that the font does not have."""
    return "".join(c if ord(c) in _letters() else "□" for c in " ".join(text.split()))


def clipped(text: str, letters: int, *, keep_end: bool) -> str:
    """The text, or as much of its start or end as that many letters hold with an ellipsis."""
    if len(text) <= letters:
        return text
    return "…" + text[1 - letters :] if keep_end else text[: letters - 1] + "…"


@cache
def _letters() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont(FONT)).get_charmap())


def _show(axis: Axes, picture: Image | None) -> None:
    """A picture, or words that it is gone."""
    if picture is None:
        say(axis, "picture not found")
    else:
        axis.imshow(picture)
        axis.set_anchor("NW")
