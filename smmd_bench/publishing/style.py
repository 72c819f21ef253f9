"""The one place for how figures look, with the matplotlib style file `paper.mplstyle`.

Colours are Okabe and Ito's, which people with any colour vision can tell apart; every loss also
has its own line style and marker, for a black-and-white printer. The losses that come with
smmd-bench look the same in every run. Figures are made with `new_figure`, without pyplot.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..plugin_system.parameters import TUNED, is_tuned, untuned_label
from ..plugin_system.registry import load_task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY, WHITE = "#767676", "#FFFFFF"
TARGET, OTHER = VERMILION, "#A9CCE3"
"""A highlighted bar (which is also hatched) and the bars around it."""

SCALE = 4 / 3
"""Figures are made so much larger than they are printed: text of 9 points is 6.75 in print."""
NARROW, WIDTH = SCALE * 3.25, SCALE * 6.75
"""Inches of a figure that is made for one column (`\\columnwidth`) and for two (`\\textwidth`)."""

STYLE = Path(__file__).with_name("paper.mplstyle")
"""The matplotlib style of all figures; others can use it: `plt.style.use(STYLE)`."""


@dataclass(frozen=True, slots=True)
class LossStyle:
    """How one loss is drawn: as a line or a marker."""

    colour: str
    line: str | tuple[int, tuple[float, ...]]
    marker: str | tuple[int, int, int]

    def lined(self, **changes: Any) -> dict[str, Any]:
        """Arguments of matplotlib for a line without markers."""
        return {"color": self.colour, "linestyle": self.line, **changes}

    def plotted(self, size: float = 5, **changes: Any) -> dict[str, Any]:
        """Arguments of `Axes.plot` for markers of that size; a star needs more room to look it."""
        star = self.marker == "*"
        return self.lined(marker=self.marker, markersize=size + 3 * star, **changes)


_KNOWN = {
    "base": LossStyle(GREY, (0, (1, 1.2)), "x"),
    "ce": LossStyle(BLACK, "-", "o"),
    "gce": LossStyle(ORANGE, (0, (5, 1.5)), "s"),
    "dist2": LossStyle(SKY, (0, (4, 1, 1, 1)), "v"),
    "ntl": LossStyle(BLUE, (0, (3, 1, 1, 1)), "^"),
    "ntil": LossStyle(GREEN, (0, (5, 1, 1, 1, 1, 1)), "D"),
    "smmd": LossStyle(VERMILION, (0, (9, 1.5)), "*"),
    "numeric_ce": LossStyle("#546E7A", (0, (6, 2)), "X"),
    "numeric_dft": LossStyle("#6D4C41", (0, (2, 2)), (7, 1, 0)),
    "oll": LossStyle("#33691E", (0, (8, 2, 1, 2)), (10, 1, 0)),
    "brier": LossStyle("#7E57C2", (0, (4, 1.5, 1, 1.5)), "H"),
    "cramer": LossStyle("#00838F", (0, (7, 1, 3, 1)), "8"),
    "del": LossStyle("#827717", (0, (2, 1, 1, 1)), (4, 1, 0)),
    "nl_ntl": LossStyle("#283593", (0, (5, 1, 2, 1)), (6, 1, 0)),
    "raft": LossStyle("#8E1B1B", (0, (1, 0.8)), (3, 1, 0)),
}
_LABELS = {
    "numeric_ce": "CE at numbers",
    "numeric_dft": "DFT at numbers",
    "brier": "Brier",
    "cramer": "Cramér",
    "nl_ntl": "NL-NTL",
}
"""Those that are not the name in capitals."""
_SPARE = (
    LossStyle(PURPLE, (0, (2, 1)), "P"),
    LossStyle("#B8A000", (0, (7, 2)), (5, 0, 180)),
    LossStyle("#5D4037", (0, (1, 1, 4, 1)), (8, 1, 0)),
    LossStyle("#1B5E20", (0, (6, 1, 2, 1)), "h"),
    LossStyle("#4A148C", (0, (3, 2)), "p"),
    LossStyle("#AD1457", (0, (8, 1, 1, 1)), "d"),
)

_TINTS = ((WHITE, 0.35), (BLACK, 0.4), (WHITE, 0.5), (BLACK, 0.65))
"""What the colour of a loss is mixed with for its variants."""


def loss_styles(losses: Iterable[str]) -> dict[str, LossStyle]:
    """A style for each loss spec. Losses of the package always have the same, others come in order.

    A variant such as `smmd[lambda=1]` has the hue of its loss, darker or lighter, and the line
    and marker of another.
    """
    styles = {}
    counts: Counter[LossStyle | None] = Counter()
    for loss in dict.fromkeys(losses):
        kin = _KNOWN.get(loss.partition("[")[0])
        if loss in _KNOWN:
            styles[loss] = _KNOWN[loss]
            continue

        # There are as many as people tell apart in one figure; then they come again.
        place = counts[kin]
        counts[kin] += 1
        styles[loss] = _SPARE[place % len(_SPARE)]
        if kin is not None:
            colour = _mix(kin.colour, *_TINTS[place % len(_TINTS)])
            styles[loss] = replace(styles[loss], colour=colour)
    return styles


def _mix(colour: str, other: str, share: float) -> str:
    """Mix two colours such as `#0072B2`, of which the other has that share."""
    parts = zip(bytes.fromhex(colour[1:]), bytes.fromhex(other[1:]), strict=True)
    mixed = [round(own + share * (new - own)) for own, new in parts]
    return f"#{bytes(mixed).hex()}"


def loss_label(loss: str) -> str:
    """`smmd[sigma=1]` -> `SMMD[sigma=1]`; `smmd[tuned]` -> `SMMD (tuned)`; `base` -> `untuned`;
    other losses, and labels of files of completions, as they are."""
    if loss == "base":
        return "untuned"
    if is_tuned(loss):
        return f"{loss_label(untuned_label(loss))} ({TUNED})"

    name, bracket, parameters = loss.partition("[")
    # The package's own names are acronyms; another one is written as its author does.
    label = _LABELS.get(name, name.upper()) if name in _KNOWN else name
    return label + bracket + parameters


def folded(label: str, letters: int) -> str:
    """A label in lines of at most so many letters, which break before a bracket, after a comma and
    around a plus: `smmd[sigma=1+2]` -> `smmd [sigma=1 + 2]`. A number such as `2,000` stays whole,
    and a word that is longer is cut in its middle.
    """
    lines = textwrap.wrap(spaced(label), letters, break_long_words=False)
    return "\n".join(shortened(line, letters) for line in lines)


def spaced(label: str) -> str:
    """A label with blanks where its lines may break: see `folded`."""
    wide = re.sub(r",(?!\d)", ", ", label.replace("[", " ["))
    wide = re.sub(r"(?<=\d)\+(?=\d)", " + ", wide)
    return " ".join(wide.split())


def shortened(label: str, letters: int) -> str:
    """A label of at most so many letters: its start and its end, which tell files apart."""
    if len(label) <= letters:
        return label
    end = (letters - 1) // 2  # one letter is the dots
    return f"{label[: letters - 1 - end]}…{label[len(label) - end :]}"


def model_label(model: str) -> str:
    """The last part of a hub name or of a local path, which is what fits in a title."""
    # The last part of `builtin/tiny` alone would hide that it is no pretrained model.
    if model.startswith("builtin/"):
        return model
    return model.rstrip("/").rpartition("/")[2]


def task_label(task: str) -> str:
    """The `display_name` of a task that has one, such as `prices.csv` of the rows of that file;
    of other tasks, and where the plugin is not here, the spec."""
    try:
        plugin = load_task(task)
    except UserError:
        return task
    return getattr(plugin, "display_name", task)


@contextmanager
def figure_style() -> Iterator[None]:
    """The style on matplotlib's defaults, whatever the user's matplotlibrc says, while a figure is
    made and saved. The backend stays."""
    from matplotlib import style

    with style.context(STYLE, after_reset=True):
        yield


def new_figure(width: float = WIDTH, height: float = 3.2) -> Figure:
    """An empty figure of that size in inches whose parts make room for each other."""
    from matplotlib.figure import Figure

    with figure_style():
        return Figure(figsize=(width, height), layout="constrained")


def width_for(columns: int) -> float:
    """The width of a figure with so many panels side by side: of one column, or of the page."""
    return NARROW if columns == 1 else WIDTH


def add_legend(figure: Figure) -> None:
    """Add one legend above the figure, with every label of its axes once.

    It is as wide as fits; the figure grows by the lines after the first. A label that is wider than
    the figure is cut in the middle.
    """
    # At the size of a legend's text an inch has about 13 letters; a handle takes the room of 8.
    letters = int(13 * figure.get_figwidth())
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(shortened(label, letters - 8), handle)
    if not handles:
        return

    widest = max(len(label) for label in handles)
    fitting = max(1, letters // (widest + 8))
    columns = min(len(handles), fitting)
    lines = math.ceil(len(handles) / columns)
    # In inches, a line of the legend at its size; the first has its room already.
    figure.set_figheight(figure.get_figheight() + 0.19 * (lines - 1))

    # matplotlib fills column by column; labels are read row by row.
    labels = []
    for column in range(columns):
        labels += [*handles][column::columns]
    in_rows = [handles[label] for label in labels]
    figure.legend(in_rows, labels, loc="outside upper center", ncols=columns)


def file_stem(spec: str) -> str:
    """A file name for a spec: `digit_distribution[digit=5]` -> `digit_distribution-digit-5`."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", spec).strip("-")
