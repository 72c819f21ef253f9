"""`smmd-bench run FILE`: the main job, from a YAML file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import options
from .voice import Voice

if TYPE_CHECKING:
    from ..experiment.file import ExperimentFile


@click.command()
@click.argument("file", type=options.PATH)
@options.execution
@options.voice
@click.option(
    "--print-flags", is_flag=True, help="Print the train-eval command that means the same."
)
def command(file: Path, print_flags: bool, voice: Voice, **given: Any) -> int:
    """Run the experiment of a YAML FILE.

    `train-eval --print-yaml` writes such a file. A file with `parts` holds several experiments,
    which run into one folder.

    \b
    Examples:
      smmd-bench train-eval --task arithmetic --losses ce \\
        --print-yaml > experiment.yaml
      smmd-bench run experiment.yaml
      smmd-bench run experiments/miniature.yaml --dry-run
    """
    from .execution import execute

    plan = read_plan(file)
    if print_flags:
        options.require_unused("--print-flags", *options.RUNNING)
        for command_line in plan.to_flags():
            click.echo(command_line)
        return 0
    return execute(plan, voice, **given)


def read_plan(file: Path) -> "ExperimentFile":
    """The experiments of a YAML file; its plugins are loaded. Raises UserError for a mistake."""
    from ..errors import UserError
    from ..experiment.file import experiment_file
    from ..plugin_system.consent import load_named

    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"The experiment file {file} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise UserError(f"The experiment file {file} is not UTF-8: save it as UTF-8.") from error
    plan = experiment_file(text, str(file))
    files = dict.fromkeys(name for part in plan.experiments for name in part.plugins)
    for plugin in files:
        load_named(Path(plugin))
    plan = experiment_file(text, str(file)) if files else plan  # whose names are known now
    for part in (part for part in plan.experiments if part not in plan.optional):
        part.require_known()
    return plan
