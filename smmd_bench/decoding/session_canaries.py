"""Checkpoints that one session decodes: each is the other's rival, and some are too near to tell.

A session decodes the base, and every epoch of every loss and seed. Those whose canaries read the
same sequences can be compared before any engine runs. The decode stage writes beside a cell's
completions, in decode.json, which of them the canary cannot tell from the decoded weights.
"""

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

_NAMED = 4  # of many trainings, a sentence names so many
Canaries = dict[str, dict[int, Canary]]
"""Of each training, by its part, the canaries by epoch (0: the base)."""


def add_rivals(canaries: Mapping[str, Canary]) -> dict[str, Canary]:
    """Each canary with every other one that scores the same tokens, besides those that it has."""
    alike: dict[Any, dict[str, Any]] = defaultdict(dict)
    for name, canary in canaries.items():
        alike[_scored(canary)][name] = canary.log_probabilities

    with_rivals = {}
    for name, canary in canaries.items():
        rivals = dict(canary.rivals) | alike[_scored(canary)]
        rivals.pop(name)
        with_rivals[name] = replace(canary, rivals=tuple(rivals.items()))
    return with_rivals


def session_canaries(cells: Sequence[Cell], run: Path) -> Canaries:
    """The canaries of the cells of a session, and of those whose weights they test, with rivals.

    The base takes the canary that a training wrote down of it, so that it reads what the trained
    ones do. A cell without a receipt is left out.
    """
    owners = [find_trained_cell(cell, run) for cell in cells]
    by_name: dict[str, Canary] = {}
    names: dict[str, dict[int, str]] = {}
    base = None
    for key, owner in {owner.parts["train"]: owner for owner in owners}.items():
        content = read_own_json(owner.stored(run).trained / "canaries.json")
        if content is None:
            continue
        if base is None and "base" in content:
            base = canary_from(content["base"])
        names[key] = {}
        for epoch, canary in content["epochs"].items():
            name = BASE if owner.is_base else f"{owner.label} epoch {epoch}"
            names[key][int(epoch)] = name
            by_name.setdefault(name, canary_from(canary))

    # Only canaries that read the same sequences can be rivals, and a base without training data
    # reads the general ones.
    if BASE in by_name and base is not None:
        by_name[BASE] = base

    rivals = add_rivals(by_name)
    return {
        key: {epoch: rivals[name] for epoch, name in of_key.items()}
        for key, of_key in names.items()
    }


def decode_receipt(canary: Canary, dtype: str) -> dict[str, Any]:
    """What decode.json says of the weights that a cell was decoded with."""
    alike = indistinguishable(canary, dtype)
    notes = []
    if alike:
        # Without seeds and epochs, so that cells of which the same is true say the same.
        trainings = sorted({name.partition(" seed ")[0] for name in alike})
        more = ""
        if len(trainings) > _NAMED:
            more = f" and {len(trainings) - _NAMED} more"
        notes.append(
            f"In {dtype} the canary cannot tell the decoded weights from "
            f"{', '.join(trainings[:_NAMED])}{more}: on its texts they differ by no more than "
            "rounding does."
        )
    return {
        "resolution": resolution(canary, dtype),
        "compared_with": len(canary.rivals),
        "indistinguishable": alike,
        "notes": notes,
    }


def _scored(canary: Canary) -> Any:
    return canary.token_ids, tuple(map(len, canary.log_probabilities)), canary.pictures
