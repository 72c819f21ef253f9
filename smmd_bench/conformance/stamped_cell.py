"""The files of a generated cell, each with the stamp that a real stage gives it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..storage.cell import BASE, StoredCell, current_cell, training_stamp
from ..storage.files import write_json, write_parquet

STAGES = ("train", "validate", "select", "decode", "measure")


def addresses_of(address: str) -> dict[str, str]:
    """Addresses of all stages of a cell with this train address."""
    return {stage: address if stage == "train" else f"{stage[0]}{address[1:]}" for stage in STAGES}


def write_trained(
    folder: Path,
    content: Mapping[str, Any],
    log: pd.DataFrame | None,
    selection: Mapping[str, Any],
    weights: str = "",
) -> StoredCell:
    """Write cell.json, train.json, the training log, and which epoch is tested.

    content: of cell.json. log: None for the untuned base, which has no selection either.
    selection: "metric", "best_epoch" and "epochs". weights: another text, other weights.
    """
    write_json(folder / "cell.json", content)
    train, is_base = content["addresses"]["train"], content["loss"] == BASE
    epochs: Sequence[int] = [0] if is_base else [line["epoch"] for line in selection["epochs"]]
    digests = {epoch: f"weights {weights} of epoch {epoch} of {train}" for epoch in epochs}
    lines = [{"epoch": epoch, "weights": digest} for epoch, digest in digests.items()]
    receipt = {"address": train, "kind": "base" if is_base else "full", "epochs": lines}
    write_json(folder / "train.json", receipt)
    if log is not None:
        write_parquet(folder / "train_log.parquet", log, training_stamp(train, digests))
        stamp = current_cell(folder, content).selection_stamp
        write_json(folder / "selection.json", {"address": stamp, **selection})
    return current_cell(folder, content)


def write_measured(
    cell: StoredCell,
    completions: pd.DataFrame,
    probes: pd.DataFrame,
    scores: pd.DataFrame,
    metrics: Mapping[str, Any],
) -> None:
    """Write what was decoded and measured of a trained cell."""
    decoded, measured = cell.decode_stamp, cell.measure_stamp
    assert decoded is not None
    assert measured is not None
    write_parquet(cell.folder / "completions.parquet", completions, decoded)
    write_parquet(cell.folder / "probes.parquet", probes, decoded)
    write_parquet(cell.folder / "scores.parquet", scores, measured)
    write_json(cell.folder / "metrics.json", {"address": measured, **metrics})
