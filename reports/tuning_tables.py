"""What tuning chose for each loss, and errors under each decoding rule."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.plugin_system.parameters import split_list
from smmd_bench.publishing.style import add_legend, loss_label, loss_styles
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.results.opponents import REFERENCE
from smmd_bench.results.verdict import KEY, metrics_of
from smmd_bench.scoring.decoding_rules import GREEDY, MASS, RULES, split_rule

from ._cells import PAIR, measured, metric_labels, named_seeds, opponent
from ._panels import LEAST, parameter_panels, set_values, symbol
from ._results import result_frame, with_tests
from ._text import caption, delta, estimate, gain, notes_of, row_head, row_table, without_dashes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TUNED = (
    "The setting that validates best for each seed, without a test example. Validation is of the "
    "best of several settings, and so too high."
)
CURVES = (
    "The figure shows validation by each parameter or setting of the recipe with three values or "
    "more, at the best of the others; bars are the standard deviation over seeds."
)


@dataclass(frozen=True)
class TuningTable:
    """A row a model, task and tuned loss, and curves; figures/tuning_table.csv has all trials."""

    name: ClassVar[str] = "tuning_table"
    title: ClassVar[str] = "What tuning chose"
    paper: ClassVar[str] = "not in the paper"
    order: ClassVar[int] = 130

    def skip(self, run: Run) -> str | None:
        """A tuned loss is needed."""
        return "the run has no tuned loss" if run.tuning.empty else None

    def build(self, run: Run) -> Artefact:
        """The settings of each loss, those that were chosen, and the best validation value."""
        data = run.tuning
        sizes = sorted(data["n"].dropna().unique())
        n = " or ".join(f"{int(size):,}" for size in sizes) or "0"
        figure = _tuned_curves(data)
        shown = f"{TUNED} {CURVES}" if figure else TUNED
        words = f"{shown} n = {n} validation examples; {named_seeds(data)}."
        table, rows = row_table(_tuned_rows(data), self.title), data.drop(columns="address")
        return Artefact(words, table, figure, rows, notes_of(table))


def _tuned_rows(data: pd.DataFrame) -> Iterator[dict[str, str]]:
    for (model, task, _), group in data.groupby(KEY, observed=True):
        head = row_head({"model": model, "task": task, "loss": group["untuned"].iloc[0]})
        settings = dict.fromkeys(group["text"])
        row = {**head, "Settings": str(len(settings)), "Tried": "; ".join(settings)}
        chosen = group[group["chosen"]]
        if chosen.empty:
            yield {**row, "Chosen": DASH}
            continue
        seeds, counts = group["seed"].nunique(), chosen["text"].value_counts()
        said = ", ".join(f"{text} ({n} of {seeds})" for text, n in counts.items())
        said = said.replace(")", " seeds)", 1) if seeds > 1 else str(counts.index[0])
        metric = str(chosen["metric"].iloc[0])
        label = metric_labels(str(task)).get(metric, metric)
        value = estimate(chosen, 1 if "%" in label else 2, interval=True)
        yield {**row, "Chosen": said, "Metric": label, "Validation": value}


def _tuned_curves(data: pd.DataFrame) -> Figure | None:
    """A panel a model, task and varied setting, a curve a loss; None: nothing has enough values."""
    tried = [
        {**row, "varied": key, "at": value}
        for row in data[data["value"].notna()].to_dict("records")
        for key, value in _numbers(str(row["text"]))
    ]
    if not tried:
        return None
    trials = pd.DataFrame(tried)
    keys = [*PAIR, "metric", "varied", "untuned"]
    better = {m.name: m.better for task in data["task"].unique() for m in metrics_of(str(task))}
    lower = trials["metric"].map(better) == "lower"
    rank = trials["value"].where(~lower, -trials["value"])
    point = [trials[name] for name in (*keys, "seed", "at")]
    found = trials.loc[rank.groupby(point, sort=False).idxmax()]
    found = found[found.groupby(keys)["at"].transform("nunique") >= LEAST]
    panels = [*found.groupby(keys[:4], sort=False)]
    if not panels:
        return None
    figure, axes = parameter_panels([(str(model), str(task)) for (model, task, *_), _ in panels])
    styles = loss_styles(map(str, found["untuned"].unique()))
    for axis, ((_, task, metric, varied), own) in zip(axes, panels, strict=True):
        label = metric_labels(str(task)).get(str(metric), metric)
        axis.set(xlabel=symbol(str(varied)), ylabel=f"Validation, {label}")
        for loss, curve in own.groupby("untuned", sort=False):
            means = curve.groupby("at")["value"].agg(["mean", "std"]).fillna(0)
            how = styles[str(loss)].plotted(
                label=loss_label(str(loss)), elinewidth=1.1, capsize=2.5
            )
            axis.errorbar(means.index, means["mean"], means["std"], **how)
        set_values(axis, sorted(own["at"].unique()))
    add_legend(figure)
    return figure


def _numbers(text: str) -> Iterator[tuple[str, float]]:
    """The settings of a trial that are numbers."""
    for setting in split_list(text):
        key, _, value = setting.partition("=")
        with suppress(ValueError):
            yield key, float(value)


DECODED = (
    "Error metrics of the same weights by decoder. Greedy: the likeliest completion. Mean, median: "
    "of p(number), the parsed completions of a beam search, scaled to 1; Found: their probability "
    "before."
)


@dataclass(frozen=True)
class DecodingTable:
    """One row a model, task, loss and metric of the error; a column a decoder."""

    name: ClassVar[str] = "decoding_table"
    title: ClassVar[str] = "Decoding rules"
    paper: ClassVar[str] = "not in the paper"
    order: ClassVar[int] = 125

    def skip(self, run: Run) -> str | None:
        """A rule other than greedy must have answered."""
        decoders = {split_rule(str(metric))[1] for metric in run.metrics["metric"].unique()}
        return None if decoders - {GREEDY} else "the run decodes greedily alone"

    def build(self, run: Run) -> Artefact:
        """Each metric under each decoder, and its difference to CE under the same."""
        data = _data(run)
        decoders = [name for name in (GREEDY, *RULES) if name in {*data["decoder"]}]
        table = row_table(_decoded_rows(data, decoders, opponent(data)), self.title)
        table = without_dashes(table, [name for name in table if str(name).startswith("Δ")])
        words = caption(run, measured(run.cells), DECODED)
        return Artefact(words, table, data=data.drop(columns="address"), notes=notes_of(table))


def _data(run: Run) -> pd.DataFrame:
    """The result frame with name and decoder of each metric, and `found`: the mean mass."""
    rules = {str(metric): split_rule(str(metric)) for metric in run.metrics["metric"].unique()}
    ruled = {name for name, rule in rules.values() if rule != GREEDY}
    wanted = [metric for metric in sorted(rules) if rules[metric][0] in ruled]
    own = [metric for metric in wanted if rules[metric][1] != GREEDY]
    addresses = run.metrics.loc[run.metrics["metric"].isin(own), "address"]
    cells = run.cells[run.cells["address"].isin(addresses)]
    data = with_tests(result_frame(run, cells, wanted), run, wanted)
    data = data[data["value"].notna()].reset_index(drop=True)
    data["name"], data["decoder"] = zip(*(rules[metric] for metric in data["metric"]), strict=True)
    masses = run.read("scores", [MASS]).groupby([*KEY, "seed"], observed=True)
    found = masses[MASS].mean().rename("found").reset_index()
    return data.merge(found, how="left", on=[*KEY, "seed"])


def _decoded_rows(data: pd.DataFrame, decoders: list[str], other: str) -> Iterator[dict[str, str]]:
    for _, of_loss in data.groupby(KEY, observed=True):
        labels = metric_labels(str(of_loss["task"].iloc[0]))
        known = {*of_loss["name"]}
        for name in [*filter(known.__contains__, labels), *sorted(known - {*labels})]:
            cells = of_loss[of_loss["name"] == name]
            row = {**row_head(cells.iloc[0]), "Metric": labels.get(name, name)}
            by = {str(rule): cells[cells["decoder"] == rule] for rule in decoders}
            there = {rule: part for rule, part in by.items() if len(part)}
            row |= {rule.capitalize(): estimate(part, 2) for rule, part in there.items()}
            if cells["loss"].iloc[0] != REFERENCE:
                row |= {f"{delta(other)}, {rule}": gain(p, 2) for rule, p in there.items()}
            first = next(iter(there.values()))
            found = number(100 * first["found"].mean(), 1)
            yield {**row, "Found (%)": found, "Seeds": str(len(first))}
