"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import UserError, did_you_mean
from .voice import Voice

if TYPE_CHECKING:
    import pandas as pd

    from ..plugin_system.registry import Group
    from ..results.frames import RunFrames

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class PluginOption(click.Option):
    """An option that names plugins of a group; its help lists those that are installed."""

    def __init__(self, *flags: Any, group: Group, **settings: Any) -> None:
        super().__init__(*flags, **settings)
        self.group = group

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The help with the names, which only `--help` looks up."""
        from ..plugin_system.registry import names

        record = super().get_help_record(ctx)
        assert record is not None
        flags, text = record
        return flags, f"{text} Installed: {', '.join(names(self.group))}."


PATH, THERE = click.Path(path_type=Path), click.Path(exists=True, path_type=Path)
PLUGINS = "smmd_bench.plugins"


def split_commas(
    _: click.Context, parameter: click.Parameter, value: Any
) -> list[str] | None:
    """`ce,smmd[sigma=1,lambda=5]` -> its parts; of an option that may be repeated, all of them."""
    from ..plugin_system.parameters import split_list

    texts = (value,) if isinstance(value, str) else value
    if texts is None:
        return None
    parts = [part for text in texts for part in split_list(text)]
    # An empty default, such as that of --what, means that nothing is chosen.
    if not parts and value != parameter.default:
        word = str(parameter.metavar).partition(",")[0]
        raise UserError(f"{parameter.opts[0]} is empty: give at least one {word}.")
    return parts


def load_plugins(
    context: click.Context, _: click.Parameter, files: tuple[Path, ...]
) -> None:
    """Register the plugins of files; the context remembers these as they are given."""
    # As they are spelled: the file of the experiment shows them so.
    context.meta[PLUGINS] = tuple(map(str, files))
    owners: dict[str, Path] = {}
    # One file may be given twice, by two paths.
    for file in dict.fromkeys(map(Path.resolve, files)):
        from ..plugin_system.registry import load_plugin_file, plugins_of_file, singular

        load_plugin_file(file)
        for group, name in plugins_of_file(file):
            title = f"{singular(group)} {name}"
            owner = owners.setdefault(title, file)
            if owner != file:
                raise UserError(
                    f"{owner} and {file} both define the {title}: give one of them another name, "
                    "or leave its file out."
                )


def refuse_flags(because: str, *names: str) -> None:
    """Raise UserError for an option, one of these parameters, that stands on the command line."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        # A default says nothing that could be ignored.
        if option.name in names and source is ParameterSource.COMMANDLINE:
            raise UserError(
                f"{because} and ignores {option.opts[-1]}: leave out one of them."
            )


def _set_data_folder(
    _: click.Context, __: click.Parameter, folder: Path | None
) -> None:
    """Set the environment variable that the processes of training and decoding read, too."""
    from ..storage.data_files import give_folder

    give_folder(folder)


def commas(*flags: str, word: str, **settings: Any) -> Decorator:
    """An option that takes a list such as `ce,ntl`, of which an item is called `word`."""
    return click.option(
        *flags, metavar=f"{word},...", callback=split_commas, **settings
    )


def out(
    help: str = "The folder of the run (default: runs/ and a name made of what is run).",
    **settings: Any,
) -> Decorator:
    """The output folder."""
    folder = click.Path(file_okay=False, path_type=Path)
    return click.option("--out", type=folder, metavar="FOLDER", help=help, **settings)


def number(flag: str, least: int, help: str) -> Decorator:
    """An option with a whole number of at least so much; by default there is none."""
    return click.option(flag, type=click.IntRange(least), metavar="N", help=help)


def choice(flag: str, *values: str, help: str) -> Decorator:
    """An option with one of these values; the first is the default."""
    return click.option(flag, type=click.Choice(values), default=values[0], help=help)


def together(*options: Decorator) -> Decorator:
    """Options as one decorator, in the order of the help."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        # Decorators apply from the last to the first.
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


plugin: Decorator = click.option(
    "--plugin", "plugins", multiple=True, type=PATH, expose_value=False, callback=load_plugins,
    help="A Python file with plugins of your own, such as mine.py; may be repeated.",
)  # fmt: skip
data_dir: Decorator = click.option(
    "--data-dir", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="FOLDER",
    expose_value=False, callback=_set_data_folder,
    help="The folder with local copies of data sets (gsm8k/train.jsonl, ...), in place of the hub.",
)  # fmt: skip
as_json: Decorator = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object on standard output, for programs.",
)
quiet: Decorator = click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors, and where the results are."
)
executor: Decorator = click.option(
    "--executor", default="local", cls=PluginOption, group="executors",
    help="Where jobs run, such as 'local[threads=4]' or 'slurm[jobs=8]'.",
)  # fmt: skip
# NumPy takes no larger seed.
SEED = click.IntRange(0, 2**32 - 1)
data_seed: Decorator = click.option(
    "--data-seed", default=0, type=SEED,
    help="The seed of generated data, and of rows that are drawn; all cells share it.",
)  # fmt: skip
cells: Decorator = together(
    click.option(
        "--cell",
        "address",
        metavar="ADDRESS",
        help="The cells whose address begins so: 3f2a.",
    ),
    click.option(
        "--model", help="Only the cells of this model, as tables or commands call it."
    ),
    click.option("--task", help="Only the cells of this task, such as gsm8k."),
    click.option(
        "--loss", help="Only the cells of this loss, such as smmd or 'smmd[sigma=2]'."
    ),
    click.option(
        "--seed", type=int, metavar="N", help="Only the cells of this training seed."
    ),
)
"""Which cells of a run: the filters of `filter_cells`."""
stall: Decorator = click.option(
    "--stall", metavar="MINUTES", type=click.IntRange(0), default=120,
    help="End a job that reports nothing for so many minutes; 0: never.",
)  # fmt: skip
execution: Decorator = together(
    executor,
    stall,
    data_dir,
    out(),
    click.option(
        "--extend", is_flag=True, help="Add this experiment to the folder of another one (--out)."
    ),
    click.option(
        "--restore-weights", "restore", is_flag=True,
        help="Train weights again that were removed since, as `regress` and `export` need them.",
    ),
    click.option(
        "--dry-run", is_flag=True,
        help="Say what is to be trained, decoded and measured, check it, and write nothing.",
    ),
    click.option(
        "--measure", is_flag=True,
        help="With --dry-run: train three steps, decode a few examples, say how long all takes.",
    ),
    choice(
        "--track", "none", "tensorboard", "wandb", "trackio",
        help="Log the training to this tool, too: it must be installed.",
    ),
)  # fmt: skip
"""How `train-eval` and `run` run: the keyword arguments of `execute`, and --data-dir."""


def voice(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--quiet` and `--json`; the command gets the `voice` that they ask for."""

    @wraps(function)
    def command(*, quiet: bool, as_json: bool, **arguments: Any) -> Any:
        return function(voice=Voice(quiet, as_json), **arguments)

    return quiet(as_json(command))


_SHORT = {"model": "model_label", "task": "task_name", "loss": "loss_name"}
"""Columns with names that fit where nothing is called so: without brackets, any parameters."""


def as_in_run(run: RunFrames, loss: str) -> str:
    """A loss as the run spells it: `smmd[lambda=3]` is `smmd`."""
    from ..plugin_system.parameters import canonical
    from ..plugin_system.registry import load_loss

    # A scored file is named as a loss is, and need be none that can be loaded.
    with suppress(UserError):
        return loss if (run.cells["loss"] == loss).any() else canonical(load_loss(loss))
    return loss


def filter_cells(
    run: RunFrames, filters: Mapping[str, str | int | None]
) -> pd.DataFrame:
    """The cells that every option fits, the beginning of an address; a seed fits the base, too.
    Raises UserError for an option that fits none."""
    from ..publishing.style import model_label, task_label

    labels = {"model": model_label, "task": task_label}
    cells = run.cells
    for column, value in filters.items():
        if value is None:
            continue
        text = str(value)
        # Of all cells: a value that some of them have is no unknown one.
        names = run.cells[[column, _SHORT.get(column, column)]].astype("str")
        if column in labels:
            names["label"] = names[column].map(labels[column])
        wanted = as_in_run(run, text) if column == "loss" else text
        fits = names.iloc[:, 0] == wanted
        # `smmd` means the plain loss where there is one, and else all of its variants.
        for place in range(1, names.shape[1]):
            fits = fits if fits.any() else names.iloc[:, place] == wanted
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
