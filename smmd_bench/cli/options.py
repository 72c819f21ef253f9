"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from . import completion

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

plugin: Decorator = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A Python file with plugins of your own; may be repeated.",
)
executor: Decorator = click.option(
    "--executor",
    default="local",
    show_default=True,
    shell_complete=completion.executors,
    help="Where jobs run.",
)
as_json: Decorator = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object for machines."
)
quiet: Decorator = click.option(
    "-q", "--quiet", is_flag=True, help="Only errors, and where the results are."
)
track: Decorator = click.option(
    "--track",
    type=click.Choice(["none", "tensorboard", "wandb", "trackio"]),
    default="none",
    show_default=True,
    help="Also show the training in this tracker; changes no result and no address.",
)


def _set_data_folder(_: click.Context, __: click.Parameter, folder: Path | None) -> None:
    """Into the environment, where the processes that train and decode find it, too."""
    if folder is None:
        return
    from ..errors import UserError
    from ..storage.data_files import VARIABLE

    if not folder.is_dir():
        raise UserError(f"The data folder {folder} does not exist: check --data-dir.")
    os.environ[VARIABLE] = str(folder.resolve())


data_dir: Decorator = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=None,
    expose_value=False,
    callback=_set_data_folder,
    help="A folder with local copies of data sets (gsm8k/train.jsonl, ...) instead of the hub.",
)
_OUTPUT: tuple[Decorator, ...] = (
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=None,
        help="Output folder (default: runs/NAME, a name that follows from the experiment).",
    ),
    click.option("--extend", is_flag=True, help="Add this experiment to a folder of another one."),
    click.option(
        "--dry-run", is_flag=True, help="List the cells, which are done, and the time left."
    ),
)


def output(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--out`, `--extend` and `--dry-run`."""
    for option in reversed(_OUTPUT):
        function = option(function)
    return function
