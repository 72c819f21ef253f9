"""`smmd-bench power RUN`: how many seeds and examples a difference needs."""

from __future__ import annotations

import math
from pathlib import Path

import click

from ..errors import UserError
from . import options
from .terminal import print_json, print_results
from .voice import rows_of


@click.command()
@click.argument("pilot", type=options.PATH, metavar="RUN")
@click.option("--difference", type=float, help="The difference to be found.")
@click.option("--metric", default="exact_match", help="Of this metric.")
@options.as_json
@options.plugin
def command(pilot: Path, difference: float | None, metric: str, *, as_json: bool) -> None:
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
