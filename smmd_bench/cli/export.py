"""`smmd-bench export RUN`: checkpoints and results as others read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import UserError
from . import options
from .voice import Voice, print_json


@click.command()
@click.argument("run", type=options.PATH)
@options.out("The folder for the exports, outside of the run.", required=True)
@options.cells
@click.option(
    "--merged",
    is_flag=True,
    help="Merge adapters into their base, and export whole models.",
)
@options.voice
@options.plugin
def command(run: Path, out: Path, merged: bool, voice: Voice, **filters: Any) -> int:
    """Export checkpoints and results of the folder RUN.

    Every trained cell that has results goes to OUT/MODEL-TASK-LOSS-seedK: the weights of its
    selected epoch, README.md as the model hub's card, and lm_eval/results_DATE.json, which
    `every-eval-ever` converts. Untuned models and tests of transfer are exported only if the
    options name nothing else. The exit status is 1 if a folder is without the weights.

    \b
    Examples:
      smmd-bench export runs/NAME --loss smmd --merged --out merged
    """
    from ..publishing.export import write_export
    from ..results.availability import describe_retraining
    from ..results.frames import read_run
    from ..storage.cell import BASE

    frames = read_run(run)
    if frames.cells.empty or "predictions" in frames.manifest:
        raise UserError(
            f"{run} holds no checkpoint: give a folder of `smmd-bench train-eval`."
        )
    chosen = options.filter_cells(frames, filters)
    trained = chosen[(chosen["loss"] != BASE) & chosen["trained_on"].isna()]
    chosen = chosen if trained.empty else trained
    measured = chosen[chosen["status"] == "done"]
    if measured.empty:
        raise UserError(
            f"No such cell of {run} is finished: `smmd-bench show {run}` lists them."
        )
    # What was asked for and is not there would else be missed by nobody.
    for row in chosen[chosen["status"] != "done"].to_dict("records"):
        voice.note(
            f"Note: {row['task']} {row['loss']} seed {row['seed']} is {row['status']}."
        )
    rows: list[Any] = measured.to_dict("records")
    folders, notes = write_export(frames, rows, out, merged=merged)
    for note in notes:
        voice.note(f"Note: {note}")
    if voice.as_json:
        print_json({"folders": [str(folder) for folder in folders], "notes": notes})
    for folder in folders:
        voice.always(str(folder))

    # The untuned model has its weights elsewhere.
    bare = []
    for row, folder in zip(rows, folders, strict=True):
        if row["loss"] != BASE and not any(folder.glob("*.safetensors")):
            bare.append(folder)
    if bare:
        voice.fail(
            f"Failed: {len(bare)} of {len(folders)} exported folders have no weights: "
            f"{describe_retraining(run)}; delete {bare[0]}, and export again."
        )
    return 1 if bare else 0
