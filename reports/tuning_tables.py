"""What tuning chose for each loss, and errors under each decoding rule."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.plugin_system.parameters import split_list
from smmd_bench.publishing.style import LossStyle, add_legend, loss_label, loss_styles
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.baselines import REFERENCE
from smmd_bench.results.pairing import KEY, find_metrics, label_metric, label_metrics
from smmd_bench.scoring.decoding_rules import GREEDY, MASS, RULES, split_rule

from ._panels import LEAST, make_panels, name_symbol, set_values
from ._results import (
    PAIR,
    add_tests,
    count_digits,
    find_opponent,
    join_results,
    name_seeds,
    select_measured,
    select_rows,
)
from ._text import (
    describe_row,
    drop_dashes_below,
    format_estimate,
    format_gain,
    make_artefact,
    make_table,
    name_difference,
    select_notes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TUNED = (
    "The setting that validates best for each seed, without a test example. Validation is of the "
    "best of several settings, and so too high."
)
TIES = "Ties"
TIED = f"{TIES}: other settings that validate as well; an error decides, then the first setting."
CURVES = (
    "The figure shows validation by each parameter or setting of the recipe with three values or "
    "more, at the best of the others; bars are the standard deviation over seeds."
)


@dataclass(frozen=True)
class TuningTable:
    """A row a model, task and tuned loss, and curves; figures/tuning_table.csv has all trials."""

    name = "tuning_table"
    title = "What tuning chose"
    paper = "not in the paper"
    order = 130

    def build(self, run: Run) -> Artefact:
        """The settings of each loss, those that were chosen, and the best validation value."""
        data = run.tuning
        if data.empty:
            raise ReportSkippedError("the run has no tuned loss")
        sizes = sorted(data["n"].dropna().unique())
        n = " or ".join(f"{int(size):,}" for size in sizes) or "0"

        # Without three values of a setting there is no curve to explain.
        figure = _draw_tuned_curves(data)
        content = f"{TUNED} {CURVES}" if figure else TUNED
        table = make_table(_make_tuned_rows(data))
        if TIES in table:
            content = f"{content} {TIED}"
        return Artefact(
            f"{content} n = {n} validation examples; {name_seeds(data)}.",
            table,
            figure,
            data.drop(columns="address"),
            select_notes(table),
        )


def _make_tuned_rows(data: pd.DataFrame) -> Iterator[dict[str, str]]:
    for (_, task, _), trials in data.groupby(KEY):
        # The column Loss names what was tuned: `SMMD`, and not `SMMD (tuned)`.
        first = trials.iloc[0]
        head = describe_row({**first, "loss": first["untuned"]})
        settings = trials["text"].unique()
        row = {**head, "Settings": str(len(settings)), "Tried": "; ".join(settings)}

        # While a run is in progress nothing may be chosen yet.
        chosen = trials[trials["chosen"]]
        if chosen.empty:
            yield {**row, "Chosen": DASH}
            continue

        metric = str(chosen["metric"].iloc[0])
        label = label_metric(str(task), metric)
        seeds = trials["seed"].nunique()
        row |= {
            "Chosen": _describe_choice(chosen, seeds),
            "Metric": label,
            "Validation": format_estimate(chosen, count_digits(label), interval=True),
        }
        if ties := _count_ties(trials):
            row[TIES] = ties
        yield row


def _describe_choice(chosen: pd.DataFrame, seeds: int) -> str:
    """`lambda=3 (2 of 3 seeds), lambda=1 (1 of 3)`: each seed chooses for itself."""
    counts = chosen["text"].value_counts()
    if seeds == 1:
        return str(counts.index[0])
    first, *further = [f"{text} ({n} of {seeds})" for text, n in counts.items()]
    return ", ".join([first.replace(")", " seeds)", 1), *further])


def _count_ties(trials: pd.DataFrame) -> str:
    """How many other settings of each seed have the value of the chosen one: `2, 0, 1`."""
    counts = []
    for _, of_seed in trials.groupby("seed"):
        best = of_seed.loc[of_seed["chosen"], "value"]
        counts.append(int(of_seed["value"].isin(best).sum()) - len(best))
    return ", ".join(map(str, counts)) if any(counts) else ""


def _draw_tuned_curves(data: pd.DataFrame) -> Figure | None:
    """A panel a model, task and varied setting, a curve a loss; None: nothing has enough values."""
    points = _select_points(data)
    if points.empty:
        return None

    panels = [*points.groupby([*PAIR, "metric", "varied"], sort=False)]
    figure, axes = make_panels([key[:2] for key, _ in panels])

    # A loss looks the same in all panels, also where it is alone.
    losses = points["untuned"].unique()
    styles = loss_styles(map(str, losses))

    for axis, (key, curves) in zip(axes, panels, strict=True):
        _, task, metric, varied = map(str, key)
        label = label_metric(task, metric)
        axis.set(xlabel=name_symbol(varied), ylabel=f"Validation, {label}")
        for loss, curve in curves.groupby("untuned", sort=False):
            _draw_curve(axis, curve, str(loss), styles[str(loss)])

        values = sorted(curves["at"].unique())
        set_values(axis, values)

    add_legend(figure)
    return figure


def _select_points(data: pd.DataFrame) -> pd.DataFrame:
    """Of each seed the best trial at each value (`at`) of each setting (`varied`) of a curve."""
    trials = _list_numeric_settings(data)
    if trials.empty:
        return trials

    # The largest rank is the best: of an error the smallest value.
    directions: dict[str, str] = {}
    for task in data["task"].unique():
        directions |= {metric.name: metric.better for metric in find_metrics(str(task))}
    is_error = trials["metric"].map(directions) == "lower"
    rank = trials["value"].where(~is_error, -trials["value"])

    # A curve of one setting is at the best of the others, else it would depend on the grid.
    curve = [*PAIR, "metric", "varied", "untuned"]
    ranked = trials.assign(rank=rank)
    by_point = ranked.groupby([*curve, "seed", "at"], sort=False)
    best = trials.loc[by_point["rank"].idxmax()]

    by_curve = best.groupby(curve)
    values = by_curve["at"].transform("nunique")
    return best[values >= LEAST]


def _list_numeric_settings(data: pd.DataFrame) -> pd.DataFrame:
    """A row a validated trial and setting of it that is a number."""
    # A trial of two numbers is a point of two curves.
    rows = []
    for trial in data[data["value"].notna()].to_dict("records"):
        for setting in split_list(str(trial["text"])):
            name, _, value = setting.partition("=")
            # The others are words, such as a schedule, and make no axis.
            with suppress(ValueError):
                rows.append({**trial, "varied": name, "at": float(value)})
    return pd.DataFrame(rows)


def _draw_curve(axis: Axes, curve: pd.DataFrame, loss: str, look: LossStyle) -> None:
    # One seed has no deviation, and a bar of no length.
    means = curve.groupby("at")["value"].agg(["mean", "std"]).fillna(0)
    plotted = look.plotted(label=loss_label(loss), elinewidth=1.1, capsize=2.5)
    axis.errorbar(means.index, means["mean"], means["std"], **plotted)


DECODED = (
    "Error metrics of the same weights by decoder. Greedy: the likeliest completion. Mean, median: "
    "of p(number), the parsed completions of a beam search, scaled to 1; Found: their probability "
    "before."
)


@dataclass(frozen=True)
class DecodingTable:
    """One row a model, task, loss and metric of the error; a column a decoder."""

    name = "decoding_table"
    title = "Decoding rules"
    paper = "not in the paper"
    order = 125

    def build(self, run: Run) -> Artefact:
        """Each metric under each decoder, and its difference to CE under the same."""
        # Greedy decoding is what all other tables show.
        rules = _split_rules(run)
        if (rules["decoder"] == GREEDY).all():
            raise ReportSkippedError("the run decodes greedily alone")
        data = _join_decoders(run, rules)
        present = {*data["decoder"]}
        decoders = [name for name in (GREEDY, *RULES) if name in present]
        table = make_table(_make_decoded_rows(data, decoders, find_opponent(data)))
        table = drop_dashes_below(table, "Δ")
        data = data.drop(columns="address")
        return make_artefact(
            run, select_measured(run.cells), DECODED, table=table, data=data
        )


def _split_rules(run: Run) -> pd.DataFrame:
    """`name` and `decoder` by metric: `mean_absolute_error[mean]` is under the rule `mean`."""
    # A metric has its rule in its name.
    rules = {
        metric: split_rule(str(metric)) for metric in run.metrics["metric"].unique()
    }
    return pd.DataFrame.from_dict(rules, orient="index", columns=["name", "decoder"])


def _join_decoders(run: Run, rules: pd.DataFrame) -> pd.DataFrame:
    """The result frame with name and decoder of each metric, and `found`: the mean mass."""
    ruled = rules[rules["decoder"] != GREEDY]

    # Of what no rule answers, cell or metric, there is nothing to compare here.
    is_ruled = run.metrics["metric"].isin(ruled.index)
    addresses = run.metrics.loc[is_ruled, "address"]
    has_rules = run.cells["address"].isin(addresses)
    cells = run.cells[has_rules]

    # Greedy decoding stands beside the rules, by the same metrics.
    is_compared = rules["name"].isin(ruled["name"])
    metrics = sorted(rules.index[is_compared])

    data = join_results(run, cells, metrics)
    data = add_tests(data, run, metrics)
    data = data.dropna(subset="value").join(rules, on="metric")

    # What the beam search of a cell found, as a probability, is a mean over its examples.
    key = [*KEY, "seed"]
    scores = run.read("scores", [MASS])
    masses = scores.groupby(key)[MASS].mean()
    found_masses = masses.reset_index(name="found")
    return data.merge(found_masses, how="left", on=key)


def _make_decoded_rows(
    data: pd.DataFrame, decoders: list[str], other: str
) -> Iterator[dict[str, str]]:
    for _, cells in data.groupby(KEY):
        labels = label_metrics(str(cells["task"].iloc[0]))
        present = {*cells["name"]}

        # In the task's order; metrics that it no longer has come last.
        names = [name for name in labels if name in present]
        names += sorted(present - {*labels})
        for name in names:
            rows = select_rows(cells, name=name)
            yield {
                **describe_row(rows.iloc[0]),
                "Metric": labels.get(name, name),
                **_make_decoded_row(rows, decoders, other),
            }


def _make_decoded_row(
    cells: pd.DataFrame, decoders: list[str], other: str
) -> dict[str, str]:
    """The values of one metric under each decoder, then its differences."""
    values = {}
    differences = {}
    present = [rule for rule in decoders if (cells["decoder"] == rule).any()]
    for rule in present:
        rows = select_rows(cells, decoder=rule)
        values[rule.capitalize()] = format_estimate(rows, 2)
        if rows["loss"].iloc[0] != REFERENCE:
            differences[f"{name_difference(other)}, {rule}"] = format_gain(rows, 2)

    # All rules read the same beam search, so that the rows of one say what it found.
    seeds = select_rows(cells, decoder=present[0])
    return {
        **values,
        **differences,
        "Found (%)": number(100 * seeds["found"].mean(), 1),
        "Seeds": str(len(seeds)),
    }
