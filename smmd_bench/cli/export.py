"""`smmd-bench export RUN`: checkpoints and results in the formats of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UserError, did_you_mean
from . import options
from .terminal import print_json
from .voice import Voice

if TYPE_CHECKING:
    from ..publishing.export.exported_cell import ExportedCell
    from ..results.frames import RunFrames


@click.command()
@click.argument("run", type=options.PATH)
@click.option("--out", type=options.FOLDER, required=True, help="A folder outside the run.")
@click.option("--cell", help="The cell with this address, or a beginning of it.")
@click.option("--model", help="Only cells of this model.")
@click.option("--task", help="Only cells of this task.")
@click.option("--loss", help="Only cells of this loss.")
@click.option("--seed", type=int, help="Only cells of this seed.")
@click.option("--merged", is_flag=True, help="Merge adapters into their base: whole models.")
@options.commas(
    "--format",
    "formats",
    word="FORMAT",
    default="card,eval_results,lm_eval,every_eval_ever",
    help="The files with results.",
)
@options.voice
@options.plugin
def command(
    run: Path,
    out: Path,
    cell: str | None,
    merged: bool,
    formats: list[str],
    voice: Voice,
    **filters: Any,
) -> None:
    """Export checkpoints and results of the folder RUN.

    Every trained cell that has results goes to OUT/MODEL-TASK-LOSS-seedK: the weights of its
    selected epoch, which from_pretrained and vLLM load, and its results. Nothing is trained or
    decoded, nothing is uploaded, and the run stays as it is. Untuned models and tests of transfer
    have no weights of their own, and are exported only if the options name nothing else.

    \b
    Formats:
      card             README.md of the model hub, with recipe and command
      eval_results     .eval_results/TASK.yaml of the model hub
      lm_eval          results and samples as lm-eval writes them
      every_eval_ever  a record of that schema, with samples

    \b
    Examples:
      smmd-bench export runs/NAME --out exported
      smmd-bench export runs/NAME --loss smmd --seed 0 --merged --out merged
      smmd-bench export runs/NAME --format lm_eval --out samples
    """
    from ..results.frames import read_run
    from ..results.named_cells import require_named

    frames = read_run(run)
    if frames.rows:
        require_named(frames, filters)  # before what takes a second to import
    from ..publishing.export.write_export import FORMATS, write_export

    for name in formats:
        if name not in FORMATS:
            raise UserError(f"Unknown format '{name}': {did_you_mean(name, FORMATS)}")
    with voice.waiting("Exporting ..."):
        cells = _choose(frames, cell, filters, voice)
        folders, notes = write_export(cells, out, formats, merged=merged)
    for note in notes:
        voice.note(f"Note: {note}")
    if voice.as_json:
        print_json({"folders": [str(folder) for folder in folders], "notes": notes})
        return
    for folder in folders:
        voice.always(str(folder))


def _choose(
    run: RunFrames, address: str | None, filters: dict[str, Any], voice: Voice
) -> list[ExportedCell]:
    """The cells to export; raises UserError where none fits, or has results."""
    from ..publishing.export.exported_cell import exported_cells
    from ..storage.cell import BASE
    from .show import filter_cells

    path = run.path
    if run.cells.empty or "predictions" in run.manifest:
        raise UserError(
            f"{path} holds no checkpoint: give a folder that `smmd-bench train-eval` has made."
        )
    chosen = filter_cells(run, filters)
    if address is not None:
        chosen = chosen[chosen["address"].str.startswith(address)]
    own = chosen[(chosen["loss"] != BASE) & chosen["trained_on"].isna()]
    chosen = chosen if own.empty else own
    if address is not None and len(chosen) > 1:
        raise UserError(
            f"'{address}' begins {len(chosen)} addresses: give more of one of "
            f"{', '.join(chosen['address'])}."
        )
    cells = exported_cells(run, chosen)
    if not cells:
        what = "is finished" if len(chosen) else "fits all options"
        raise UserError(
            f"No cell of {path} {what}: the command that made the run continues it, and "
            "`smmd-bench show` lists its cells."
        )
    for row in chosen[chosen["status"] != "done"].to_dict("records"):
        voice.note(f"Note: {row['task']} {row['loss']} seed {row['seed']} is {row['status']}.")
    return cells
