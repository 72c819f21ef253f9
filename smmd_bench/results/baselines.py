"""Which cells each measured cell is compared with."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..plugin_system.parameters import tuned_label, untuned_label
from ..storage.cell import BASE, CellRecord

REFERENCE = "ce"

WITHOUT_EFFECT = ("save_minutes", "keep_epochs", "probe_examples", "probe_vectors")
"""Settings of a recipe that change no score."""


class CellKey(NamedTuple):
    """What tells a cell from the others of a run.

    trained_on: of a test of transfer. test: which examples it answers and how, without which two
    cells cannot be paired. recipe: empty for the untuned base, which follows none. reference: the
    file that a file of completions made elsewhere is compared with; None: the cell was made here.
    budget: how many configurations a tuned cell had to choose from; 0: it is not tuned.
    """

    model: str
    task: str
    trained_on: str | None
    test: str
    recipe: str
    loss: str
    seed: int
    reference: str | None = None
    budget: int = 0


def cell_key(cell: CellRecord) -> CellKey:
    """The key of a cell, from what a manifest says of it."""
    loss, reference = str(cell["loss"]), cell.get("reference")
    recipe = {k: v for k, v in (cell.get("recipe") or {}).items() if k not in WITHOUT_EFFECT}
    data = ((cell.get("data") or {}).get("identity") or {}).get("test")
    plugins = {k: v for k, v in (cell.get("plugins") or {}).items() if k.startswith("task ")}
    asked = [cell.get("data_seed"), recipe.get("test_examples"), recipe.get("chat_template")]
    return CellKey(
        str(cell["model"]),
        str(cell["task"]),
        cell.get("trained_on"),
        json.dumps([*asked, data, plugins], sort_keys=True),
        "" if loss == BASE or reference else json.dumps(recipe, sort_keys=True),
        loss,
        int(cell["seed"]),
        reference,
        len(cell.get("grid") or ()),
    )


def find_baselines(keys: Collection[CellKey]) -> dict[CellKey, CellKey]:
    """What each measured cell is compared with, where that is measured.

    A loss is compared with cross-entropy of the same recipe and seed; cross-entropy, and a loss
    where no cell of that recipe has cross-entropy, with the untuned base. A tuned loss is compared
    with tuned cross-entropy of as many configurations; that, and a tuned loss without one, with
    cross-entropy. A file of completions made elsewhere is compared with its reference.
    """
    with_ce = {key._replace(seed=0) for key in keys if untuned_label(key.loss) == REFERENCE}
    found = {}
    for key in keys:
        other = base = key._replace(trained_on=None, recipe="", loss=BASE, seed=0, budget=0)
        plain = key._replace(loss=REFERENCE, budget=0)
        tuned = [key._replace(loss=tuned_label(REFERENCE))] if key.budget else []
        if key.reference is not None:
            other = key._replace(loss=key.reference)
        elif key.loss != REFERENCE:
            known = (o for o in (*tuned, plain) if o != key and o._replace(seed=0) in with_ce)
            other = next(known, base)
        if key != other and other in keys:
            found[key] = other
    return found


def find_noise_pairs(keys: Collection[CellKey]) -> dict[CellKey, CellKey]:
    """Cross-entropy of one seed, and of another that it is compared with: the noise floor.

    No cell is in two pairs, so that the pairs are as independent as the seeds of a loss.
    """
    groups: dict[CellKey, list[CellKey]] = {}
    for key in sorted(keys, key=lambda key: key.seed):
        if key.loss == REFERENCE and key.reference is None:
            groups.setdefault(key._replace(seed=0), []).append(key)
    found: dict[CellKey, CellKey] = {}
    for group in groups.values():
        half = len(group) // 2
        found |= dict(zip(group[half:], group[:half], strict=False))
    return found


class Compared(NamedTuple):
    """Two cells, as the manifest says them, and of which kind: a loss and its opponent
    ("comparison"), or cross-entropy of two seeds ("noise")."""

    mine: CellRecord
    other: CellRecord
    kind: str


def all_compared(cells: Iterable[CellRecord]) -> list[Compared]:
    """Every pair of these measured cells that is compared."""
    held = {cell_key(content): content for content in cells}
    pairs = [(*pair, "comparison") for pair in find_baselines(held).items()]
    pairs += [(*pair, "noise") for pair in find_noise_pairs(held).items()]
    return [Compared(held[mine], held[other], kind) for mine, other, kind in pairs]
