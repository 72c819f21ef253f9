"""`smmd-bench overhead`: what each loss costs in step time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import UserError
from . import options
from .outcome import conclude, publish_reports
from .voice import Voice


@click.command()
@options.commas(
    "--losses",
    word="LOSS",
    default="ce,ntl,ntil,smmd",
    help="The losses to measure; ce always is, because ratios are to it.",
)
@click.option(
    "--geometry", default="qwen2.5-0.5b-2-layers", metavar="NAME|PATH",
    help="The shape of the model, with random weights: also qwen2.5-1.5b, smollm3-3b, tiny, or the "
    "path of a config.json or checkpoint folder.",
)  # fmt: skip
@click.option(
    "--numeric-tokens",
    type=int,
    help="How many numeric tokens there are (default: the geometry's).",
)
@click.option(
    "--steps", default=120, help="Optimiser steps; the first quarter does not count."
)
@click.option(
    "--repeats", default=3, help="How often each row is measured, in a fresh process."
)
@click.option("--batch-size", default=4, help="Examples a step.")
@click.option("--length", default=256, help="Tokens an example.")
@options.choice(
    "--method",
    "lora",
    "full",
    help="Train adapters, which freeze the output head, or all weights.",
)
@options.choice(
    "--dtype", "float32", "bfloat16", help="The dtype of weights and activations."
)
@options.out()
@options.voice
@options.plugin
def command(
    losses: list[str],
    geometry: str,
    numeric_tokens: int | None,
    out: Path | None,
    voice: Voice,
    **sizes: Any,
) -> int:
    """Measure step time and memory of each loss.

    It runs on the GPU where there is one.

    \b
    Examples:
      smmd-bench overhead --geometry qwen2.5-1.5b --dtype bfloat16  # needs a GPU
    """
    from ..overhead.settings import CE, OverheadSettings, find_geometry
    from ..plugin_system.parameters import canonical
    from ..plugin_system.plugin_source import version_of
    from ..plugin_system.registry import load_loss, plugin_files, require_known

    # A mistyped name is answered before what takes seconds to import.
    require_known("losses", losses)
    shape = find_geometry(geometry)
    count = numeric_tokens or shape.numeric_tokens
    if count is None or count >= shape.config["vocab_size"]:
        raise UserError(
            f"Give --numeric-tokens, such as 10, below the vocabulary of {geometry}."
        )
    import torch

    # Ratios are to cross-entropy, so that it is measured in any case.
    plugins = [load_loss(spec) for spec in (CE, *losses)]
    settings = OverheadSettings(
        geometry=shape.name,
        config=shape.config,
        losses={canonical(loss): version_of(loss) for loss in plugins},
        numeric_tokens=count,
        device="cuda" if torch.cuda.is_available() else "cpu",
        **sizes,
    )
    from ..overhead.measure import measure, read_rows

    folder = out or settings.folder
    voice.say(f"{settings.geometry} on {settings.device}: {len(settings.rows)} rows.")
    with voice.progress() as progress:
        worked = measure(settings, folder, progress, plugin_files())
    sections = publish_reports(voice, folder)
    if not worked:
        voice.say(f"Nothing to do: {folder} is complete.")
    voice.tables(sections, ("overhead_table",))
    rows = read_rows(folder)
    failures = rows[rows["error"].notna()].to_dict("records")
    failed = {
        f"{f['row']}, repeat {f['repeat'] + 1}": str(f["error"]) for f in failures
    }
    return conclude(voice, folder, failed, f"{len(rows)} processes", worked=worked)
