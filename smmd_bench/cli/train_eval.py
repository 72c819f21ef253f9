"""`smmd-bench train-eval`: the main job, from flags."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..errors import UserError
from . import completion, options
from .voice import Voice

_SHORTCUTS = {
    "train_examples": "Training examples (default: the recipe's).",
    "validation_examples": "Validation examples, which select the best epoch.",
    "test_examples": "Test examples.",
    "epochs": "Passes over the training examples.",
    "learning_rate": "Peak learning rate.",
    "method": "lora or full.",
}


def _recipe(function: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each of `_SHORTCUTS`."""
    for name, text in reversed(_SHORTCUTS.items()):
        function = click.option(f"--{name.replace('_', '-')}", name, help=text)(function)
    return function


def _read_seeds(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(seed) for seed in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of integers such as 0,1,2.") from None


def _read_settings(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    if wrong := [text for text in texts if "=" not in text]:
        raise click.BadParameter(f"{wrong[0]!r} is not of the form KEY=VALUE.")
    settings: dict[str, str] = {}
    for text in texts:
        key, value = (part.strip() for part in text.split("=", 1))
        if settings.setdefault(key, value) != value:
            raise click.BadParameter(f"{key} is given as {settings[key]} and as {value}: keep one.")
    return settings


def _require_one_value(shortcuts: dict[str, str], settings: dict[str, str]) -> None:
    """Raise UserError for a setting that has one value by its own flag, another by --set."""
    for name in shortcuts.keys() & settings.keys():
        if shortcuts[name] != settings[name]:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(
                f"{flag} {shortcuts[name]} and --set {name}={settings[name]} contradict each "
                "other: keep one of them."
            )


@click.command()
@click.option(
    "--task",
    "tasks",
    multiple=True,
    required=True,
    metavar="TASK",
    callback=options.split_commas,
    shell_complete=completion.tasks,
    help="A task, such as arithmetic or 'arithmetic[level=hard]'; may be repeated.",
)
@options.losses
@click.option(
    "--model",
    "models",
    multiple=True,
    show_default="builtin/tiny, or builtin/tiny-vl for tasks with images",
    metavar="MODEL",
    shell_complete=completion.models,
    help="Built-in name, local folder or hub name; may be repeated.",
)
@click.option("--seeds", default="0", metavar="N,...", callback=_read_seeds, help="Training seeds.")
@click.option("--data-seed", default=0, help="Seed of generated data.")
@click.option("--engine", default="vllm", shell_complete=completion.engines, help="What decodes.")
@options.commas(
    "--decoders",
    word="NAME",
    default="greedy",
    help="greedy, and mean and median of p(number), for tasks whose answer is one number "
    "(docs/decoders.md).",
)
@click.option(
    "--base/--no-base", default=True, help="Whether the untuned checkpoint is a row of the table."
)
@click.option(
    "--transfers/--no-transfers",
    default=True,
    help="Whether to run the tests of transfer that a task names, such as svamp for gsm8k.",
)
@_recipe
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_read_settings,
    help="Any other recipe setting (docs/recipes.md); may be repeated.",
)
@click.option(
    "--tune",
    "tune",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Values of a parameter or recipe setting to choose from by validation, as in 'lambda=1,3' "
    "or 'ce: learning_rate=1e-4,3e-4'; may be repeated (docs/tuning.md).",
)
@click.option(
    "--tune-trials",
    type=click.IntRange(min=2),
    metavar="N",
    help="Draw N configurations of each loss's grid at random, instead of trying all.",
)
@options.execution
@options.voice
@click.option("--print-yaml", is_flag=True, help="Print the YAML file that means the same.")
@options.plugin_files
def command(
    tasks: list[str],
    losses: list[str],
    models: tuple[str, ...],
    settings: dict[str, str],
    plugins: tuple[Path, ...],
    print_yaml: bool,
    voice: Voice,
    **given: Any,
) -> int:
    """Fine-tune with each loss, score every checkpoint, report.

    \b
    Examples:
      smmd-bench train-eval --task arithmetic --losses ce,ntl,smmd
      smmd-bench train-eval --task arithmetic --losses ce,'smmd[sigma=1]'
      smmd-bench train-eval --task arithmetic --losses ce --model ./my-checkpoint
      smmd-bench train-eval --task clock_time --losses ce,ntl,smmd
      smmd-bench train-eval --task arithmetic --losses ce,smmd \\
        --tune 'smmd: lambda=1,3' --tune 'ce: learning_rate=2e-4,5e-4'
    """
    from ..models.card_content import require_builtins
    from ..plugin_system.registry import load_task, require_known

    require_known("tasks", tasks)  # before what takes seconds to import
    require_known("losses", losses)
    require_known("engines", [given["engine"]])
    require_known("executors", [given["executor"]])
    require_builtins(models)
    for task in tasks:
        load_task(task)
    from ..experiment.experiment import Experiment
    from ..experiment.file import ExperimentFile
    from .execution import execute

    shortcuts = {name: given.pop(name) for name in _SHORTCUTS}
    shortcuts = {name: value for name, value in shortcuts.items() if value is not None}
    _require_one_value(shortcuts, settings)
    experiment = Experiment(
        tasks=tuple(tasks),
        losses=tuple(losses),
        models=models,
        recipe={**shortcuts, **settings},
        plugins=tuple(map(str, plugins)),
        tune=given.pop("tune"),
        decoders=tuple(given.pop("decoders")),
        tune_trials=given.pop("tune_trials"),
        **{name: given.pop(name) for name in ("seeds", "data_seed", "engine", "base", "transfers")},
    )
    if print_yaml:
        options.require_unused("--print-yaml", *options.RUNNING)
        click.echo(experiment.to_yaml(), nl=False)
        return 0
    return execute(ExperimentFile(None, (experiment,)), voice, **given)
