"""`smmd-bench compare`: two runs, or losses of one; `smmd-bench power`: what a run could show."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UserError
from . import options
from .terminal import print_json, print_results, print_sentence
from .voice import rows_of

if TYPE_CHECKING:
    import pandas as pd

    from ..results.frames import RunFrames


@click.command()
@click.argument("a", type=options.PATH)
@click.argument("b", type=options.PATH, required=False)
@options.commas("--losses", word="loss", help="In place of B: the first one against the others.")
@click.option("--metric", help="Such as exact_match, or all (default: the first of each task).")
@options.as_json
@options.plugin
def command(
    a: Path, b: Path | None, losses: list[str] | None, metric: str | None, *, as_json: bool
) -> None:
    """Compare the cells that two runs share, or losses of one run.

    These have the same model, task, loss and seed. The difference is B minus A, on the same test
    examples, with its 95 % interval and its test. With `--losses` it is the first loss minus each
    other one, over all seeds that both have; p is corrected by Holm over the other losses.

    \b
    Examples:
      smmd-bench compare runs/BEFORE runs/AFTER --metric all
      smmd-bench compare runs/NAME --losses smmd,numeric_ce,brier
    """
    from ..results.frames import read_run

    if (b is None) == (losses is None) or len(losses or "ab") < 2:
        raise UserError("compare takes two runs, or one with --losses A,B: give one of these.")
    if b is not None:
        _compare_runs(read_run(a), read_run(b), metric, as_json)
    else:
        _compare_losses(read_run(a), losses or [], metric, as_json)


@click.command()
@click.argument("pilot", type=options.PATH, metavar="RUN")
@click.option("--difference", type=float, help="The difference to be found.")
@click.option("--metric", default="exact_match", help="Of this metric.")
@options.as_json
@options.plugin
def power(pilot: Path, difference: float | None, metric: str, *, as_json: bool) -> None:
    """Say how many seeds and examples a difference needs.

    A finished RUN is the pilot.

    \b
    Examples:
      smmd-bench power runs/PILOT --difference 2
    """
    from ..publishing.tables import number
    from ..results.frames import read_run
    from ..results.power import MOST, SEEDS, planned_power

    if difference is not None and not 0 < difference < math.inf:
        raise UserError(f"--difference {difference:g} is no size above 0: give one, such as 2.")
    found = planned_power(read_run(pilot), metric, difference)

    def columns(row: dict[str, Any]) -> dict[str, str]:
        shown = {f"{seeds} seeds": number(row[f"seeds_{seeds}"]) for seeds in SEEDS}
        if difference is not None:
            needed = f"over {MOST:,}" if row["needed"] is None else f"{row['needed']:,.0f}"
            shown[f"Seeds for {difference:g}"] = needed
        return {"n": f"{row['n']:,}", **shown}

    title = (
        f"What a run like {pilot} can show: the smallest true difference of {metric} to\n"
        "cross-entropy that the test finds with a probability of 80 %, at a level of 0.05"
    )
    caption = "n: test examples. With a pilot of one seed these are the least that is needed."
    content = {"pilot": str(pilot), "metric": metric, "left_out": found.attrs["left_out"]}
    _show(found, columns, title, caption, content if as_json else None)
    if not as_json:
        _say("Left out, because the pilot shows no spread", found.attrs["left_out"])


def _compare_runs(a: RunFrames, b: RunFrames, metric: str | None, as_json: bool) -> None:
    from ..publishing.tables import DASH, number
    from ..results.compare import compare_runs

    found = compare_runs(a, b, metric)

    def columns(row: dict[str, Any]) -> dict[str, str]:
        seed = DASH if row["loss"] == "base" else str(row["seed"])
        values = {"A": number(row["a"]), "B": number(row["b"])}
        return {"Seed": seed, "Metric": row["metric"], **values, **_difference(row, "B − A", "p")}

    caption = (
        "Brackets: 95 % intervals over the n test examples; Tango's of shares, with McNemar's "
        "exact p; of other metrics by the paired bootstrap. p is not corrected for their number."
    )
    content = {"a": str(a.path), "b": str(b.path), **vars(found)}
    title = f"A: {a.path}\nB: {b.path}"
    _show(found.rows, columns, title, caption, content if as_json else None)
    if not as_json:
        _say("Without an interval", found.unpaired)
        _say(f"Only in {a.path}", found.only_a)
        _say(f"Only in {b.path}", found.only_b)
        _say("Differs", found.settings)


def _compare_losses(run: RunFrames, losses: list[str], metric: str | None, as_json: bool) -> None:
    from ..publishing.style import loss_label
    from ..publishing.tables import number
    from ..results.compare import contrasts

    found = contrasts(run, losses, metric)

    def columns(row: dict[str, Any]) -> dict[str, str]:
        shown = {"Metric": row["metric"], "Against": loss_label(row["against"])}
        shown |= _difference(row, "Δ [95 %]", "p_holm")
        return {**shown, "Detectable": number(row["smallest"]), "Seeds": str(row["seeds"])}

    caption = (
        "Δ: the first loss minus the other, paired over the seeds that both have, by the test of "
        "the verdict; p_holm: corrected over the others. Detectable: the least true difference "
        "that it finds with a probability of 80 %."
    )
    content = {"run": str(run.path), "left_out": found.attrs["left_out"]}
    title = f"{loss_label(losses[0])} against others, {run.path}"
    _show(found, columns, title, caption, content if as_json else None)
    if not as_json:
        _say("Left out, without a seed that both have", found.attrs["left_out"])


def _difference(row: dict[str, Any], name: str, p: str) -> dict[str, str]:
    """A difference with its interval, its p, and the examples that it is of."""
    from ..publishing.tables import DASH, p_value, with_interval

    difference = with_interval(row["difference"], row["low"], row["high"], 2, sign=True)
    found = DASH if row[p] is None else p_value(row[p])
    return {name: difference, p: found, "n": DASH if row["n"] is None else f"{row['n']:,.0f}"}


def _show(
    found: pd.DataFrame,
    columns: Callable[[dict[str, Any]], dict[str, str]],
    title: str,
    caption: str,
    content: dict[str, Any] | None,
) -> None:
    """Print a table of model, task, loss and these columns of each row; or a JSON object."""
    import pandas as pd

    from ..publishing.style import loss_label

    rows = rows_of(found)
    if content is not None:
        print_json({**content, "rows": rows})
        return
    table = pd.DataFrame(
        {"Model": r["model"], "Task": r["task"], "Loss": loss_label(r["loss"]), **columns(r)}
        for r in rows
    )
    words = ("Model", "Task", "Loss", "Seed", "Metric", "Against")
    table.attrs["values"] = [name for name in table if name not in words]
    print_results(table, title, caption)


def _say(what: str, items: list[str]) -> None:
    if items:
        print_sentence(f"{what}: {'; '.join(items)}.")
