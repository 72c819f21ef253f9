"""Did the loss help? The verdict as a table and as a picture, a forest of every loss.

One row a model, task, loss and metric: better, worse, or cannot tell. The home page shows the
picture of `make demo`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from smmd_bench.contracts import Artefact, ReportSkippedError, Run
from smmd_bench.publishing.style import loss_label, shortened
from smmd_bench.publishing.tables import DASH, number, with_interval
from smmd_bench.results.pairing import (
    KEY,
    drop_short_variants,
    find_reference,
    judged_metrics,
)
from smmd_bench.results.verdict import NOTHING_LEARNT, OPEN, find_dead_losses
from smmd_bench.scoring.gain import RECIPES

from ._forest import NOISE, draw_verdicts
from ._paper import describe_manifest
from ._results import (
    count_digits,
    describe_unpaired,
    explain_missing,
    require_results,
    select_pair,
    select_rows,
)
from ._text import (
    P_HOLM,
    describe_constants,
    describe_row,
    describe_unbeaten,
    format_p,
    make_artefact,
    select_notes,
    write_caption,
)

SHOWN = (
    "Differences of each task's first metric and of its error (lower is better, where both "
    "answer). Below ±x: a true difference of x is found 4 times in 5."
)

FLIPS, LINKS = "Flips", "links"
VALUE, DIFFERENCE = "value", "difference"
"""What two columns are called until they are named after the reference."""
FLIPPED = (
    "Flips: + examples that only the loss gets right, − only {}, summed over seeds."
)
GROUP = "Group"
GROUPED = (
    "Group compares all pairs, corrected by Holm for more tests than Verdict: losses that share a "
    "letter are not told apart there, also a worse one and CE. Each loss with a may be the best."
)


@dataclass(frozen=True)
class Verdict:
    """Each loss against cross-entropy, by the first metric of the task and by its error."""

    name = "verdict"
    title = "Did the loss help?"
    paper = ""
    order = 0

    def build(self, run: Run) -> Artefact:
        """A row for each loss and metric, or the reason why there is no difference."""
        require_results(run)
        if "predictions" in run.manifest and run.comparisons.empty:
            raise ReportSkippedError("a second file of predictions is needed")
        if not _list_judged(run):
            raise ReportSkippedError("the run has no loss besides cross-entropy")

        run = drop_short_variants(run)
        data = _spell_verdicts(run.verdict)
        table = pd.DataFrame(_make_rows(run, data)).fillna(DASH)
        _move_links(table)

        # The reference names two headings; a label of a file may be long.
        label = _shorten_label(run)
        difference = f"Δ to {label} [95 %]"
        table = table.rename(columns={VALUE: label, DIFFERENCE: difference})
        shown_always = ["Loss", "Metric", label, "Verdict", GROUP, difference]
        # A narrow terminal leaves the optional columns out, not the words of the verdict.
        table.attrs["values"] = [*shown_always, FLIPS, P_HOLM]
        table.attrs["optional"] = ["n", "Seeds", FLIPS, P_HOLM, label]

        # Of completions made elsewhere nothing is known but the files.
        if "predictions" in run.manifest:
            other = loss_label(find_reference(run))
            table.attrs["title"] = f"Which answers are better than those of {other}?"
            table = table.drop(columns="Seeds", errors="ignore")

        warning = _warn(run, table)
        return Artefact(
            f"{write_caption(run, run.cells, SHOWN, warning)}\n{describe_manifest(run)}",
            table,
            data=None if data.empty else data,
            notes=select_notes(table),
        )


def _shorten_label(run: Run) -> str:
    return shortened(loss_label(find_reference(run)), 14)


def _move_links(table: pd.DataFrame) -> None:
    """Move the links of the rows to where the page looks for them, by row and column."""
    if LINKS not in table:
        return

    links = table.pop(LINKS)
    # Most rows are of errors, which have no flips.
    linked_rows = links.index[links != DASH]
    table.attrs["links"] = {(row, FLIPS): links[row] for row in linked_rows}


def _warn(run: Run, table: pd.DataFrame) -> str:
    """What must not be misread: losses that a constant beats, flips and groups."""
    # A column that the table lacks needs no sentence.
    sentences = [describe_constants(run), describe_unbeaten(run)]
    if FLIPS in table:
        sentences.append(FLIPPED.format(_shorten_label(run)))
    if GROUP in table:
        sentences.append(GROUPED)
    return " ".join(filter(None, sentences))


def _spell_verdicts(data: pd.DataFrame) -> pd.DataFrame:
    """`run.verdict` with what a test could have found in the words: "cannot tell (below ±4.5)"."""
    verdicts = []
    for row in data.to_dict("records"):
        verdict = row["verdict"]
        # With too few seeds the verdict says so, and no size is known.
        if verdict == OPEN and math.isfinite(row["smallest"]):
            size = number(row["smallest"], count_digits(row["label"]))
            verdict = f"{OPEN} (below ±{size})"
        verdicts.append(verdict)

    return data.assign(verdict=verdicts)


def _list_judged(run: Run) -> set[str]:
    """The losses that a verdict is about."""
    losses = {*run.cells["loss"]} - {find_reference(run)}
    # A file of completions may be called `base`.
    return losses if "predictions" in run.manifest else losses - {"base"}


def _make_rows(run: Run, data: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row a loss and metric, in the order of the run; the noise floor is the last of its pair."""
    other = find_reference(run)
    judged = _list_judged(run)
    without_learning = find_dead_losses(run)
    gains = dict([*data.groupby(KEY)])

    # Sorting by it puts the reference below the losses of its model and task.
    cells = run.cells.assign(is_reference=run.cells["loss"] == other)
    order = ["task", "model", "is_reference", "loss"]
    for (task, model, is_reference, loss), group in cells.groupby(order):
        head = describe_row(group.iloc[0])
        if is_reference:
            pair = (str(model), str(task))
            ranked = select_rows(select_pair(data, pair), against_loss=other)
            yield from _make_reference_rows(ranked, head)
            # What is left of the reference is its noise: itself against itself.
            head = {**head, "Loss": head["Loss"] + NOISE}

        key = (model, task, loss)
        dead = NOTHING_LEARNT if key in without_learning else ""
        if key in gains:
            yield from _make_gain_rows(gains[key], head, other, dead)
        # The reference and the untuned model need no row without a difference.
        elif loss in judged:
            reason = explain_missing(group) or dead
            reason = reason or describe_unpaired(run, group, other)
            yield {**head, "Verdict": reason}


def _make_reference_rows(
    gains: pd.DataFrame, head: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """The group of cross-entropy by metric, where losses are ranked."""
    # Groups exist from five losses on.
    ranked = gains[gains["against_letters"] != ""]
    for gain in ranked.drop_duplicates("metric").to_dict("records"):
        value = number(gain["against_value"], count_digits(gain["label"]))
        yield {
            **head,
            "Metric": gain["label"],
            VALUE: value,
            GROUP: gain["against_letters"],
        }


def _make_gain_rows(
    gains: pd.DataFrame, head: dict[str, str], other: str, dead: str
) -> Iterator[dict[str, Any]]:
    """A row a metric, the ones without a value first: they say why; `dead` is a reason for all."""
    metrics = judged_metrics(str(gains["task"].iloc[0]))
    for metric in metrics:
        if metric.name not in {*gains["metric"]}:
            verdict = dead or "no value to compare"
            yield {**head, "Metric": metric.label, "Verdict": verdict}

    for gain in gains.to_dict("records"):
        yield head | _make_gain_row(gain, is_noise=gain["loss"] == other)


def _make_gain_row(gain: dict[Any, Any], *, is_noise: bool) -> dict[str, Any]:
    digits = count_digits(gain["label"])
    row = {
        "Metric": gain["label"],
        VALUE: number(gain["against_value"], digits),
        "Verdict": gain["verdict"],
    }

    # Cross-entropy has its letter in its own row, and not in that of its noise.
    if gain["letters"] and not is_noise:
        row[GROUP] = gain["letters"]

    bounds = (gain["difference"], gain["low"], gain["high"])
    return {
        **row,
        DIFFERENCE: with_interval(*bounds, digits, sign=True),
        **_format_flips(gain, linked=not is_noise),
        P_HOLM: format_p(gain["p_holm"]),
        "Seeds": str(gain["seeds"]),
        "n": f"{gain['n']:,}",
    }


def _format_flips(gain: dict[Any, Any], *, linked: bool) -> dict[str, Any]:
    """`+31 / −47` of a share of examples, with the fragments of the page that show them."""
    if pd.isna(gain["gained"]):
        return {}

    gained, lost = f"+{gain['gained']:,}", f"−{gain['lost']:,}"
    cells: dict[str, Any] = {FLIPS: f"{gained} / {lost}"}

    # The page filters completions by whether they are right. Two recipes of one loss it cannot
    # tell apart.
    if linked and gain["metric"] == "exact_match" and gain["interval"] != RECIPES:
        loss, other = gain["loss"], gain["against_loss"]
        cells[LINKS] = {
            gained: _make_link(gain, right=loss, wrong=other),
            lost: _make_link(gain, right=other, wrong=loss),
        }
    return cells


def _make_link(gain: dict[Any, Any], *, right: str, wrong: str) -> str:
    query = {
        "model": gain["model"],
        "task": gain["task"],
        "right": right,
        "wrong": wrong,
    }
    return "completions?" + urlencode(query)


PICTURED = (
    "Differences on the same test examples and seeds; right of the line is better. A band ends at "
    "the smallest true difference that the test finds 4 times in 5. Intervals cover seeds and "
    "examples (filled markers) or examples alone (open); one without an end is longer "
    "than its panel."
)


@dataclass(frozen=True)
class Overview:
    """The verdict of each loss, with the difference and what could have been seen."""

    name = "overview"
    title = "Did the loss help? The verdict as a picture"
    paper = "not in the paper"
    order = 0

    def build(self, run: Run) -> Artefact:
        """One row of panels a model and task: its first metric, and its error if it has one."""
        require_results(run)
        # The noise floor alone is no picture of any loss.
        is_noise = run.verdict["loss"] == run.verdict["against_loss"]
        if is_noise.all():
            raise ReportSkippedError(
                "no loss has results beside those of cross-entropy for the same seed"
            )

        run = drop_short_variants(run)
        data = _spell_verdicts(run.verdict)
        figure = draw_verdicts(run, data)
        return make_artefact(run, run.cells, PICTURED, figure=figure, data=data)
