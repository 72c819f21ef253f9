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
from ..storage.cell import BASE
from ..storage.files import read_own_json
from ..training.canary_texts import canary_from
from .canary_check import indistinguishable, resolution
from .selection import find_trained_cell

_NAMED = 4
Canaries = dict[str, dict[int, Canary]]
"""Of each training, by its part, the canaries by epoch (0: the base)."""


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


def session_canaries(cells: Sequence[Cell], run: Path) -> Canaries:
    """The canaries of the cells of a session, and of those whose weights they test, with rivals.

    The base takes the canary that a training wrote down of it, so that it reads what the trained
    ones do. A cell without a receipt is left out.
    """
    owners = {owner.parts["train"]: owner for owner in (find_trained_cell(c, run) for c in cells)}
    files = {key: owner.stored(run).trained / "canaries.json" for key, owner in owners.items()}
    read = {key: read_own_json(file) for key, file in files.items()}
    kept = {key: content for key, content in read.items() if content is not None}
    named: dict[str, Canary] = {}
    places: dict[tuple[str, int], str] = {}
    for key, content in kept.items():
        for epoch, canary in content["epochs"].items():
            owner = owners[key]
            name = BASE if owner.is_base else f"{owner.label} epoch {epoch}"
            places[key, int(epoch)] = name
            named.setdefault(name, canary_from(canary))
    bases = [canary_from(content["base"]) for content in kept.values() if "base" in content]
    if BASE in named and bases:
        named[BASE] = bases[0]
    rivals = with_rivals(named)
    found: Canaries = {}
    for (key, epoch), name in places.items():
        found.setdefault(key, {})[epoch] = rivals[name]
    return found


def decode_receipt(canary: Canary, dtype: str) -> dict[str, Any]:
    """What decode.json says of the weights that a cell was decoded with."""
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
        "resolution": resolution(canary, dtype),
        "compared_with": len(canary.rivals),
        "indistinguishable": same,
        "notes": notes,
    }


def _scored(canary: Canary) -> Any:
    return canary.token_ids, tuple(map(len, canary.log_probabilities)), canary.pictures
