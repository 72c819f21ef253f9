"""`smmd-bench show RUN`: the cells of a run, what one wrote, and one example by every loss."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UserError, did_you_mean
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import load_loss
from . import options
from .voice import print_json, print_results, rows_of

if TYPE_CHECKING:
    import pandas as pd

    from ..results.frames import RunFrames

_SHORT = {"model": "model_label", "task": "task_name", "loss": "loss_name"}
"""Columns with names that fit where nothing is called so: without brackets, any parameters."""
_ANSWER = (
    "uid",
    "target",
    "loss",
    "seed",
    "exact",
    "parsed",
    "completion",
    "finish_reason",
)


@click.command()
@click.argument("run", required=False, type=options.PATH)
@options.cells
@click.option(
    "--uid",
    metavar="UID",
    help="Show this example, and what every one of the cells answers.",
)
@click.option(
    "-n",
    "count",
    default=10,
    type=click.IntRange(1),
    help="How many examples of one cell to show.",
)
@options.as_json
@options.plugin
def command(
    run: Path | None,
    uid: str | None,
    count: int,
    as_json: bool,
    **filters: str | int | None,
) -> None:
    """Show a run's cells, what one cell wrote, or one example.

    RUN is the newest one in runs/ if you give none. Of one cell its first test examples are shown;
    with --uid one example by all of the cells.

    \b
    Examples:
      smmd-bench show runs/NAME --task arithmetic --uid test-0-5
    """
    import pandas as pd

    from ..results.frames import read_run

    if (folder := run) is None:
        manifests = sorted(
            Path("runs").glob("*/manifest.json"), key=lambda f: f.stat().st_mtime
        )
        if not manifests:
            raise UserError(f"There is no run in {Path('runs').absolute()}: name one.")
        folder = manifests[-1].parent
    frames = read_run(folder)
    cells = filter_cells(frames, filters)
    if uid is not None:
        table = _find_example(frames, cells, uid)
    elif len(cells) == 1:
        table = frames.only(cells).completions.head(count)
        if table.empty:
            status = cells["status"].iloc[0]
            raise UserError(
                f"That cell of {folder} is {status}: the command of the run goes on."
            )
    else:
        first = frames.metrics.drop_duplicates("address").set_index("address")
        table = cells[["address", "model", "task", "loss", "seed", "status"]].copy()
        for column in ("metric", "value"):
            table[column] = table["address"].map(first[column].astype(object))
    if as_json:
        print_json({"run": str(folder), "rows": rows_of(table)})
        return
    # The rows of one example share its prompt; others would hide the answers by it.
    if "completion" in table:
        names = ("prompt", *_ANSWER) if uid is not None else _ANSWER
        table = table[[column for column in names if column in table]]
    texts = [[*map(_plain, row.values())] for row in rows_of(table)]
    print_results(pd.DataFrame(texts, columns=table.columns), str(folder))


def as_in_run(run: RunFrames, loss: str) -> str:
    """A loss as the run spells it: `smmd[lambda=3]` is `smmd`."""
    # A scored file is named as a loss is, and need be none that can be loaded.
    with suppress(UserError):
        return loss if (run.cells["loss"] == loss).any() else canonical(load_loss(loss))
    return loss


def filter_cells(
    run: RunFrames, filters: Mapping[str, str | int | None]
) -> pd.DataFrame:
    """The cells that every option fits, the beginning of an address; a seed fits the base, too.
    Raises UserError for an option that fits none."""
    cells = run.cells
    for column, value in filters.items():
        if value is None:
            continue
        text = str(value)
        # Of all cells: a value that some of them have is no unknown one.
        names = run.cells[[column, _SHORT.get(column, column)]].astype("str")
        wanted = as_in_run(run, text) if column == "loss" else text
        fits = names.iloc[:, 0] == wanted
        # `smmd` means the plain loss where there is one, and else all of its variants.
        fits = fits if fits.any() else names.iloc[:, 1] == wanted
        if column == "address":
            fits = cells["address"].str.startswith(text)
        if not fits.any():
            hint = did_you_mean(text, {*names.to_numpy().ravel()})
            raise UserError(f"No cell of {run.path} has the {column} '{value}': {hint}")
        if column == "seed":
            fits |= run.cells["loss"] == "base"
        cells = cells[fits[cells.index]]
    if cells.empty:
        raise UserError(
            f"No cell of {run.path} fits all of these options: leave out some."
        )
    return cells


def _find_example(run: RunFrames, cells: pd.DataFrame, uid: str) -> pd.DataFrame:
    """What the cells wrote for an example. Raises UserError if none has it, or tasks share it."""
    answers = run.only(cells).completions
    rows = answers[answers["uid"] == uid]
    if rows.empty:
        hint = did_you_mean(uid, answers["uid"].drop_duplicates().head(2000))
        raise UserError(f"{run.path} has no example '{uid}': {hint[:300]}")
    # A chat template gets the prompt without blanks around it.
    if rows["prompt"].str.strip().nunique() > 1:
        raise UserError(
            f"Several tasks of {run.path} have an example '{uid}': add --task."
        )
    return rows


def _plain(value: object) -> str:
    """A value for people; the control characters of a text are escaped, as they move the cursor."""
    if value is None:
        return "-"
    text = str(value)
    if isinstance(value, float):
        text = f"{value:.6g}"
    characters = []
    for c in text:
        is_harmless = c.isprintable() or c in "\n\t"
        characters.append(c if is_harmless else f"\\x{ord(c):02x}")
    return "".join(characters)
