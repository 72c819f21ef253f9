"""The checkpoints that a call evaluates: the base of each model, a run's cells, other folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..decoding.siblings import with_rivals
from ..errors import UserError, did_you_mean
from ..models.cards import ModelCard, model_card
from ..results.frames import RunFrames, read_run
from ..storage.current import BASE
from ..storage.files import read_json
from ..training.canary_texts import canary_from
from .evaluation import Target
from .folder_target import folder_targets

if TYPE_CHECKING:
    import pandas as pd


def find_targets(
    path: Path, losses: Sequence[str] = (), checkpoints: Iterable[Path] = ()
) -> tuple[list[Target], list[str]]:
    """The base and the selected checkpoint of every finished cell of a run, then the folders.

    `losses` keeps those of these losses (`base` is one). The second value has a sentence for each
    cell that cannot be evaluated. Raises UserError if none can, or if a model has changed.
    """
    run = read_run(path)
    cells = _cells(run, losses)
    cards = {str(model): _card(str(model), run) for model in cells["model"].unique()}
    found: list[Target] = []
    notes: list[str] = []
    for model, group in cells.groupby("model", observed=True, sort=False):
        if not losses or BASE in losses:
            found.append(_base(cards[str(model)], group, run))
        for cell in group[group["wanted"] & (group["loss"] != BASE)].to_dict("records"):
            target = _trained(cards[str(model)], {str(k): v for k, v in cell.items()}, run)
            if isinstance(target, str):
                notes.append(target)
            else:
                found.append(target)
    found += folder_targets([*checkpoints], [*cards.values()], _dtype(cells.iloc[0]))
    if not found:
        raise UserError(f"{path} has no finished cell to evaluate: {' '.join(notes)}")
    models, tasks = len(cards) > 1, cells.loc[cells["loss"] != BASE, "task"].nunique() > 1
    named = []
    for target in found:
        words = target.model_label if models else "", target.task if tasks else ""
        named.append(replace(target, of=" ".join(word for word in words if word)))
    # one engine serves them all, so each canary has the others as rivals
    canaries = with_rivals({t.label: canary_from(t.canary) for t in named if t.canary})
    return [replace(t, canary=asdict(canaries[t.label])) if t.canary else t for t in named], notes


def _cells(run: RunFrames, losses: Sequence[str]) -> pd.DataFrame:
    """The cells with weights of their own; `wanted` are those of the losses (none: all)."""
    cells = run.cells[run.cells["trained_on"].isna()]
    if "predictions" in run.manifest or cells.empty:
        raise UserError(
            f"{run.path} holds no checkpoint: give a folder that `smmd-bench train-eval` has made."
        )
    known = {BASE, *cells["loss"].unique(), *cells["loss_name"].unique()}
    for loss in losses:
        if loss not in known:
            hint = did_you_mean(loss, known)
            raise UserError(f"No cell of {run.path} has the loss '{loss}': {hint}")
    named = cells["loss"].isin(losses) | cells["loss_name"].isin(losses)
    return cells.assign(wanted=named if losses else True)


def _card(name: str, run: RunFrames) -> ModelCard:
    """The model of the run. Raises UserError if its weights have changed since."""
    then = (run.manifest.get("models") or {}).get(name)
    if then is None:
        return model_card(name)
    card = model_card(f"{then['hub']}@{then['commit']}" if "hub" in then else name)
    if dict(card.identity) == then:
        return replace(card, name=name)
    raise UserError(
        f"The model {name} in {card.folder} has changed since {run.path} was made, so that its "
        "checkpoints belong to other weights: put the old files back there, or train again into "
        "another run."
    )


def _dtype(cell: Any) -> str:
    return str(cell["recipe"].get("dtype", "float32"))


def _canary(run: RunFrames, address: str, epoch: int) -> Any:
    """What training wrote down of a cell's weights; None: nothing."""
    now = run.current(address)
    content = read_json(now.folder / "train.json") if now.receipt is not None else None
    epochs = {int(e["epoch"]): e.get("canary") for e in (content or {}).get("epochs", ())}
    return epochs.get(epoch)


def _base(card: ModelCard, cells: pd.DataFrame, run: RunFrames) -> Target:
    own = cells.loc[cells["loss"] == BASE, "address"]
    return Target.on(
        card,
        kind="base",
        path=str(card.folder),
        dtype=_dtype(cells.iloc[0]),
        identity={"base": dict(card.identity)},
        loss=BASE,
        canary=_canary(run, str(own.iloc[0]), 0) if len(own) else None,
    )


def _trained(card: ModelCard, cell: Mapping[str, Any], run: RunFrames) -> Target | str:
    """The selected checkpoint of a cell; a sentence if it has none."""
    address = str(cell["address"])
    now = run.current(address)
    name = f"{cell['model']} {cell['task']} {cell['loss']} seed {cell['seed']}"
    if cell["status"] != "done" or now.receipt is None or now.tested is None:
        return f"{name} is {cell['status']} and is left out."
    if now.checkpoint is None:
        return f"{name} has no weights in {now.folder / 'checkpoint'} and is left out."
    return Target.on(
        card,
        kind=str(now.receipt["kind"]),
        path=str(now.checkpoint.resolve()),
        dtype=_dtype(cell),
        identity={"cell": address, "weights": now.tested.digest},
        loss=str(cell["loss"]),
        task=str(cell["task"]),
        seed=int(cell["seed"]),
        cell=address,
        epoch=now.tested.epoch,
        canary=_canary(run, address, now.tested.epoch),
    )
