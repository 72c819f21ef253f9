"""`smmd-bench export RUN`: checkpoints and results as others read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import UserError
from . import options
from .terminal import print_json
from .voice import Voice


@click.command()
@click.argument("run", type=options.PATH)
@click.option("--out", type=options.FOLDER, required=True, help="A folder outside the run.")
@click.option("--cell", help="The cell with this address, or a beginning of it.")
@click.option("--model", help="Only cells of this model.")
@click.option("--task", help="Only cells of this task.")
@click.option("--loss", help="Only cells of this loss.")
@click.option("--seed", type=int, help="Only cells of this seed.")
@click.option("--merged", is_flag=True, help="Merge adapters into their base: whole models.")
@options.voice
@options.plugin
def command(
    run: Path, out: Path, cell: str | None, merged: bool, voice: Voice, **filters: Any
) -> None:
    """Export checkpoints and results of the folder RUN.

    Every trained cell that has results goes to OUT/MODEL-TASK-LOSS-seedK: the weights of its
    selected epoch, which from_pretrained and vLLM load, README.md as the model hub's card, and
    lm_eval/results_DATE.json, which `every-eval-ever` converts. Nothing is trained, decoded or
    uploaded, and the run stays as it is. Untuned models and tests of transfer have no weights of
    their own, and are exported only if the options name nothing else.

    \b
    Examples:
      smmd-bench export runs/NAME --out exported
      smmd-bench export runs/NAME --loss smmd --seed 0 --merged --out merged
    """
    from ..results.frames import read_run
    from ..storage.cell import BASE

    frames = read_run(run)
    from ..publishing.export import write_export
    from .show import filter_cells

    if frames.cells.empty or "predictions" in frames.manifest:
        raise UserError(
            f"{run} holds no checkpoint: give a folder that `smmd-bench train-eval` has made."
        )
    chosen = filter_cells(frames, filters)
    if cell is not None:
        chosen = chosen[chosen["address"].str.startswith(cell)]
        if len(chosen) > 1:
            addresses = ", ".join(chosen["address"])
            raise UserError(f"'{cell}' begins {len(chosen)} addresses: give one of {addresses}.")
    own = chosen[(chosen["loss"] != BASE) & chosen["trained_on"].isna()]
    chosen = chosen if own.empty else own
    done = chosen[chosen["status"] == "done"]
    if done.empty:
        what = "is finished" if len(chosen) else "fits all options"
        raise UserError(
            f"No cell of {run} {what}: the command that made the run continues it, and "
            "`smmd-bench show` lists its cells."
        )
    for row in chosen[chosen["status"] != "done"].to_dict("records"):
        voice.note(f"Note: {row['task']} {row['loss']} seed {row['seed']} is {row['status']}.")
    with voice.waiting("Exporting ..."):
        rows: list[Any] = done.to_dict("records")
        folders, notes = write_export(frames, rows, out, merged=merged)
    for note in notes:
        voice.note(f"Note: {note}")
    if voice.as_json:
        print_json({"folders": [str(folder) for folder in folders], "notes": notes})
    for folder in folders:
        voice.always(str(folder))
