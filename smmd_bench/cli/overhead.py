"""`smmd-bench overhead`: what each loss costs in step time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from . import completion, options

if TYPE_CHECKING:
    import pandas as pd

    from ..overhead.settings import OverheadSettings


@click.command()
@click.option(
    "--losses",
    default="ce,ntl,ntil,smmd",
    show_default=True,
    metavar="LOSS,...",
    shell_complete=completion.losses,
    help="Losses, such as ntl,'smmd[sigma=1]'; ce is always measured, in the stock Trainer too.",
)
@click.option(
    "--geometry",
    default="qwen2.5-0.5b-2-layers",
    show_default=True,
    metavar="NAME|PATH",
    help="A model's shape, with random weights: qwen2.5-0.5b-2-layers, qwen2.5-1.5b, smollm3-3b "
    "or tiny, or the path of a config.json or checkpoint folder.",
)
@click.option("--steps", default=120, show_default=True, help="Optimiser steps of a repeat.")
@click.option("--drop", default=20, show_default=True, help="First steps that do not count.")
@click.option("--repeats", default=3, show_default=True, help="Fresh processes of each row.")
@click.option("--batch-size", default=4, show_default=True, help="Rows a step.")
@click.option("--length", default=256, show_default=True, help="Tokens a row.")
@click.option(
    "--supervised",
    default=0.25,
    show_default=True,
    help="Share of each row, at its end, that is supervised.",
)
@click.option(
    "--numeric", default=1.0, show_default=True, help="Share of these tokens that is numeric."
)
@click.option(
    "--numeric-tokens",
    type=int,
    default=None,
    help="Numeric tokens of the vocabulary, N (default: the geometry's).",
)
@click.option(
    "--method",
    type=click.Choice(["lora", "full"]),
    default="lora",
    show_default=True,
    help="LoRA adapters by the paper's recipe, which leave the head frozen, or full fine-tuning.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16"]),
    default="float32",
    show_default=True,
    help="Of weights and activations.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="auto: a GPU where there is one.",
)
@click.option(
    "--interleave",
    type=click.Choice(["steps", "runs"]),
    default="steps",
    show_default=True,
    help="All rows in memory, taking turns step by step; or one row at a time.",
)
@click.option("--threads", type=int, default=None, help="Of the CPU (default: torch's own).")
@click.option("--seed", default=0, show_default=True, help="Of weights, rows and turns.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="Output folder (default: runs/NAME, a name that follows from the settings).",
)
@options.quiet
@options.as_json
@options.plugin
def command(
    losses: str,
    geometry: str,
    numeric_tokens: int | None,
    device: Literal["auto", "cpu", "cuda"],
    out: Path | None,
    quiet: bool,
    as_json: bool,
    plugins: tuple[Path, ...],
    **sizes: Any,
) -> int:
    """Measure step time and peak memory of each loss in real training steps, as ratios to CE.

    \b
    Examples:
      smmd-bench overhead
      smmd-bench overhead --losses ntl,smmd --steps 6 --drop 2 --repeats 1
      smmd-bench overhead --geometry qwen2.5-1.5b --device cuda  # wants a GPU
    """
    from ..plugin_system.registry import load_plugin_file, plugin_files

    for file in plugins:
        load_plugin_file(file)
    settings = _settings(losses, geometry, numeric_tokens, device, sizes)

    from ..overhead.measure import measure, missing_repeats, read_frames
    from .interruption import keeping
    from .voice import Voice, published

    voice, folder = Voice(quiet, as_json), out or settings.folder
    voice.say(
        f"{settings.geometry} on {settings.device}: {len(settings.rows)} rows x "
        f"{settings.repeats} repeats x {settings.steps} steps, batch {settings.batch_size} x "
        f"{settings.length} tokens."
    )

    def kept() -> list[str]:
        done = settings.repeats - len(missing_repeats(settings, folder))
        return [f"Kept in {folder}: {done} of {settings.repeats} repeats."]

    with keeping(kept):
        with voice.progress() as progress:
            worked = measure(settings, folder, progress, plugin_files())
        voice.publish(folder)
    if not worked:
        voice.say(f"Nothing to do: {folder} is complete.")
    voice.tables(folder)
    runs = read_frames(folder)["runs"]
    failed = runs[runs["error"].notna()]
    for line in failed.to_dict("records"):
        voice.fail(f"Failed: {line['row']}, repeat {line['repeat'] + 1}: {line['error']}")
    if as_json:
        voice.result({**published(folder), "worked": worked, "failed": _reasons(failed)})
    voice.paths(folder)
    if len(failed):
        voice.fail(
            f"{len(failed)} of {len(runs)} processes failed. The same command measures their "
            "repeats again."
        )
        return 1
    return 0


def _reasons(failed: pd.DataFrame) -> dict[str, str]:
    return {f"{f['row']}, repeat {f['repeat'] + 1}": f["error"] for f in failed.to_dict("records")}


def _settings(
    losses: str,
    geometry: str,
    numeric_tokens: int | None,
    device: Literal["auto", "cpu", "cuda"],
    sizes: dict[str, Any],
) -> OverheadSettings:
    """The checked settings; what needs torch, which is slow to import, is checked last."""
    from dataclasses import replace

    from ..errors import CellSkippedError, UserError
    from ..overhead.batches import synthetic_vocabulary
    from ..overhead.geometry import check_geometry, find_geometry
    from ..overhead.settings import CE, OverheadSettings
    from ..plugin_system.parameters import canonical, split_list
    from ..plugin_system.plugin_source import version_of
    from ..plugin_system.registry import load_loss

    shape = find_geometry(geometry)
    found = [load_loss(spec) for spec in (CE, *split_list(losses))]
    if not split_list(losses):
        raise UserError("--losses names no loss: give some, such as ntl,smmd.")
    numeric_tokens = numeric_tokens if numeric_tokens is not None else shape.numeric_tokens
    if numeric_tokens is None:
        raise UserError(
            f"The geometry {geometry} does not say how many numeric tokens its tokenizer has: give "
            "--numeric-tokens, such as 10 (digits) or 1000 (groups of three digits)."
        )

    settings = OverheadSettings(
        geometry=shape.name,
        config=shape.config,
        losses={canonical(loss): version_of(loss) for loss in found},
        numeric_tokens=numeric_tokens,
        device="cpu",
        **sizes,
    )
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "--device cuda: torch finds no GPU here. Give --device cpu, or install a torch with "
            "CUDA on a machine that has one."
        )
    if device != "cpu" and torch.cuda.is_available():
        settings = replace(settings, device="cuda")
    check_geometry(shape.name, shape.config, settings.recipe)
    vocabulary = synthetic_vocabulary(settings.config["vocab_size"], numeric_tokens)
    for loss in found:
        try:
            loss.bind(vocabulary)
        except CellSkippedError as error:
            raise UserError(f"{canonical(loss)} cannot be measured here: {error}") from error
    return settings
