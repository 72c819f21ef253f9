"""`smmd-bench train-eval` and `smmd-bench run FILE`: the main job, from flags or from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import UserError
from . import options
from .voice import Voice

_SHORTCUTS = {
    "train_examples": "How many training examples.",
    "validation_examples": "How many validation examples, which select the best epoch.",
    "test_examples": "How many test examples.",
    "epochs": "Passes over the training examples, each with a checkpoint.",
    "learning_rate": "The peak learning rate, such as 2e-4.",
    "method": "Fine-tuning by adapters (lora) or of all weights (full).",
}
"""Recipe settings with a flag of their own. The default is that of the model's recipe."""


def _read_recipe(
    settings: tuple[str, ...], shortcuts: dict[str, str | None]
) -> dict[str, str]:
    """What --set and the flags of `_SHORTCUTS` say; raises UserError where they contradict."""
    recipe = {name: value for name, value in shortcuts.items() if value is not None}
    for text in settings:
        key, equals, value = map(str.strip, text.partition("="))
        if not equals:
            raise UserError(f"--set '{text}' is not of the form KEY=VALUE.")
        # Who gives one setting twice, and differently, has made a mistake.
        if recipe.setdefault(key, value) != value:
            raise UserError(
                f"{key} is given as {recipe[key]} and as {value} by --set: keep one."
            )
    return recipe


@click.command()
@options.commas(
    "--task",
    "tasks",
    word="TASK",
    multiple=True,
    required=True,
    cls=options.PluginOption,
    group="tasks",
    help="What is trained and tested, such as 'arithmetic[level=hard]'.",
)
@options.commas(
    "--losses",
    word="LOSS",
    required=True,
    cls=options.PluginOption,
    group="losses",
    help="The losses to compare, such as ce,'smmd[sigma=1]'; ce is the reference.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="The checkpoint: built in (default: builtin/tiny, for pictures builtin/tiny-vl), "
    "a hub name such as Qwen/Qwen2.5-0.5B, or a local folder.",
)
@options.commas(
    "--seeds",
    word="N",
    default="0",
    help="The training seeds, such as 0,1,2: a cell each.",
)
@options.data_seed
@click.option(
    "--engine",
    default="vllm",
    cls=options.PluginOption,
    group="engines",
    help="What writes the answers; transformers needs no vLLM, and is slower.",
)
@options.commas(
    "--decoders",
    word="NAME",
    default="greedy",
    help="How answers are decoded: greedy, and with it mean or median of p(number) by beams.",
)
@click.option(
    "--base/--no-base",
    default=True,
    help="Whether the untuned checkpoint is scored as a row.",
)
@click.option(
    "--transfers/--no-transfers",
    default=True,
    help="Whether a task's tests of transfer are run, as svamp after gsm8k.",
)
@options.together(
    *(
        click.option(
            f"--{name.replace('_', '-')}", help=f"{text[:-1]} (default: the recipe's)."
        )
        for name, text in _SHORTCUTS.items()
    )
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any other setting of the recipe, such as batch_size=32 (docs/recipes.md lists all).",
)
@click.option(
    "--tune",
    multiple=True,
    metavar="[LOSS:]KEY=VALUES",
    help="Values that validation chooses from, as 'lambda=1,3' or 'ce: learning_rate=1e-4,3e-4'.",
)
@options.number(
    "--tune-trials",
    2,
    "Try only N of the combinations of --tune, drawn by the data seed (default: all).",
)
@options.execution
@options.voice
@click.option(
    "--print-yaml",
    is_flag=True,
    help="Print the file for `smmd-bench run` that means the same.",
)
@options.plugin
def command(
    voice: Voice, *, settings: tuple[str, ...], print_yaml: bool, **arguments: Any
) -> int:
    """Fine-tune with each loss, score every checkpoint, report.

    --task, --model, --set and --tune may be repeated.

    \b
    Examples:
      smmd-bench train-eval --task arithmetic --losses ce,'smmd[sigma=1]'
    """
    from ..plugin_system.registry import require_known

    # A mistyped name is answered before what takes seconds to import.
    require_known("tasks", arguments["tasks"])
    require_known("losses", arguments["losses"])
    from ..experiment.experiment import Experiment
    from ..experiment.file import ExperimentFile
    from .execution import execute

    recipe = _read_recipe(settings, {name: arguments.pop(name) for name in _SHORTCUTS})
    # What is no field of an experiment says how it is run, and goes to `execute`.
    names = Experiment.__dataclass_fields__.keys() & arguments
    fields = {name: arguments.pop(name) for name in names}
    plugins = click.get_current_context().meta[options.PLUGINS]
    experiment = Experiment(**fields, plugins=plugins, recipe=recipe)
    if print_yaml:
        options.refuse_flags(
            "--print-yaml prints the experiment alone", *arguments, "quiet", "as_json"
        )
        click.echo(experiment.to_yaml(), nl=False)
        return 0
    return execute(ExperimentFile(None, (experiment,)), voice, **arguments)


@click.command()
@click.argument("file", type=options.PATH)
@options.execution
@options.voice
def run(file: Path, voice: Voice, **arguments: Any) -> int:
    """Run the experiment of a YAML FILE.

    `train-eval --print-yaml` writes such a file; one with `parts` holds several experiments.

    \b
    Examples:
      smmd-bench run experiments/miniature.yaml --dry-run
    """
    from ..experiment.file import experiment_file
    from .execution import execute

    return execute(experiment_file(file.read_bytes(), str(file)), voice, **arguments)
