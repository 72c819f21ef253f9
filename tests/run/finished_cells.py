"""The files that a finished cell leaves; the weights are empty."""

import pandas as pd

from smmd_bench.decoding.selection import select_weights
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.scoring.measure import measure
from smmd_bench.storage.cell import BASE
from smmd_bench.storage.files import write_json, write_parquet, write_text

PLAIN = Experiment(
    tasks=("arithmetic",),
    losses=("ce",),
    recipe={"epochs": 2, "validation_examples": 4, "test_examples": 4},
)


def completions(right: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "uid": [f"{i}" for i in range(4)],
            "prompt": "?",
            "target": ["1", "2", "3", "4"],
            "completion": [str(i + 1) if i < right else "no number" for i in range(4)],
            "finish_reason": "stop",
            "completion_tokens": 2,
            "prompt_tokens": 1,
            "operations": 1,
        }
    )


def claim(run: RunDirectory, *experiments: Experiment) -> None:
    """Claim the folder for one experiment after another."""
    with run.locked():
        for experiment in experiments:
            run.claim([experiment])


def trained_cell() -> Cell:
    (cell,) = [cell for cell in PLAIN.cells if not cell.is_base]
    return cell


def finish(run: RunDirectory, cell: Cell) -> None:
    """Write the files of a finished cell."""
    train(run, cell)
    decode(run, cell)
    rate(run, cell)


def train(
    run: RunDirectory, cell: Cell, *, weights: str = "weights", right: int = 3
) -> None:
    """Write what training and selection leave: so many of 4 answers are right in epoch 2."""
    stored = run.current(cell)
    if cell.is_base:
        lines = [{"epoch": 0, "weights": BASE}]
    else:
        lines = [
            {"epoch": at, "weights": f"{weights} of {cell.address} {at}"}
            for at in (1, 2)
        ]

    write_json(stored.trained / "receipt.json", {"kind": "full", "epochs": lines})
    if cell.is_base:
        return

    keep_epochs(run, cell)
    frames = []
    for epoch in (1, 2):
        frame = completions(right if epoch == 2 else 0)
        frames.append(frame.assign(epoch=epoch))

    validated = run.current(cell).validated

    assert validated is not None

    write_parquet(validated / "validation.parquet", pd.concat(frames))
    select_weights(cell, run.path)


def keep_epochs(run: RunDirectory, cell: Cell) -> None:
    """Make the folders of both epochs' weights."""
    for epoch in (1, 2):
        write_text(run.current(cell).epoch(epoch) / "model.safetensors", "")


def decode(run: RunDirectory, cell: Cell) -> None:
    """Write completions and probes of the selected weights."""
    folder = run.current(cell).decoded
    assert folder is not None
    write_parquet(folder / "completions.parquet", completions(2))
    write_parquet(folder / "probes.parquet", completions(2)[["uid"]])


def rate(run: RunDirectory, cell: Cell) -> None:
    """Write scores and metrics."""
    folder = run.current(cell).measured
    assert folder is not None
    scores, metrics = measure(cell.task_plugin, completions(2))
    write_parquet(folder / "scores.parquet", scores)
    write_json(folder / "metrics.json", metrics)
