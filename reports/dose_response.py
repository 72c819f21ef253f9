"""What a loss does by its dose: how loud its auxiliary was beside cross-entropy in training.

A λ means another loudness for each loss. The dose, the mean of λ · auxiliary over cross-entropy
over all steps, puts a sweep of λ of several losses on one axis.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pandas as pd

from smmd_bench.contracts import Artefact, Percentage, ReportSkippedError, Run
from smmd_bench.plugin_system.parameters import is_tuned, split_spec
from smmd_bench.publishing.style import (
    GREY,
    WIDTH,
    LossStyle,
    add_legend,
    folded,
    loss_label,
    loss_styles,
    new_figure,
)
from smmd_bench.results.pairing import (
    find_metrics,
    find_reference,
    judged_metrics,
    pair_seeds,
    sum_up_seeds,
)
from smmd_bench.scoring.crossed import pseudo_values
from smmd_bench.scoring.gain import gain_of
from smmd_bench.scoring.statistics import common, paired_difference

from ._panels import LEAST, name_pair, stack_parts
from ._results import PAIR, list_numeric_tasks, list_pairs, select_pair, select_rows
from ._text import make_artefact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WEIGHT = "lambda"
CONTROLS = ("numeric_ce", "numeric_dft", "brier")
"""Losses that weight numbers without knowing how far apart they are."""


class WrongSigns(Percentage):
    """Share of answers that are negative where the truth is positive, or the other way."""

    name: ClassVar[str] = "wrong_signs"
    label: ClassVar[str] = "Wrong signs (%)"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    columns: ClassVar[tuple[str, ...]] = ("wrong_sign",)


WRONG_SIGNS = WrongSigns()
PAIRS, RESAMPLES = 4, 200
"""Models and tasks that are drawn; resamples, of which a share needs none."""
SHOWN = (
    "Difference to {} on the same seeds and examples, with its 95 % interval, by the dose: the "
    "mean of λ × auxiliary over cross-entropy over all training steps. Each line is a loss at "
    "several λ. Dashed lines with open markers are controls, which know no distances."
)


@dataclass(frozen=True)
class DoseResponse:
    """Differences to cross-entropy by the loudness of the auxiliary, from any sweep of λ."""

    name = "dose_response"
    title = "Dose and response"
    paper = "not in the paper"
    order = 110

    def build(self, run: Run) -> Artefact:
        """A row of panels a model and task: exact match, the error, wrong signs."""
        # The losses of completions made elsewhere are labels.
        if run.having("train_log").empty:
            raise ReportSkippedError("no cell has a training log")
        families = _find_families(run)
        # A line needs as many doses as any other curve.
        if not families:
            raise ReportSkippedError(f"no loss was trained with {LEAST} values of λ")
        if run.comparisons.empty:
            raise ReportSkippedError("no loss is compared yet")

        reference = find_reference(run)
        doses = _measure_doses(run)
        seeds = pair_seeds(run, reference)
        seeds = seeds[seeds["loss"].astype(str).isin(families)]

        parts = []
        for task in seeds["task"].unique():
            names = [metric.name for metric in judged_metrics(str(task))]
            of_task = seeds[(seeds["task"] == task) & seeds["metric"].isin(names)]
            parts.append(sum_up_seeds(of_task, reference))
        parts.append(_compare_signs(run, seeds))
        data = pd.concat(parts, ignore_index=True)
        data = data.merge(doses, on=[*PAIR, "loss"])
        data["family"] = data["loss"].astype(str).map(families)
        data = data[[*PAIR, "family", "loss", "dose", "metric", "seeds", "difference",
                     "low", "high"]]  # fmt: skip

        figure = _draw(data)
        subject = SHOWN.format(loss_label(reference))
        losses = run.cells["loss"].isin([reference, *data["loss"]])
        return make_artefact(run, run.cells[losses], subject, figure=figure, data=data)


def _find_families(run: Run) -> dict[str, str]:
    """By loss spec the same without λ, of those that were trained with enough values of it."""
    members: dict[str, list[str]] = {}
    for spec in map(str, run.cells["loss"].cat.categories):
        if is_tuned(spec):  # whose seeds may have chosen different ones
            continue
        name, parameters = split_spec(spec)
        parameters = {**parameters}
        parameters.pop(WEIGHT, None)
        fixed = [f"{key}={value}" for key, value in parameters.items()]
        family = f"{name}[{','.join(fixed)}]" if fixed else name
        members.setdefault(family, []).append(spec)

    families: dict[str, str] = {}
    for family, specs in members.items():
        if len(specs) >= LEAST and any(WEIGHT in split_spec(spec)[1] for spec in specs):
            families |= dict.fromkeys(specs, family)
    return families


def _measure_doses(run: Run) -> pd.DataFrame:
    """The mean over all steps of all seeds, by model, task and loss."""
    log = run.read("train_log", ["relative_auxiliary"])
    log = log.rename(columns={"relative_auxiliary": "dose"}).dropna(subset="dose")
    return log.groupby([*PAIR, "loss"])["dose"].mean().reset_index()


def _compare_signs(run: Run, seeds: pd.DataFrame) -> pd.DataFrame:
    """The differences of wrong signs, on tasks with answers below zero: what `gain_of` says."""

    @cache
    def read(address: str) -> pd.DataFrame:
        frame = run.read("scores", ["uid", "answer", "parsed"], [address])
        numbers = frame[["answer", "parsed"]].astype("float64")
        product = numbers["answer"] * numbers["parsed"]
        # What cannot be read has no sign, and so no wrong one.
        return frame.assign(wrong_sign=product.fillna(0.0) < 0)

    rows: list[dict[str, Any]] = []
    numeric = seeds[seeds["task"].isin(list_numeric_tasks(run))]
    for cell in numeric.drop_duplicates("address").to_dict("records"):
        sides = read(cell["address"]), read(cell["against"])
        if not (sides[0]["answer"].astype("float64") < 0).any():
            continue
        difference = paired_difference(WRONG_SIGNS, *sides, resamples=RESAMPLES)
        values = pseudo_values(WRONG_SIGNS, *common(*sides))
        key = {name: cell[name] for name in (*PAIR, "loss", "seed")}
        rows.append({**key, **asdict(difference), "jackknife": values})

    gains = []
    if rows:
        frame = pd.DataFrame(rows)
        for names, group in frame.groupby([*PAIR, "loss"], sort=False):
            key = dict(zip([*PAIR, "loss"], names, strict=True))
            gains.append({**key, "metric": WRONG_SIGNS.name, **gain_of(group)})
    return pd.DataFrame(gains)


def _draw(data: pd.DataFrame) -> Figure:
    pairs = list_pairs(data)[:PAIRS]
    heights = [3.0] * len(pairs)
    figure = new_figure(WIDTH, 0.5 + sum(heights))
    parts = stack_parts(figure, heights)
    styles = loss_styles(data["family"])
    for pair, part in zip(pairs, parts, strict=True):
        part.suptitle(folded(name_pair(pair), 100), fontsize=10)
        rows = select_pair(data, pair)
        labels = {
            metric.name: f"Δ {metric.label} ({metric.better} is better)"
            for metric in (*find_metrics(pair[1]), WRONG_SIGNS)
        }
        metrics = [*rows["metric"].unique()]
        axes = part.subplots(1, len(metrics), squeeze=False)
        for axis, metric in zip(axes.flat, metrics, strict=True):
            _draw_panel(axis, select_rows(rows, metric=metric), styles)
            axis.set(ylabel=labels[metric], xlabel="Dose")
    add_legend(figure)
    return figure


def _draw_panel(axis: Axes, rows: pd.DataFrame, styles: dict[str, LossStyle]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.axhline(0, color=GREY, linewidth=1)
    axis.set_xscale("log")
    # A sweep spans a decade or two, in which powers of ten alone are too few ticks.
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    for family, points in rows.groupby("family", sort=False):
        points = points.sort_values("dose")
        look = styles[str(family)]
        is_control = str(family).startswith(CONTROLS) or "kernel=" in str(family)
        plotted = look.plotted(
            label=loss_label(str(family)),
            linestyle="--" if is_control else "-",
            markerfacecolor="none" if is_control else look.colour,
        )
        axis.plot(points["dose"], points["difference"], **plotted)
        band: dict[str, Any] = {"color": look.colour, "alpha": 0.12, "linewidth": 0}
        axis.fill_between(points["dose"], points["low"], points["high"], **band)
