"""`smmd-bench run FILE`: the main job, from a YAML file."""

from __future__ import annotations

from pathlib import Path

import click

from . import options


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@options.executor
@options.data_dir
@options.output
@options.track
@options.quiet
@options.as_json
@click.option(
    "--print-flags", is_flag=True, help="Print the train-eval command that means the same."
)
def command(
    file: Path,
    executor: str,
    out: Path | None,
    extend: bool,
    dry_run: bool,
    track: str,
    quiet: bool,
    as_json: bool,
    print_flags: bool,
) -> int:
    """Run what a YAML FILE describes (`train-eval --print-yaml` writes one).

    A file with `parts` holds several experiments that go into one folder, one after the other.

    \b
    Examples:
      smmd-bench train-eval --task arithmetic --losses ce \\
        --print-yaml > experiment.yaml
      smmd-bench run experiment.yaml
      smmd-bench run experiments/miniature.yaml --dry-run
    """
    from ..errors import UserError
    from ..experiment.file import experiment_file
    from ..plugin_system.registry import load_plugin_file
    from .execution import execute
    from .voice import Voice

    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"The experiment file {file} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise UserError(f"The experiment file {file} is not UTF-8: save it as UTF-8.") from error
    plan = experiment_file(text, str(file))
    if print_flags:
        for command_line in plan.to_flags():
            click.echo(command_line)
        return 0
    for plugin in dict.fromkeys(name for part in plan.experiments for name in part.plugins):
        load_plugin_file(Path(plugin))
    return execute(
        plan,
        out,
        executor=executor,
        extend=extend,
        dry_run=dry_run,
        track=None if track == "none" else track,
        voice=Voice(quiet, as_json),
    )
