"""`smmd-bench compare RUN_A RUN_B`: the same cells in two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completion, options

if TYPE_CHECKING:
    from ..results.compare import RunComparison


@click.command()
@click.argument("a", type=click.Path(path_type=Path), shell_complete=completion.runs)
@click.argument("b", type=click.Path(path_type=Path), shell_complete=completion.runs)
@click.option(
    "--metric",
    default=None,
    help="A metric such as exact_match, or all (default: the first of each task).",
)
@options.as_json
@options.plugin
def command(a: Path, b: Path, metric: str | None, as_json: bool, plugins: tuple[Path, ...]) -> None:
    """Compare the cells that the runs A and B share: same model, task, loss and seed.

    The difference is B minus A, on the same test examples, with its 95 % paired bootstrap
    interval and McNemar's exact test; what differs in recipes and versions is said, too.

    \b
    Examples:
      smmd-bench compare runs/BEFORE runs/AFTER
      smmd-bench compare runs/BEFORE runs/AFTER --metric all --json
    """
    from ..plugin_system.registry import load_plugin_file
    from ..results.compare import compare_runs
    from ..results.frames import read_run
    from .run_plugins import load_plugins_of
    from .voice import Voice

    for file in plugins:
        load_plugin_file(file)
    load_plugins_of((a, b), Voice(as_json=as_json))
    found = compare_runs(read_run(a), read_run(b), metric)
    if as_json:
        content = {
            "a": str(a),
            "b": str(b),
            "rows": json.loads(found.rows.to_json(orient="records")),
            "only_a": found.only_a,
            "only_b": found.only_b,
            "settings": found.settings,
            "unpaired": found.unpaired,
        }
        click.echo(json.dumps(content, indent=1, ensure_ascii=False))
        return
    _print(a, b, found)


def _print(a: Path, b: Path, found: RunComparison) -> None:
    import pandas as pd

    from ..publishing.style import loss_label
    from ..publishing.tables import DASH, number, p_value, to_terminal, with_interval
    from .terminal import new_console, print_sentence, result_width

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
        "Brackets: 95 % intervals, paired percentile bootstrap over the n test examples; p: "
        "McNemar's exact test of exact match, not corrected for the number of comparisons."
    )
    if found.unpaired:
        caption += f" Without an interval: {'; '.join(found.unpaired)}."
    width = result_width()
    new_console().print(to_terminal(table, f"A: {a}\nB: {b}", caption, width))
    for run, cells in ((a, found.only_a), (b, found.only_b)):
        if cells:
            print_sentence(f"Only in {run}: {'; '.join(cells)}.")
    for sentence in found.settings:
        print_sentence(f"Differs: {sentence}.")
