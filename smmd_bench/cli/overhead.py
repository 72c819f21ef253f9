"""`smmd-bench overhead`: what each loss costs in step time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import CellSkippedError, UserError
from . import options
from .voice import Voice

if TYPE_CHECKING:
    from ..overhead.settings import OverheadSettings


@click.command()
@options.commas(
    "--losses", word="LOSS", default="ce,ntl,ntil,smmd", help="Losses; ce is always measured."
)
@click.option(
    "--geometry",
    default="qwen2.5-0.5b-2-layers",
    metavar="NAME|PATH",
    help="A model's shape, with random weights: also qwen2.5-1.5b, smollm3-3b, tiny, or the path "
    "of a config.json or checkpoint folder.",
)
@click.option("--steps", default=120, help="Optimiser steps of a repeat.")
@click.option("--drop", default=20, help="First steps, which do not count.")
@click.option("--repeats", default=3, help="Fresh processes of each row.")
@click.option("--batch-size", default=4, help="Rows a step.")
@click.option("--length", default=256, help="Tokens a row.")
@click.option("--supervised", default=0.25, help="Share of a row, at its end, that is supervised.")
@click.option("--numeric", default=1.0, help="Share of the supervised tokens that is numeric.")
@click.option("--numeric-tokens", type=int, help="N of the vocabulary (default: the geometry's).")
@options.choice("--method", "lora", "full", help="Adapters, which freeze the head, or all weights.")
@options.choice("--dtype", "float32", "bfloat16", help="Of weights and activations.")
@options.choice("--device", "auto", "cpu", "cuda", help="auto: the GPU, if there is one.")
@click.option("--threads", type=int, help="Of the CPU (default: torch's own).")
@click.option("--seed", default=0, help="Of weights, rows and turns.")
@options.out()
@options.voice
@options.plugin
def command(losses: list[str], geometry: str, out: Path | None, voice: Voice, **sizes: Any) -> int:
    """Measure step time and memory of each loss.

    \b
    Examples:
      smmd-bench overhead --geometry qwen2.5-1.5b --device cuda  # needs a GPU
    """
    from ..overhead.settings import find_geometry
    from ..plugin_system.registry import plugin_files, require_known

    require_known("losses", losses)  # before what takes seconds to import
    find_geometry(geometry)
    settings = _settings(losses, geometry, **sizes)

    from ..overhead.measure import measure, read_frames

    folder = out or settings.folder
    voice.say(f"{settings.geometry} on {settings.device}: {len(settings.rows)} rows.")
    with voice.progress() as progress:
        worked = measure(settings, folder, progress, plugin_files())
    sections = voice.publish(folder)
    if not worked:
        voice.say(f"Nothing to do: {folder} is complete.")
    voice.tables(sections, ("overhead_table",))
    runs = read_frames(folder)["runs"]
    failures = runs[runs["error"].notna()].to_dict("records")
    failed = {f"{f['row']}, repeat {f['repeat'] + 1}": str(f["error"]) for f in failures}
    return voice.conclude(folder, failed, f"{len(runs)} processes", worked=worked)


def _settings(
    losses: list[str], geometry: str, numeric_tokens: int | None, device: Any, **sizes: Any
) -> OverheadSettings:
    """The checked settings."""
    import torch

    from ..overhead import settings as overhead
    from ..plugin_system.parameters import canonical
    from ..plugin_system.plugin_source import version_of
    from ..plugin_system.registry import load_loss

    shape = overhead.find_geometry(geometry)
    found = [load_loss(spec) for spec in (overhead.CE, *losses)]
    count = shape.numeric_tokens if numeric_tokens is None else numeric_tokens
    if count is None:
        raise UserError(f"The geometry {geometry} has no N: give --numeric-tokens, such as 10.")
    has_gpu = torch.cuda.is_available()
    if device == "cuda" and not has_gpu:
        raise UserError("--device cuda: torch finds no GPU here. Give --device cpu.")
    settings = overhead.OverheadSettings(
        geometry=shape.name,
        config=shape.config,
        losses={canonical(loss): version_of(loss) for loss in found},
        numeric_tokens=count,
        device="cuda" if has_gpu and device != "cpu" else "cpu",
        **sizes,
    )
    overhead.check_geometry(shape.name, shape.config, settings.recipe)
    vocabulary = overhead.synthetic_vocabulary(settings.config["vocab_size"], count)
    for loss in found:
        try:
            loss.bind(vocabulary)
        except CellSkippedError as error:
            raise UserError(f"{canonical(loss)} cannot be measured here: {error}") from error
    return settings
