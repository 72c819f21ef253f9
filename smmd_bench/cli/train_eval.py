"""`smmd-bench train-eval` and `smmd-bench run FILE`: the main job, from flags or from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import UserError
from . import options
from .voice import Voice

_SHORTCUTS = {
    "train_examples": "Training examples (default: the recipe's).",
    "validation_examples": "Validation examples, which select the best epoch.",
    "test_examples": "Test examples.",
    "epochs": "Passes over the training examples.",
    "learning_rate": "Peak learning rate.",
    "method": "lora or full.",
}
"""Recipe settings with a flag of their own."""


def _read_recipe(settings: tuple[str, ...], shortcuts: dict[str, str | None]) -> dict[str, str]:
    """What --set and the flags of `_SHORTCUTS` say; raises UserError where they contradict."""
    found = {name: value for name, value in shortcuts.items() if value is not None}
    for text in settings:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise UserError(f"--set '{text}' is not of the form KEY=VALUE.")
        if found.setdefault(key, value) != value:
            raise UserError(f"{key} is given as {found[key]} and as {value} by --set: keep one.")
    return found


@click.command()
@options.commas("--task", "tasks", word="TASK", multiple=True, required=True, help="Tasks.")
@options.commas(
    "--losses", word="LOSS", required=True, help="Losses, such as ce,'smmd[sigma=1,lambda=5]'."
)
@click.option(
    "--model", "models", multiple=True, help="Built-in (default), hub name or local folder."
)
@options.commas("--seeds", word="N", default="0", help="Training seeds, such as 0,1,2.")
@options.data_seed
@click.option("--engine", default="vllm", help="What decodes.")
@options.commas(
    "--decoders", word="NAME", default="greedy", help="greedy, and mean, median of p(number)."
)
@click.option("--base/--no-base", default=True, help="Whether the untuned checkpoint is a row.")
@click.option("--transfers/--no-transfers", default=True, help="Whether to test transfer.")
@options.together(
    *(click.option(f"--{name.replace('_', '-')}", help=text) for name, text in _SHORTCUTS.items())
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Other settings.")
@click.option(
    "--tune", multiple=True, help="Values to choose from, as in 'lambda=1,3' or 'ce: epochs=2,4'."
)
@click.option(
    "--tune-trials", type=click.IntRange(2), metavar="N", help="Try at most N, drawn at random."
)
@options.execution
@options.voice
@click.option("--print-yaml", is_flag=True, help="Print the YAML file that means the same.")
@options.plugin
def command(voice: Voice, *, settings: tuple[str, ...], print_yaml: bool, **given: Any) -> int:
    """Fine-tune with each loss, score every checkpoint, report.

    --task, --model, --set and --tune may be repeated.

    \b
    Examples:
      smmd-bench train-eval --task arithmetic --losses ce,'smmd[sigma=1]'
    """
    from ..plugin_system.registry import require_known

    require_known("tasks", given["tasks"])  # before what takes seconds to import
    require_known("losses", given["losses"])
    from ..experiment.experiment import Experiment
    from ..experiment.file import ExperimentFile
    from .execution import execute

    recipe = _read_recipe(settings, {name: given.pop(name) for name in _SHORTCUTS})
    fields = {key: given.pop(key) for key in Experiment.__dataclass_fields__ if key in given}
    plugins = click.get_current_context().meta[options.PLUGINS]
    experiment = Experiment(**fields, plugins=plugins, recipe=recipe)
    if print_yaml:
        options.refuse_flags("--print-yaml prints the experiment alone", *given, "quiet", "as_json")
        click.echo(experiment.to_yaml(), nl=False)
        return 0
    return execute(ExperimentFile(None, (experiment,)), voice, **given)


@click.command()
@click.argument("file", type=options.PATH)
@options.execution
@options.voice
def run(file: Path, voice: Voice, **given: Any) -> int:
    """Run the experiment of a YAML FILE.

    `train-eval --print-yaml` writes such a file; one with `parts` holds several experiments.

    \b
    Examples:
      smmd-bench run experiments/miniature.yaml --dry-run
    """
    from ..experiment.file import experiment_file
    from .execution import execute

    return execute(experiment_file(file.read_bytes(), str(file)), voice, **given)
