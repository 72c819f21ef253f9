"""`smmd-bench compare`: two runs, or losses of one; `smmd-bench power`: what a run could show."""

from __future__ import annotations

import math
from pathlib import Path

import click

from ..errors import UserError
from . import options
from .terminal import print_json, print_results, print_sentence
from .voice import rows_of


@click.command()
@click.argument("a", type=options.PATH)
@click.argument("b", type=options.PATH, required=False)
@options.commas(
    "--losses", word="loss", help="In place of B: the first of these against the others."
)
@click.option(
    "--metric", help="A metric such as exact_match, or all (default: the first of each task)."
)
@options.as_json
@options.plugin
def command(
    a: Path, b: Path | None, losses: list[str] | None, metric: str | None, *, as_json: bool
) -> None:
    """Compare the cells that two runs share, or losses of one run.

    These have the same model, task, loss and seed. The difference is B minus A, on the same test
    examples, with its 95 % interval and its test. Differences between recipes and versions are
    listed.

    With `--losses` the difference is the first loss minus each other one, over all seeds that both
    have, by the test of the verdict; p is corrected by Holm over the other losses.

    \b
    Examples:
      smmd-bench compare runs/BEFORE runs/AFTER
      smmd-bench compare runs/BEFORE runs/AFTER --metric all --json
      smmd-bench compare runs/NAME --losses smmd,numeric_ce,brier
    """
    if (b is None) == (losses is None) or len(losses or "ab") < 2:
        raise UserError(
            "compare takes two runs, or one with --losses A,B of at least two losses: give one of "
            "these."
        )
    if b is not None:
        _compare_runs(a, b, metric, as_json=as_json)
    else:
        _compare_losses(a, losses or [], metric, as_json=as_json)


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
      smmd-bench power runs/PILOT
      smmd-bench power runs/PILOT --difference 2
    """
    import pandas as pd

    from ..publishing.style import loss_label
    from ..publishing.tables import number
    from ..results.frames import read_run
    from ..results.power import MOST, SEEDS, planned_power

    if difference is not None and not 0 < difference < math.inf:
        raise UserError(f"--difference {difference:g} is no size above 0: give one, such as 2.")
    found = planned_power(read_run(pilot), metric, difference)
    left_out = found.attrs["left_out"]
    if as_json:
        content = {"metric": metric, "rows": rows_of(found), "left_out": left_out}
        print_json({"pilot": str(pilot), **content})
        return
    rows = []
    for row in found.to_dict("records"):
        shown = {"Model": row["model"], "Task": row["task"], "Loss": loss_label(str(row["loss"]))}
        shown |= {"n": f"{row['n']:,}"}
        shown |= {f"{seeds} seeds": number(row[f"seeds_{seeds}"]) for seeds in SEEDS}
        if difference is not None:
            needed = f"over {MOST:,}" if pd.isna(row["needed"]) else f"{int(row['needed']):,}"
            shown[f"Seeds for {difference:g}"] = needed
        rows.append(shown)
    table = pd.DataFrame(rows)
    table.attrs["values"] = [*table.columns[3:]]
    caption = (
        f"The smallest true difference of {metric} to cross-entropy that the test finds with a "
        "probability of 80 %, by a mixed model of seeds and examples fitted to the pilot, at a "
        "level of 0.05 over the losses of a model and task. n: test examples."
    )
    if (found["pilot"] == 1).any():
        caption += " One seed says nothing of how seeds differ: these are the least that is needed."
    if left_out:
        names = ", ".join(map(loss_label, left_out))
        caption += f" Left out, because the pilot shows no spread of their differences: {names}."
    print_results(table, f"What a run like {pilot} can show", caption)


def _compare_runs(a: Path, b: Path, metric: str | None, *, as_json: bool) -> None:
    from ..results.compare import compare_runs
    from ..results.frames import read_run

    found = compare_runs(read_run(a), read_run(b), metric)
    if as_json:
        print_json({"a": str(a), "b": str(b), **vars(found), "rows": rows_of(found.rows)})
        return
    import pandas as pd

    from ..publishing.style import loss_label
    from ..publishing.tables import DASH, number, p_value, with_interval

    table = pd.DataFrame(
        {
            "Model": row["model"],
            "Task": row["task"],
            "Loss": loss_label(str(row["loss"])),
            "Seed": DASH if row["loss"] == "base" else str(row["seed"]),
            "Metric": row["metric"],
            "A": number(row["a"]),
            "B": number(row["b"]),
            "B − A": with_interval(row["difference"], row["low"], row["high"], 2, sign=True),
            "p": DASH if pd.isna(row["p"]) else p_value(row["p"]),
            "n": DASH if pd.isna(row["n"]) else f"{int(row['n']):,}",
        }
        for row in found.rows.to_dict("records")
    )
    table.attrs["values"] = ["A", "B", "B − A", "p", "n"]
    caption = (
        "Brackets: 95 % intervals over the n test examples; Tango's of shares, with McNemar's "
        "exact p; of other metrics by the paired bootstrap. p is not corrected for their number."
    )
    print_results(table, f"A: {a}\nB: {b}", caption)
    for sentence in found.unpaired:
        print_sentence(f"Without an interval: {sentence}.")
    for run, cells in ((a, found.only_a), (b, found.only_b)):
        if cells:
            print_sentence(f"Only in {run}: {'; '.join(cells)}.")
    for sentence in found.settings:
        print_sentence(f"Differs: {sentence}.")


def _compare_losses(run: Path, losses: list[str], metric: str | None, *, as_json: bool) -> None:
    from ..results.compare import contrasts
    from ..results.frames import read_run

    found = contrasts(read_run(run), losses, metric)
    left_out = found.attrs["left_out"]
    if as_json:
        print_json({"run": str(run), "rows": rows_of(found), "left_out": left_out})
        return
    import pandas as pd

    from ..publishing.style import loss_label
    from ..publishing.tables import DASH, number, p_value, with_interval

    table = pd.DataFrame(
        {
            "Model": row["model"],
            "Task": row["task"],
            "Metric": row["metric"],
            "Against": loss_label(row["against"]),
            "Δ [95 %]": with_interval(row["difference"], row["low"], row["high"], 2, sign=True),
            "p (Holm)": DASH if pd.isna(row["p_holm"]) else p_value(row["p_holm"]),
            "Detectable": number(row["smallest"]),
            "Seeds": str(row["seeds"]),
            "n": f"{row['n']:,}",
        }
        for row in found.to_dict("records")
    )
    table.attrs["values"] = [*table.columns[4:]]
    caption = (
        "Δ: the first loss minus the other, paired over the seeds that both have, by the test of "
        "the verdict. p (Holm): corrected over the others. Detectable: the least true difference "
        "that the test finds with a probability of 80 %."
    )
    print_results(table, f"{loss_label(losses[0])} against others, {run}", caption)
    if left_out:
        names = ", ".join(map(loss_label, left_out))
        print_sentence(f"Left out, because they share no measured seed with the first: {names}.")
