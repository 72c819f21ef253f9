"""Table 8 and Appendix C.1 of the paper: the sizes of the datasets, and samples of them.

Samples are test examples with what each loss answers. Pictures are read from where the run decoded
them. The text is monospaced: a line of so many letters fits in a panel, whatever it says.
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
from smmd_bench.plugin_system.parameters import split_spec
from smmd_bench.publishing.examples import small_picture
from smmd_bench.publishing.style import WIDTH, loss_label, model_label, new_figure, shortened
from smmd_bench.publishing.tables import DASH

from ._cells import main_losses, measured, select_losses
from ._panels import say
from ._paper import SYNTHETIC, UNKNOWN, data_source, other_data, rows
from ._text import caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure
    from PIL.Image import Image

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
        data = dataset_sizes(run)
        table = data.rename(columns={"task": "Task", "source": "Data", **SPLITS, **BESIDE})
        for column in (*SPLITS.values(), *BESIDE.values()):
            table[column] = [DASH if pd.isna(size) else f"{size:,}" for size in table[column]]
        known = data[[*BESIDE]].notna().any(axis=None)
        unused = ["Data"] * bool((data["source"] == UNKNOWN).all())
        table = table.drop(columns=unused + ([] if known else [*BESIDE.values()]))
        table.attrs["title"] = self.title
        return Artefact(SIZES_CAPTION, table, data=data)


def dataset_sizes(run: Run) -> pd.DataFrame:
    """One row a task: source, train, validation, test, published_train and published_test.

    Published sizes stand beside the paper's level and data alone.
    """
    found = []
    for task, sizes in _sizes(run).items():
        name = None if other_data(run, task) else split_spec(task)[0]
        paper: dict[str, Any] = next((r for r in rows("dataset_sizes") if r["task"] == name), {})
        line: dict[str, Any] = {"task": task, "source": data_source(run, task)}
        line |= {split: sizes.get(split) for split in SPLITS}
        line |= {column: paper.get(column.removeprefix("published_")) for column in BESIDE}
        found.append(line)
    return pd.DataFrame(found).astype(dict.fromkeys([*SPLITS, *BESIDE], "Int64"))


def _sizes(run: Run) -> dict[str, dict[str, int]]:
    data = run.manifest.get("data") or {}
    return {task: known["sizes"] for task, known in data.items() if known.get("sizes")}


TASKS, LOSSES = 6, 8
"""Tasks, and losses of each, drawn at most; the CSV has all losses."""
LARGEST = 512
"""Pixels of the longer side of a picture in the figure."""
FONT, LINE, LETTER = "DejaVu Sans Mono", 0.16, 0.0645
"""The text's font, and inches from line to line and from letter to letter."""
HEAD, GAP, TALLEST = 0.35, 0.2, 1.9
"""Inches: of a heading, between panels, and of a picture."""
LABEL = 12
"""Letters of the name of a loss."""
MARKS = {True: "✓", False: "✗", None: DASH}
_TEMPLATE = re.compile(r"^(Question|Q):\s*|\s*(Answer|A):$")
SHOWN = (
    "Test examples, spread evenly over the test split and not chosen by their answers, with what "
    "each loss answers: ✓ exact, ✗ not. Long texts are cut. Of each task the first model is shown, "
    f"with its first seed that has results; at most {TASKS} tasks and {LOSSES} losses are drawn."
)


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
        blocks = [_block(run, cells, self.rows) for cells in shown]
        data = pd.concat([block.data for block in blocks], ignore_index=True)
        words = caption(run, pd.concat(shown), SHOWN)
        return Artefact(words, figure=_figure(blocks), data=data)


@dataclass(frozen=True)
class Block:
    """The panels of a task: a picture (None: there is none, or it cannot be read) and a text each.

    `data` has one row an example and loss.
    """

    heading: str
    columns: int
    pictures: Sequence[Image | None]
    pictured: bool
    texts: Sequence[str]
    data: pd.DataFrame

    @property
    def rows(self) -> int:
        """How many rows of panels there are."""
        return -(-len(self.texts) // self.columns)

    @property
    def heights(self) -> list[float]:
        """Inches of the picture, if there are some, and of the text of a panel."""
        text = LINE * (self.texts[0].count("\n") + 3)
        return [TALLEST, text] if self.pictured else [text]


def _of_one_model(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of a task that are shown: of one model and seed, the untuned base beside."""
    done = measured(cells)
    own, done = (x[x["model"] == done["model"].iloc[0]] for x in (cells, done))
    trained = done[done["loss"] != "base"]
    seed = (done if trained.empty else trained)["seed"].min()
    found: pd.DataFrame = own[(own["seed"] == seed) | (own["loss"] == "base")]
    return found


def _block(run: Run, cells: pd.DataFrame, rows: int) -> Block:
    done, last = measured(cells), cells.iloc[-1]
    asked = run.read("completions", ["uid", "prompt", "target", "image"], done["address"][:1])
    asked["image"] = asked.get("image")
    first = small_picture(asked["image"].iloc[0], LARGEST)
    columns = 4 if first is not None and first.width < 1.2 * first.height else 3
    number = min(len(asked), rows * columns)
    asked = asked.iloc[[int((at + 0.5) * len(asked) / number) for at in range(number)]]
    asked = asked.drop(columns=["address", "loss", "seed"])
    parts = {}
    for loss, address in zip(done["loss"], done["address"], strict=True):
        answers = _answers(run, str(address), asked["uid"]).set_index(asked.index)
        parts[str(loss)] = asked.drop(columns="image").assign(loss=loss).join(answers)
    states = {str(k): str(v) for k, v in zip(cells["loss"], cells["status"], strict=True)}
    drawn = select_losses(states, LOSSES)
    pictures = [small_picture(image, LARGEST) for image in asked["image"]]
    pictured = bool(asked["image"].notna().any())
    letters = int(((WIDTH - columns * GAP) / columns) / LETTER)
    most, questions = 3 if pictured else 6, []
    for prompt in asked["prompt"]:
        plain = drawable(_TEMPLATE.sub("", str(prompt).strip()))
        questions.append(textwrap.wrap(plain, letters, max_lines=most, placeholder="…"))
    deepest, texts = max(map(len, questions)), []
    for at, question in enumerate(questions):
        said = [(" ", "truth", str(asked["target"].iloc[at]))]
        for loss in drawn:
            row = parts[loss].iloc[at] if loss in parts else None
            text = f"no result ({states[loss]})" if row is None else str(row["completion"])
            exact = None if row is None or pd.isna(row["exact"]) else bool(row["exact"])
            said.append((MARKS[exact], loss_label(loss), text))
        texts.append(
            "\n".join([*question, *[""] * (deepest - len(question)), *_lines(said, letters)])
        )
    task = str(last["task"])
    source = ["synthetic data"] * (data_source(run, task) == SYNTHETIC)
    heading = " · ".join([task, *source, model_label(str(last["model"])), f"seed {last['seed']}"])
    data = pd.concat([*parts.values()]).sort_index(kind="stable")
    return Block(heading, columns, pictures, pictured, texts, data)


def _answers(run: Run, address: str, uids: pd.Series[str]) -> pd.DataFrame:
    """Completion of each example and whether it is exact.

    None: the cell does not have it, or the answers of the task are no numbers.
    """
    texts = run.read("completions", ["uid", "completion"], [address])
    scores = run.read("scores", ["uid", "exact", "answer"], [address])
    exact = scores.set_index("uid")["exact"].astype("object").reindex(uids)
    exact[:] = None if scores["answer"].isna().all() else exact
    said = texts.set_index("uid")["completion"].reindex(uids).fillna("")
    return pd.DataFrame({"completion": said, "exact": exact.where(exact.notna(), None)})


def _lines(said: Sequence[tuple[str, str, str]], letters: int) -> list[str]:
    """The truth and the answers, all cut at the same end."""
    room = letters - LABEL - 3
    keep_end = len(drawable(said[0][2])) > room
    lines = []
    for mark, label, text in said:
        shown = clipped(drawable(text) or "(nothing)", room, keep_end=keep_end)
        lines.append(f"{mark} {shortened(label, LABEL):<{LABEL}} {shown}")
    return lines


def _figure(blocks: Sequence[Block]) -> Figure:
    """The blocks, one under another."""
    heights = [HEAD + block.rows * sum(block.heights) for block in blocks]
    figure = new_figure(WIDTH, sum(heights))
    figure.set_layout_engine("constrained", h_pad=0.03, w_pad=GAP / 2, hspace=0, wspace=0)
    parts = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, block in zip(parts, blocks, strict=True):
        _draw(part, block)
    return figure


def _draw(part: SubFigure, block: Block) -> None:
    """Rows of pictures and of texts below a heading."""
    part.suptitle(block.heading, x=0.01, ha="left", fontsize=10, fontweight="bold")
    step, ratios = len(block.heights), block.heights * block.rows
    axes = part.subplots(step * block.rows, block.columns, squeeze=False, height_ratios=ratios)
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, picture in zip(axes[::step].flat, block.pictures, strict=False):
        if picture is not None:
            axis.imshow(picture)
            axis.set_anchor("NW")
        elif block.pictured:
            say(axis, "picture not found")
    how: Any = {"family": FONT, "size": 7.5, "parse_math": False, "linespacing": 1.3}
    for axis, text in zip(axes[step - 1 :: step].flat, block.texts, strict=False):
        axis.text(0, 1, text, va="top", transform=axis.transAxes, in_layout=False, **how)


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
