"""`smmd-bench train-eval`: the main job, from flags."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from . import completion, options

_SHORTCUTS = {
    "train_examples": "Training examples (default: the recipe's).",
    "validation_examples": "Validation examples, which select the best epoch.",
    "test_examples": "Test examples.",
    "epochs": "Passes over the training examples.",
    "learning_rate": "Peak learning rate.",
    "method": "lora or full.",
}


def _recipe_shortcuts(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, text in reversed(_SHORTCUTS.items()):
        function = click.option(f"--{name.replace('_', '-')}", name, default=None, help=text)(
            function
        )
    return function


@click.command()
@click.option(
    "--task",
    "tasks",
    multiple=True,
    required=True,
    metavar="TASK",
    shell_complete=completion.tasks,
    help="A task, such as arithmetic or 'arithmetic[level=hard]'; may be repeated.",
)
@click.option(
    "--losses",
    required=True,
    metavar="LOSS,...",
    shell_complete=completion.losses,
    help="Losses, such as ce,ntl,'smmd[sigma=1,lambda=5]'.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    show_default="builtin/tiny, or builtin/tiny-vl where the tasks have images",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Built-in name, local folder or hub name; may be repeated.",
)
@click.option("--seeds", default="0", show_default=True, metavar="N,...", help="Training seeds.")
@click.option("--data-seed", default=0, show_default=True, help="Seed of generated data.")
@click.option(
    "--engine",
    default="vllm",
    show_default=True,
    shell_complete=completion.engines,
    help="What decodes.",
)
@options.executor
@click.option(
    "--base/--no-base",
    default=True,
    show_default=True,
    help="Whether the untuned checkpoint is a row of the table.",
)
@click.option(
    "--transfers/--no-transfers",
    default=True,
    show_default=True,
    help="Whether the tests of transfer that a task names are run, such as svamp for gsm8k.",
)
@_recipe_shortcuts
@options.data_dir
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any other recipe setting (docs/recipes.md); may be repeated.",
)
@options.output
@options.track
@options.quiet
@options.as_json
@click.option("--print-yaml", is_flag=True, help="Print the YAML file that means the same.")
@options.plugin
def command(
    tasks: tuple[str, ...],
    losses: str,
    models: tuple[str, ...],
    seeds: str,
    data_seed: int,
    engine: str,
    executor: str,
    base: bool,
    transfers: bool,
    settings: tuple[str, ...],
    out: Path | None,
    extend: bool,
    dry_run: bool,
    track: str,
    quiet: bool,
    as_json: bool,
    print_yaml: bool,
    plugins: tuple[Path, ...],
    **shortcuts: Any,
) -> int:
    """Fine-tune with each loss on each task, score every checkpoint, write tables and figures.

    \b
    Examples:
      smmd-bench train-eval --task arithmetic --losses ce,ntl,smmd
      smmd-bench train-eval --task arithmetic --losses ce,'smmd[sigma=1]'
      smmd-bench train-eval --task arithmetic --losses ce --model ./my-checkpoint
      smmd-bench train-eval --task clock_time --losses ce,ntl,smmd
    """
    from ..errors import UserError
    from ..experiment.experiment import Experiment
    from ..experiment.file import ExperimentFile
    from ..plugin_system.parameters import split_list
    from ..plugin_system.registry import load_plugin_file
    from .execution import execute
    from .voice import Voice

    for file in plugins:
        load_plugin_file(file)
    recipe = {key: value for key, value in shortcuts.items() if value is not None}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting} is not of the form KEY=VALUE.")
        recipe[key.strip()] = value.strip()
    try:
        numbers = tuple(int(seed) for seed in seeds.split(","))
    except ValueError:
        raise UserError(f"--seeds {seeds} is not a list of integers such as 0,1,2.") from None
    experiment = Experiment(
        tasks=tuple(name for task in tasks for name in split_list(task)),
        losses=tuple(split_list(losses)),
        models=tuple(models),
        seeds=numbers,
        data_seed=data_seed,
        engine=engine,
        base=base,
        transfers=transfers,
        recipe=recipe,
        plugins=tuple(str(file) for file in plugins),
    )
    if print_yaml:
        click.echo(experiment.to_yaml(), nl=False)
        return 0
    return execute(
        ExperimentFile(None, (experiment,)),
        out,
        executor=executor,
        extend=extend,
        dry_run=dry_run,
        track=None if track == "none" else track,
        voice=Voice(quiet, as_json),
    )
