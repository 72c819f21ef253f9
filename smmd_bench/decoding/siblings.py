"""Checkpoints that one session decodes: each is the other's rival, and some are too near to tell.

A session decodes the base, and every epoch of every loss and seed. Those whose canaries read the
same sequences can be compared before any engine runs. The decode stage writes beside a cell's
completions, in decode.json, which of them the canary cannot tell from the decoded weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..contracts import Canary
from ..experiment.cell import Cell
from ..storage.current import BASE
from ..storage.files import read_own_json
from ..training.canary_texts import canary_from
from .canary_check import indistinguishable, resolution
from .choice import find_trained_cell

_NAMED = 4
Canaries = dict[Path, dict[int, Canary]]
"""Of each cell's folder, the canaries by epoch (0: the base)."""


def with_rivals(canaries: Mapping[str, Canary]) -> dict[str, Canary]:
    """Each canary with every other one that scores the same tokens, besides those that it has."""
    alike: dict[Any, dict[str, Any]] = defaultdict(dict)
    for name, canary in canaries.items():
        alike[_scored(canary)][name] = canary.log_probabilities
    found = {}
    for name, canary in canaries.items():
        rivals = {**dict(canary.rivals), **alike[_scored(canary)]}
        rivals.pop(name)
        found[name] = replace(canary, rivals=tuple(rivals.items()))
    return found


def session_canaries(cells: Sequence[tuple[Cell, Path]]) -> Canaries:
    """The canaries of the cells of a session, and of those whose weights they test, with rivals.

    The base takes the canary that a training wrote down of it, so that it reads what the trained
    ones do. A cell without a receipt is left out.
    """
    owners: dict[Path, Cell] = {}  # by the folders that hold the weights
    for cell, folder in cells:
        owner = find_trained_cell(cell, folder.parents[1])
        owners[folder.parent / owner.addresses["train"]] = owner
    receipts = {folder: read_own_json(folder / "train.json") for folder in owners}
    named: dict[str, Canary] = {}
    places: dict[tuple[Path, int], str] = {}
    for folder, receipt in receipts.items():
        for entry in [] if receipt is None else receipt["epochs"]:
            cell = owners[folder]
            name = BASE if cell.is_base else f"{cell.label} epoch {entry['epoch']}"
            places[folder, entry["epoch"]] = name
            named.setdefault(name, canary_from(entry["canary"]))
    bases = [canary_from(r["base"]) for r in receipts.values() if r is not None and "base" in r]
    if BASE in named and bases:
        named[BASE] = bases[0]
    rivals = with_rivals(named)
    found: Canaries = {}
    for (folder, epoch), name in places.items():
        found.setdefault(folder, {})[epoch] = rivals[name]
    return found


def decode_receipt(canary: Canary, dtype: str, address: str) -> dict[str, Any]:
    """What `CELL/decode.json` says of the weights that a cell was decoded with."""
    same = indistinguishable(canary, dtype)
    notes = []
    if same:
        more = f" and {len(same) - _NAMED} more" if len(same) > _NAMED else ""
        notes.append(
            f"In {dtype} the canary cannot tell the decoded weights from "
            f"{', '.join(same[:_NAMED])}{more}: on its texts they differ by no more than rounding "
            "does."
        )
    return {
        "address": address,
        "resolution": resolution(canary, dtype),
        "compared_with": len(canary.rivals),
        "indistinguishable": same,
        "notes": notes,
    }


def _scored(canary: Canary) -> Any:
    return canary.token_ids, tuple(map(len, canary.log_probabilities)), canary.pictures
