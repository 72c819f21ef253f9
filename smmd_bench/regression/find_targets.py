"""The checkpoints that a call evaluates: the base of each model, a run's cells, other folders.

A folder from elsewhere has an adapter on a model of the run, or a whole model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..decoding.siblings import with_rivals
from ..errors import UserError, did_you_mean
from ..models.cards import ModelCard, model_card
from ..results.frames import RunFrames, read_run
from ..results.run_model import again, card_of_run
from ..storage.addresses import digest_of_files
from ..storage.cell import BASE
from ..storage.files import read_given_json, read_own_json
from ..training.canary_texts import canary_from
from .evaluation import Target

if TYPE_CHECKING:
    import pandas as pd


_WEIGHTS = ("*.safetensors", "*.json", "*.model")
_SHAPE = (
    "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "max_position_embeddings", "vocab_size",
)  # fmt: skip


def find_targets(
    path: Path, losses: Sequence[str] = (), checkpoints: Iterable[Path] = ()
) -> tuple[list[Target], list[str]]:
    """The base and the selected checkpoint of every finished cell of a run, then the folders.

    `losses` keeps those of these losses (`base` is one). The second value has a sentence for each
    cell that cannot be evaluated. Raises UserError if none can, if a model has changed, or for a
    folder without weights or with an adapter on another model.
    """
    run = read_run(path)
    cells = _cells(run, losses)
    cards = {str(model): card_of_run(str(model), run) for model in cells["model"].unique()}
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
    folders = _names(list(dict.fromkeys(folder.resolve() for folder in checkpoints)))
    models, dtype = [*cards.values()], _dtype(cells.iloc[0])
    found += [_of_folder(folder, name, models, dtype) for folder, name in folders.items()]
    if not found:
        raise UserError(f"{path} has no finished cell to evaluate: {' '.join(notes)}")
    several, tasks = len(cards) > 1, cells.loc[cells["loss"] != BASE, "task"].nunique() > 1
    named = []
    for target in found:
        words = target.model_label if several else "", target.task if tasks else ""
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


def _dtype(cell: Any) -> str:
    return str(cell["recipe"].get("dtype", "float32"))


def _canary(run: RunFrames, address: str, epoch: int) -> Any:
    """What training wrote down of a cell's weights; None: nothing."""
    now = run.current(address)
    home = now.home if now.receipt is not None else None
    content = None if home is None else read_own_json(home.folder / "train.json")
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
        return (
            f"{name} has no weights in {now.folder / 'checkpoint'} and is left out: "
            f"{again(run.path, now)}."
        )
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


def _of_folder(folder: Path, name: str, models: Sequence[ModelCard], dtype: str) -> Target:
    if not folder.is_dir():
        raise UserError(
            f"The checkpoint folder {folder} does not exist: give one with a model or an adapter."
        )
    if not any(folder.glob("*.safetensors")):
        raise UserError(
            f"The checkpoint folder {folder} has no *.safetensors: save the model or the adapter "
            "there with save_pretrained of transformers or PEFT."
        )
    facts = {"path": str(folder), "dtype": dtype, "loss": f"checkpoint {name}"}
    if (folder / "adapter_config.json").exists():
        card = _base_of(folder, models)
        weights = {file for pattern in _WEIGHTS for file in folder.glob(pattern)}
        identity = {"digest": digest_of_files(weights, folder), "base": dict(card.identity)}
        return Target.on(card, kind="lora", identity=identity, **facts)
    card = model_card(str(folder))
    model = _model_of(card, models) or card
    target = Target.on(card, kind="full", identity=dict(card.identity), **facts)
    return replace(target, model=model.name, model_label=model.label)


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """The last part of each (the parent's where that is `checkpoint`), or as many as are unique."""
    names = {f: f.parent.name if f.name == "checkpoint" else f.name for f in folders}
    parts = 1
    while len({*names.values()}) < len(names):
        parts += 1
        found = list(names.values())
        names |= {
            folder: "/".join(folder.parts[-parts:])
            for folder, name in names.items()
            if found.count(name) > 1
        }
    return names


def _base_of(folder: Path, models: Sequence[ModelCard]) -> ModelCard:
    """The model of the run that an adapter is on, by the name that PEFT wrote down."""
    given = read_given_json(folder / "adapter_config.json").get("base_model_name_or_path")
    if not given and len(models) == 1:
        return models[0]
    for card in models:
        names = (card.name, str(card.folder), card.identity.get("hub", ""))
        if _last(str(given)) in {_last(name) for name in names if name}:
            return card
    raise UserError(
        f"The adapter {folder} was trained from {given}, which is not a model of the run "
        f"({', '.join(card.name for card in models)}): give a run of that model, or correct "
        "base_model_name_or_path in its adapter_config.json if it names a copy of one of these."
    )


def _model_of(card: ModelCard, models: Sequence[ModelCard]) -> ModelCard | None:
    """The model of the run that a whole one may have been trained from; None: there is none."""
    fitting = [model for model in models if _is_alike(model, card)]
    if len(fitting) > 1:
        raise UserError(
            f"The checkpoint {card.folder} may have been trained from any of "
            f"{', '.join(model.name for model in fitting)}: give a run of one of them."
        )
    return fitting[0] if fitting else None


def _is_alike(one: ModelCard, other: ModelCard) -> bool:
    """Whether two models have one shape and size; only one may tie its output layer."""
    shape = _shape(one)
    tied = int(shape["vocab_size"] or 0) * int(shape["hidden_size"] or 0)
    difference = abs(one.parameter_count() - other.parameter_count())
    return shape == _shape(other) and difference in (0, tied)


def _shape(card: ModelCard) -> dict[str, Any]:
    config = read_given_json(card.folder / "config.json")
    text = config.get("text_config")
    inner = {**config, **text} if isinstance(text, dict) else config
    return {"architectures": config.get("architectures"), **{k: inner.get(k) for k in _SHAPE}}


def _last(name: str) -> str:
    """The last part of a hub name or a path, without a revision."""
    return name.rstrip("/").rpartition("/")[2].partition("@")[0]
