"""The checkpoints that a call evaluates: the base of each model, a run's cells, other folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..decoding.siblings import with_rivals
from ..errors import UserError, did_you_mean
from ..models.cards import ModelCard, model_card
from ..results.frames import RunFrames, read_run
from ..storage.current import BASE
from ..storage.files import read_json
from ..training.canary import canary_from
from .folder_target import folder_targets
from .target import Target


def find_targets(
    path: Path, losses: Sequence[str] = (), checkpoints: Iterable[Path] = ()
) -> tuple[list[Target], list[str]]:
    """The base and the selected checkpoint of every finished cell of a run, then the folders.

    `losses` keeps those of these losses (`base` is one). Also gives a sentence for each cell that
    cannot be evaluated. Raises UserError if nothing can, or if a model is another one now than it
    was when the run was made.
    """
    run = read_run(path)
    cells = run.cells[
        run.cells["trained_on"].isna()
    ]  # a test of transfer has no weights of its own
    if "predictions" in run.manifest or cells.empty:
        raise UserError(
            f"{path} holds no checkpoint: give a folder that `smmd-bench train-eval` has made."
        )
    known = {BASE, *cells["loss"].unique(), *cells["loss_name"].unique()}
    for loss in losses:
        if loss not in known:
            raise UserError(f"No cell of {path} has the loss '{loss}': {did_you_mean(loss, known)}")
    cells = cells.assign(wanted=cells["loss"].isin(losses) | cells["loss_name"].isin(losses))
    cards = {str(model): _card(str(model), run) for model in cells["model"].unique()}
    found: list[Target] = []
    notes: list[str] = []
    for model, group in cells.groupby("model", observed=True, sort=False):
        card = cards[str(model)]
        dtype = str(group.iloc[0]["recipe"].get("dtype", "float32"))
        if not losses or BASE in losses:
            found.append(_base(card, group, dtype, run))
        for cell in group[group["loss"] != BASE].to_dict("records"):
            if losses and not cell["wanted"]:
                continue
            target = _trained(card, {str(k): v for k, v in cell.items()}, run)
            if isinstance(target, str):
                notes.append(target)
            else:
                found.append(target)
    dtype = str(cells.iloc[0]["recipe"].get("dtype", "float32"))
    found += folder_targets([Path(folder) for folder in checkpoints], [*cards.values()], dtype)
    if not found:
        raise UserError(f"{path} has no finished cell to evaluate: {' '.join(notes)}")
    tasks = cells.loc[cells["loss"] != BASE, "task"].unique()
    return _as_rivals([_named(target, len(cards) > 1, len(tasks) > 1) for target in found]), notes


def _card(name: str, run: RunFrames) -> ModelCard:
    """The model as it was when the run was made.

    Raises UserError where it is another one now: its adapters would be merged into other weights.
    """
    then = (run.manifest.get("models") or {}).get(name)
    if then is None:
        return model_card(name)
    if "hub" in then:  # whatever the name means there now
        card = model_card(f"{then['hub']}@{then['commit']}")
        if dict(card.identity) == then:
            return replace(card, name=name)
    else:
        card = model_card(name)
        if dict(card.identity) == then:
            return card
    raise UserError(
        f"The model {name} in {card.folder} has changed since {run.path} was made, so that its "
        "checkpoints are of other weights: put the old files back there, or train again into "
        "another run."
    )


def _named(target: Target, models: bool, tasks: bool) -> Target:
    model = target.model_label if models else ""
    words = (model, (target.task or "") if tasks else "")
    return replace(target, of=" ".join(word for word in words if word))


def _as_rivals(targets: Sequence[Target]) -> list[Target]:
    """The targets, the canary of each with the others as rivals: one engine serves them all."""
    known = {t.label: canary_from(t.canary) for t in targets if t.canary is not None}
    canaries = with_rivals(known)
    return [
        t if t.canary is None else replace(t, canary=asdict(canaries[t.label])) for t in targets
    ]


def _canaries(run: RunFrames, address: str) -> dict[int, Any]:
    """By epoch, what training wrote down of a cell's weights."""
    now = run.current(address)
    content = read_json(now.folder / "train.json") if now.receipt is not None else None
    return {int(e["epoch"]): e.get("canary") for e in (content or {}).get("epochs", ())}


def _base(card: ModelCard, cells: Any, dtype: str, run: RunFrames) -> Target:
    own = cells.loc[cells["loss"] == BASE, "address"]
    canary = next((_canaries(run, str(address)).get(0) for address in own), None)
    return Target(
        model=card.name,
        model_label=card.label,
        params=card.parameter_count(),
        task=None,
        loss=BASE,
        seed=0,
        cell=None,
        epoch=None,
        base=str(card.folder),
        kind="base",
        path=str(card.folder),
        dtype=dtype,
        identity={"base": dict(card.identity)},
        canary=canary,
    )


def _trained(card: ModelCard, cell: Mapping[str, Any], run: RunFrames) -> Target | str:
    """The selected checkpoint of a cell; a sentence where it has none."""
    now = run.current(str(cell["address"]))
    name = f"{cell['model']} {cell['task']} {cell['loss']} seed {cell['seed']}"
    if cell["status"] != "done" or now.receipt is None or now.tested is None:
        return f"{name} is {cell['status']} and is left out."
    if now.checkpoint is None:
        return f"{name} has no weights in {now.folder / 'checkpoint'} any more and is left out."
    epoch = now.tested.epoch
    return Target(
        model=card.name,
        model_label=card.label,
        params=card.parameter_count(),
        task=str(cell["task"]),
        loss=str(cell["loss"]),
        seed=int(cell["seed"]),
        cell=str(cell["address"]),
        epoch=epoch,
        base=str(card.folder),
        kind=str(now.receipt["kind"]),
        path=str(now.checkpoint.resolve()),
        dtype=str(cell["recipe"].get("dtype", "float32")),
        identity={"cell": str(cell["address"]), "weights": now.tested.digest},
        canary=_canaries(run, str(cell["address"])).get(epoch),
    )
