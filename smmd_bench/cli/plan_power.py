"""The table of `smmd-bench plan --power`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..results.power import MOST, SEEDS

if TYPE_CHECKING:
    import pandas as pd


def print_power(pilot: Path, found: pd.DataFrame, metric: str, difference: float | None) -> None:
    """Print what `planned_power` found."""
    import pandas as pd

    from ..publishing.style import loss_label
    from ..publishing.tables import number
    from .terminal import print_results

    needed = f"Seeds for {difference:g}" if difference is not None else ""
    rows = []
    for row in found.to_dict("records"):
        shown = {"Model": str(row["model"]), "Task": str(row["task"])}
        shown |= {"Loss": loss_label(str(row["loss"])), "n": f"{row['n']:,}"}
        shown |= {f"{seeds} seeds": number(row[f"seeds_{seeds}"]) for seeds in SEEDS}
        if needed:
            most = pd.isna(row["needed"])
            shown[needed] = f"over {MOST:,}" if most else f"{int(row['needed']):,}"
        rows.append(shown)
    table = pd.DataFrame(rows)
    table.attrs["values"] = [name for name in table.columns if "eeds" in name]
    pilots = ", ".join(map(str, sorted(found["pilot"].unique())))
    caption = (
        f"The smallest true difference of {metric} to cross-entropy that the test finds with a "
        f"probability of 80 %, by a mixed model of seeds and examples fitted to the pilot (seeds: "
        f"{pilots}), at a level of 0.05 over the losses of a model and task. n: test examples."
    )
    if (found["pilot"] == 1).any():
        caption += (
            " One seed says nothing of how seeds differ: the numbers are the least that is needed."
        )
    if left_out := found.attrs["left_out"]:
        names = ", ".join(map(loss_label, left_out))
        caption += f" Left out, because the pilot shows no spread of their differences: {names}."
    print_results(table, f"What a run like {pilot} can show", caption)
