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
    recipe = {
        k: v for k, v in (cell.get("recipe") or {}).items() if k not in WITHOUT_EFFECT
    }
    data = (cell.get("data") or {}).get("identity") or {}
    plugins = cell.get("plugins") or {}
    task_plugins = {name: v for name, v in plugins.items() if name.startswith("task ")}

    # Two cells are paired by example where their tests are the same in all of this.
    test = [
        cell.get("data_seed"),
        recipe.get("test_examples"),
        recipe.get("chat_template"),
        data.get("test"),
        task_plugins,
    ]
    reference = cell.get("reference")
    # The base takes part in no training, and how files of completions were trained is not known.
    has_recipe = cell["loss"] != BASE and not reference
    return CellKey(
        model=str(cell["model"]),
        task=str(cell["task"]),
        trained_on=cell.get("trained_on"),
        test=json.dumps(test, sort_keys=True),
        recipe=json.dumps(recipe, sort_keys=True) if has_recipe else "",
        loss=str(cell["loss"]),
        seed=int(cell["seed"]),
        reference=reference,
        budget=len(cell.get("grid") or ()),
    )


def find_baselines(keys: Collection[CellKey]) -> dict[CellKey, CellKey]:
    """What each measured cell is compared with, where that is measured.

    A loss is compared with cross-entropy of the same recipe and seed; cross-entropy, and a loss
    where no cell of that recipe has cross-entropy, with the untuned base. A tuned loss is compared
    with tuned cross-entropy of as many configurations; that, and a tuned loss without one, with
    cross-entropy. A file of completions made elsewhere is compared with its reference.
    """
    of_any_seed = {
        key._replace(seed=0) for key in keys if untuned_label(key.loss) == REFERENCE
    }
    baselines = {}
    for key in keys:
        baseline = _find_baseline(key, of_any_seed)
        if key != baseline and baseline in keys:
            baselines[key] = baseline
    return baselines


def _find_baseline(key: CellKey, of_any_seed: Collection[CellKey]) -> CellKey:
    """What a cell is compared with, if that is measured.

    of_any_seed: the cells with cross-entropy, each as that of seed 0.
    """
    if key.reference is not None:
        return key._replace(loss=key.reference)

    candidates = [key._replace(loss=REFERENCE, budget=0)]
    # The best of several tries has an advantage, unless cross-entropy had as many.
    if key.budget:
        candidates.insert(0, key._replace(loss=tuned_label(REFERENCE)))

    for candidate in candidates:
        # A seed without cross-entropy has no baseline, where another seed has one.
        if candidate != key and candidate._replace(seed=0) in of_any_seed:
            return candidate

    # The base has neither training nor seed: all cells of a test share it.
    return key._replace(trained_on=None, recipe="", loss=BASE, seed=0, budget=0)


def find_noise_pairs(keys: Collection[CellKey]) -> dict[CellKey, CellKey]:
    """Cross-entropy of one seed, and of another that it is compared with: the noise floor.

    No cell is in two pairs, so that the pairs are as independent as the seeds of a loss.
    """
    groups: dict[CellKey, list[CellKey]] = {}
    for key in sorted(keys, key=lambda key: key.seed):
        # A file of completions may be called `ce`, too, and has no seeds.
        if key.loss == REFERENCE and key.reference is None:
            of_any_seed = key._replace(seed=0)
            groups.setdefault(of_any_seed, []).append(key)

    pairs: dict[CellKey, CellKey] = {}
    for group in groups.values():
        half = len(group) // 2
        second_half = group[half:]
        # Of an odd number the last seed has no partner.
        pairs |= dict(zip(second_half, group[:half], strict=False))
    return pairs


class Compared(NamedTuple):
    """Two cells, as the manifest says them, and of which kind: a loss and its opponent
    ("comparison"), or cross-entropy of two seeds ("noise")."""

    mine: CellRecord
    other: CellRecord
    kind: str


def all_compared(cells: Iterable[CellRecord]) -> list[Compared]:
    """Every pair of these measured cells that is compared."""
    records = {cell_key(record): record for record in cells}
    kinds = {
        "comparison": find_baselines(records),
        "noise": find_noise_pairs(records),
    }
    pairs = []
    for kind, opponents in kinds.items():
        for key, other in opponents.items():
            pairs.append(Compared(records[key], records[other], kind))
    return pairs
