"""`smmd-bench compare`: two runs, or losses of one; `smmd-bench power`: what a run could show."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UserError
from . import options
from .voice import print_json, print_results, print_sentence, rows_of

if TYPE_CHECKING:
    import pandas as pd

    from ..results.frames import RunFrames


@click.command()
@click.argument("a", type=options.PATH)
@click.argument("b", type=options.PATH, required=False)
@options.commas(
    "--losses",
    word="LOSS",
    help="In place of B: compare the first of these losses with each other one (default: ce with "
    "all others).",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="The metric to compare, such as exact_match or MAE, or all (default: the first of each "
    "task).",
)
@options.as_json
@options.plugin
def command(
    a: Path,
    b: Path | None,
    losses: list[str] | None,
    metric: str | None,
    *,
    as_json: bool,
) -> None:
    """Compare the cells that two runs share, or losses of one run.

    The difference is B minus A, on the same test examples; of one run the first loss minus each
    other one, over all seeds that both have, with p corrected by Holm; of five losses or more also
    the groups that no test tells apart.

    \b
    Examples:
      smmd-bench compare runs/NAME --metric all
      smmd-bench compare runs/NAME --losses smmd,numeric_ce,brier
    """
    from ..results.frames import read_run
    from ..results.pairing import name_metric

    if b is not None and losses is not None:
        raise UserError(
            "compare takes two runs, or one with --losses A,B: give one of these."
        )
    run = read_run(a)
    if metric is not None:
        metric = name_metric(run, metric)
    if b is not None:
        _compare_runs(run, read_run(b), metric, as_json)
        return
    _compare_losses(run, losses or _find_losses(run), metric, as_json)


def _find_losses(run: RunFrames) -> list[str]:
    """Find the losses that have results, the reference first."""
    from ..results.baselines import REFERENCE
    from ..storage.cell import BASE

    losses = dict.fromkeys(cell["loss"] for cell in run.measured)
    losses.pop(BASE, None)
    return sorted(losses, key=lambda loss: loss != REFERENCE)


@click.command()
@click.argument("pilot", type=options.PATH, metavar="RUN")
@click.option(
    "--difference",
    type=float,
    metavar="POINTS",
    help="Also say how many seeds find a true difference of so much, such as 2.",
)
@click.option(
    "--metric",
    default="exact_match",
    metavar="NAME",
    help="The metric of the differences, such as exact_match or MAE.",
)
@options.as_json
@options.plugin
def power(pilot: Path, difference: float | None, metric: str, *, as_json: bool) -> None:
    """Say how many seeds a difference needs, by a finished RUN.

    \b
    Examples:
      smmd-bench power runs/PILOT --difference 2
    """
    from ..results.frames import read_run
    from ..results.pairing import label_metric, name_metric
    from ..results.power import LEAST, planned_power

    if difference is not None and not 0 < difference < math.inf:
        raise UserError(
            f"--difference {difference:g} is no size above 0: give one, such as 2."
        )
    run = read_run(pilot)
    metric = name_metric(run, metric)
    table = planned_power(run, metric, difference)
    left_out = table.attrs["left_out"]
    if as_json:
        content = {"pilot": str(pilot), "metric": metric, "rows": rows_of(table)}
        print_json({**content, "left_out": left_out})
        return
    label = label_metric(table["task"].iloc[0], metric)
    caption = (
        f"The smallest true difference of {label} to CE that so many seeds find with a probability "
        "of 80 %; –: too few seeds to know. Level: 0.05 over the losses of a task (Holm). The "
        "verdict's number is often smaller: it takes the spread over these seeds as known. With "
        "few seeds, more examples can show less: the spread over seeds, which few seeds estimate "
        "badly, is then most of the error."
    )
    if difference is not None:
        caption += f" Needed: seeds for a difference of {difference:g}."
    if (table["pilot"] == 1).any():
        caption += (
            f" One seed says nothing of the spread over seeds: give {LEAST} at least, and expect "
            "larger differences than these."
        )
    _print(table, f"What a run like {pilot} can show", caption)
    _say("Left out, because the pilot shows no spread", left_out)


def _compare_runs(
    a: RunFrames, b: RunFrames, metric: str | None, as_json: bool
) -> None:
    from ..results.compare import compare_runs

    comparison = compare_runs(a, b, metric)
    if as_json:
        content = {**vars(comparison), "rows": rows_of(comparison.rows)}
        print_json({"a": str(a.path), "b": str(b.path), **content})
        return
    caption = (
        "Difference: B − A, with 95 % intervals over the n test examples: Tango's of shares, with "
        "McNemar's p; of other metrics by the paired bootstrap. p is not corrected."
    )
    _print(comparison.rows, f"A: {a.path}\nB: {b.path}", caption)
    _say("Without an interval", comparison.unpaired)
    _say(f"Only in {a.path}", comparison.only_a)
    _say(f"Only in {b.path}", comparison.only_b)
    _say("Differs", comparison.settings)


def _compare_losses(
    run: RunFrames, losses: list[str], metric: str | None, as_json: bool
) -> None:
    from ..publishing.style import loss_label
    from ..results.compare import contrasts, tied_losses

    # A run leaves out a parameter that is the default, and people may write it.
    losses = [options.as_in_run(run, loss) for loss in losses]
    table = contrasts(run, losses, metric)
    # Which loss is first, no single contrast can say.
    tied = tied_losses(run, losses, metric)
    left_out = table.attrs["left_out"]
    if as_json:
        content = {"run": str(run.path), "rows": rows_of(table), "left_out": left_out}
        print_json({**content, "groups": rows_of(tied)})
        return
    caption = (
        "Difference: the first loss minus the other, over the seeds that both have. p (Holm): "
        "corrected over the others. Detectable: found with a probability of 80 %."
    )
    title = f"{loss_label(losses[0])} against others, {run.path}"
    _print(table.drop(columns="p"), title, caption)
    _say("Left out, without a seed that both have", left_out)
    if len(tied):
        caption = (
            "Losses that share a letter are told apart by no test (all pairs, Holm)."
        )
        _print(tied, "Who is first?", caption)


def _print(data: pd.DataFrame, title: str, caption: str) -> None:
    """Print the rows: a difference with its interval, losses as tables call them."""
    import pandas as pd

    # The ends of an interval stand beside their difference, and two columns are notes.
    hidden = ("low", "high", "pilot", "least")
    names = [str(name) for name in data if name not in hidden]
    rows = []
    for row in rows_of(data):
        rows.append({name: _spell(row, name) for name in names})
    table = pd.DataFrame(rows, columns=names)

    table.columns = pd.Index(
        [_HEADINGS.get(n, n.replace("_", " ").capitalize()) for n in names]
    )
    # A table leaves out a column with one value alone, unless it is a result.
    words = ("Model", "Task", "Loss", "Seed", "Metric", "Against")
    table.attrs["values"] = [name for name in table if name not in words]
    print_results(table, title, caption)


_HEADINGS = {
    "p": "p",
    "n": "n",
    "p_holm": "p (Holm)",
    "smallest": "Detectable",
    "letters": "Group",
}


def _spell(row: dict[str, Any], name: str) -> str:
    from ..publishing.style import loss_label
    from ..publishing.tables import DASH, number, p_value, with_interval
    from ..results.pairing import label_metric
    from ..results.power import MOST

    value = row[name]
    # The base has one row, without a training seed.
    if value is None or (name == "seed" and row["loss"] == "base"):
        return f">{MOST:,}" if name == "needed" else DASH
    if name in ("loss", "against"):
        return loss_label(value)
    if name == "metric":
        return label_metric(row["task"], value)
    if name == "difference":
        return with_interval(value, row["low"], row["high"], sign=True)
    if name.startswith("p") or name == "level":
        return p_value(value)
    # A pilot of one seed does not know the spread over seeds.
    if name == "needed" and row["least"] is not None and value < row["least"]:
        return f"{value:,.0f} (take {row['least']:.0f})"
    if name in ("n", "seed", "seeds", "needed"):
        return f"{value:,.0f}"
    return value if isinstance(value, str) else number(value)


def _say(what: str, items: list[str]) -> None:
    if items:
        more = f"; {len(items) - 5} more" if len(items) > 5 else ""
        print_sentence(f"{what}: {'; '.join(items[:5])}{more}.")
