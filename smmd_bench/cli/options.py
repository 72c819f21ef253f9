"""Options that several commands share, and how their values are read."""

import math
import os
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from . import completion
from .voice import Voice

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
PATH = click.Path(path_type=Path)
_PLUGINS = f"{__name__}.plugins"
"""Key of a command's context: its plugin files."""


def split_commas(
    context: click.Context, parameter: click.Parameter, value: Any
) -> list[str] | None:
    """`ce,smmd[sigma=1,lambda=5]` -> its parts; of an option that may be repeated, all of them."""
    from ..plugin_system.parameters import split_list

    texts = (value,) if isinstance(value, str) else value
    if texts is None:
        return None
    parts = [part for text in texts for part in split_list(text)]
    given = context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    if given and not parts:
        from ..errors import UserError

        word = str(parameter.metavar).partition(",")[0]
        raise UserError(f"{parameter.opts[0]} is empty: give at least one {word}.")
    return parts


def load_plugins(
    context: click.Context, _: click.Parameter, files: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Register the plugins of files, unless a shell only completes the command."""
    if files and not context.resilient_parsing:
        from ..errors import UserError
        from ..plugin_system.consent import load_named
        from ..plugin_system.registry import titles_of_file

        context.meta[_PLUGINS] = files
        owners: dict[str, Path] = {}
        for file in dict.fromkeys(file.resolve() for file in files):
            load_named(file)
            for title in titles_of_file(file):
                if title in owners:
                    raise UserError(
                        f"{owners[title]} and {file} both define the {title}: give one of them "
                        "another name, or leave its file out."
                    )
                owners[title] = file
    return files


def require_used(titles: Collection[str], files: Iterable[str] = ()) -> None:
    """Raise UserError for a file of --plugin, or of these, with nothing among the titles, such as
    `loss ce`; a report is always used."""
    from ..plugin_system.registry import titles_of_file

    given: tuple[Path, ...] = click.get_current_context().meta.get(_PLUGINS, ())
    for file in dict.fromkeys([*given, *map(Path, files)]):
        mine = titles_of_file(file)
        if not any(title in titles or title.startswith("report ") for title in mine):
            from ..errors import UserError

            raise UserError(
                f"{file} defines the {', the '.join(mine)}, and nothing that is asked for uses it: "
                "name it, or leave the file out."
            )


def _set_data_folder(_: click.Context, __: click.Parameter, folder: Path | None) -> None:
    """Set the environment variable that the processes of training and decoding read, too."""
    from ..storage.data_files import give_folder

    if folder is not None and not folder.is_dir():
        from ..errors import UserError

        raise UserError(f"The data folder {folder} does not exist: check --data-dir.")
    give_folder(folder)


def _set_stall(context: click.Context, _: click.Parameter, minutes: float) -> None:
    """Set the environment variable that the processes of jobs read."""
    if context.resilient_parsing:
        return
    if not math.isfinite(minutes):
        raise click.BadParameter(f"{minutes} is no number of minutes: give one, or 0 for never.")
    from ..run.stall import STALL

    os.environ[STALL] = str(minutes)


def require_unused(mode: str, *names: str) -> None:
    """Raise UserError for the first of these options that the command line gives: `mode` reads
    none of them."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
        if given and parameter.name in names:
            from ..errors import UserError

            raise UserError(
                f"{parameter.opts[0]} changes nothing with {mode}: leave one of them out."
            )


RUNNING = ("executor", "stall", "out", "extend", "dry_run", "track", "restore", "as_json")
"""Options of how a plan is run, which its printed form does not hold."""


def commas(*flags: str, word: str, **settings: Any) -> Decorator:
    """An option that takes a list such as `ce,ntl`, of which an item is called `word`."""
    return click.option(*flags, metavar=f"{word},...", callback=split_commas, **settings)


def require_place(folder: Path) -> None:
    """Raise UserError if an output folder is a file, or would lie below one."""
    from ..errors import UserError

    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise UserError(
            f"The output folder {folder} cannot be made, because {there} is a file: choose another "
            "with --out."
        )


class _Folder(click.Path):
    """A folder that has a name: `--out ''`, as of a variable that is not set, is none."""

    def convert(self, value: Any, *given: Any) -> Any:
        from ..errors import UserError

        if not str(value).strip():
            raise UserError("--out names no folder: give it one, or leave it out.")
        folder = Path(os.fsdecode(super().convert(value, *given)))
        require_place(folder)
        return folder


FOLDER = _Folder(path_type=Path)


def out(source: str) -> Decorator:
    """The output folder, whose default name follows from the `source`."""
    text = f"Output folder (default: runs/NAME, a name that follows from {source})."
    return click.option("--out", type=FOLDER, help=text)


def choice(flag: str, *values: str, help: str) -> Decorator:
    """An option with one of these values; the first is the default."""
    return click.option(flag, type=click.Choice(values), default=values[0], help=help)


_PLUGIN: dict[str, Any] = {
    "multiple": True,
    "type": PATH,
    "callback": load_plugins,
    "help": "A Python file with plugins of your own; may be repeated.",
}
plugin: Decorator = click.option("--plugin", "plugins", expose_value=False, **_PLUGIN)
plugin_files: Decorator = click.option("--plugin", "plugins", **_PLUGIN)
"""The same for a command that also needs the paths."""
data_dir: Decorator = click.option(
    "--data-dir",
    type=PATH,
    expose_value=False,
    callback=_set_data_folder,
    help="A folder with local copies of data sets (gsm8k/train.jsonl, ...) instead of the hub.",
)
as_json: Decorator = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
quiet: Decorator = click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors, and where the results are."
)
executor: Decorator = click.option(
    "--executor", default="local", shell_complete=completion.executors, help="Where jobs run."
)
stall: Decorator = click.option(
    "--stall",
    metavar="MINUTES",
    type=click.FloatRange(min=0),
    default=120,
    expose_value=False,
    callback=_set_stall,
    help="End a job that reports no progress for so long, and do the others; 0: never.",
)
losses: Decorator = commas(
    "--losses",
    word="LOSS",
    required=True,
    shell_complete=completion.losses,
    help="Losses, such as ce,ntl,'smmd[sigma=1,lambda=5]'.",
)
_EXECUTION: tuple[Decorator, ...] = (
    executor,
    stall,
    data_dir,
    out("the experiment"),
    click.option("--extend", is_flag=True, help="Add this experiment to another one's folder."),
    click.option(
        "--restore-weights", "restore", is_flag=True, help="Train again where weights are gone."
    ),
    click.option(
        "--dry-run", is_flag=True, help="List the cells, which are done, and the time left."
    ),
    choice(
        "--track",
        *("none", "tensorboard", "wandb", "trackio"),
        help="Also show the training in this tracker; it changes no result.",
    ),
)


def execution(function: Callable[..., Any]) -> Callable[..., Any]:
    """How `train-eval` and `run` run: the keyword arguments of `execute`, and --data-dir."""
    for option in reversed(_EXECUTION):
        function = option(function)
    return function


def voice(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--quiet` and `--json`; the command gets the `voice` that they ask for."""

    @wraps(function)
    def command(*, quiet: bool, as_json: bool, **given: Any) -> Any:
        return function(voice=Voice(quiet, as_json), **given)

    return quiet(as_json(command))
