"""Errors under each decoding rule: does the greedy completion hide what a loss gains?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact, Run
from smmd_bench.publishing.tables import DASH, number
from smmd_bench.scoring.decoding_rules import GREEDY, MASS, RULES, split_rule

from ._caption import spread_note, write_caption
from ._cells import REFERENCE, measured, metrics_of, one_row_a_metric, opponent
from ._columns import row_head, row_table
from ._values import delta, estimate, gain
from ._verdicts import with_tests_by_metric

FOUND = "Found (%)"


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
        other = opponent(data)
        table = row_table(_rows(data, decoders, other), self.title)
        unused = [c for c in map(str, table) if c.startswith("Δ") and (table[c] == DASH).all()]
        words = write_caption(
            run,
            measured(run.cells),
            f"Error metrics of the same weights under {len(decoders)} decoders. Greedy: the "
            "likeliest completion. Mean, median: of p(number), the parsed completions that a beam "
            f"search finds, scaled to 1; {FOUND}: the probability that they have before.",
            f"{delta(other)}: paired difference on the same examples under the same decoder; in "
            "parentheses the smallest true one that its test finds with a probability of 80 %.",
            spread_note(data, "metric"),
        )
        return Artefact(table=table.drop(columns=unused), data=data, **words)


def _data(run: Run) -> pd.DataFrame:
    """One row a cell, metric and decoder, in full precision; `found` is the mean of number_mass."""
    known = {str(metric) for metric in run.metrics["metric"].unique()}
    named = {split_rule(metric)[0] for metric in known if split_rule(metric)[1] != GREEDY}
    wanted = [metric for metric in sorted(known) if split_rule(metric)[0] in named]
    with_rules = run.metrics["metric"].map(lambda metric: split_rule(str(metric))[1] != GREEDY)
    ruled = run.metrics.loc[with_rules, "address"]
    cells = run.cells[run.cells["address"].isin(ruled)]
    data = with_tests_by_metric(one_row_a_metric(run, cells, wanted), run.only(cells))
    data = data[data["value"].notna()].reset_index(drop=True)
    data["name"] = [split_rule(metric)[0] for metric in data["metric"]]
    data["decoder"] = [split_rule(metric)[1] for metric in data["metric"]]
    masses = run.read("scores", [MASS]).groupby(["model", "task", "loss", "seed"], observed=True)
    found = masses[MASS].mean().rename("found").reset_index()
    return data.merge(found, how="left", on=["model", "task", "loss", "seed"])


def _rows(data: pd.DataFrame, decoders: list[str], other: str) -> Iterator[dict[str, str]]:
    for _, of_loss in data.groupby(["model", "task", "loss"], observed=True):
        labels = {m.name: m.label for m in metrics_of(str(of_loss["task"].iloc[0]))}
        ranked = [name for name in labels if name in {*of_loss["name"]}]
        for name in [*ranked, *sorted({*of_loss["name"]} - {*labels})]:
            yield _row(of_loss[of_loss["name"] == name], labels.get(name, name), decoders, other)


def _row(cells: pd.DataFrame, label: str, decoders: list[str], other: str) -> dict[str, str]:
    """The row of one model, task, loss and metric, whose cells differ in decoder and seed."""
    row = {**row_head(cells.iloc[0]), "Metric": label}
    by: dict[str, Any] = {name: cells[cells["decoder"] == name] for name in decoders}
    there = {name: part for name, part in by.items() if len(part)}
    row |= {name.capitalize(): estimate(p, "", 2, interval=False) for name, p in there.items()}
    if cells["loss"].iloc[0] != REFERENCE:
        row |= {f"{delta(other)}, {name}": gain(part, "", 2) for name, part in there.items()}
    first = next(iter(there.values()))
    return {**row, FOUND: number(100 * first["found"].mean(), 1), "Seeds": str(len(first))}
