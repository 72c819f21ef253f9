"""Checkpoints from elsewhere: an adapter on a model of the run, or a whole model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..models.cards import ModelCard, model_card
from ..storage.addresses import digest_of_files
from .target import Target

_WEIGHTS = ("*.safetensors", "*.json", "*.model")
_SHAPE = (
    "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "max_position_embeddings", "vocab_size",
)  # fmt: skip


def folder_targets(
    folders: Sequence[Path], models: Sequence[ModelCard], dtype: str
) -> list[Target]:
    """One target a folder, however often it is given; `models` are those of the run.

    A whole model that none of those can have become stands under its own name.
    Raises UserError for a folder without weights, and for an adapter on another model.
    """
    different = list(dict.fromkeys(folder.resolve() for folder in folders))
    names = _names(different)
    return [_target(folder, names[folder], models, dtype) for folder in different]


def _target(folder: Path, name: str, models: Sequence[ModelCard], dtype: str) -> Target:
    if not folder.is_dir():
        raise UserError(
            f"The checkpoint folder {folder} does not exist: give one with a model or an adapter."
        )
    if not any(folder.glob("*.safetensors")):
        raise UserError(
            f"The checkpoint folder {folder} has no *.safetensors: save the model or the adapter "
            "there with save_pretrained of transformers or PEFT."
        )
    if (folder / "adapter_config.json").exists():
        base = model = _base_of(folder, models)
        weights = sorted({file for pattern in _WEIGHTS for file in folder.glob(pattern)})
        digest = digest_of_files(weights, folder)
        kind, identity = "lora", {"digest": digest, "base": dict(base.identity)}
    else:
        base = model_card(str(folder))
        model = _model_of(base, models) or base
        kind, identity = "full", dict(base.identity)
    return Target(
        model=model.name,
        model_label=model.label,
        params=base.parameter_count(),
        task=None,
        loss=f"checkpoint {name}",
        seed=0,
        cell=None,
        epoch=None,
        base=str(base.folder),
        kind=kind,
        path=str(folder),
        dtype=dtype,
        identity=identity,
    )


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """The last part of each, with its parent's where it is `checkpoint`, as a cell's is; with as
    many parts as tell them apart where several end alike."""
    deep = max((len(folder.parts) for folder in folders), default=0)
    names = {f: f.parent.name if f.name == "checkpoint" else f.name for f in folders}
    for parts in range(2, deep + 1):
        found = list(names.values())
        for folder in folders:
            if found.count(names[folder]) > 1:
                names[folder] = "/".join(folder.parts[-parts:])
    return names


def _base_of(folder: Path, models: Sequence[ModelCard]) -> ModelCard:
    """The model of the run that an adapter is on, by the name that PEFT wrote down."""
    given = _json(folder / "adapter_config.json").get("base_model_name_or_path")
    if not given and len(models) == 1:
        return models[0]
    name = str(given)
    for card in models:
        parts = (card.name, str(card.folder), card.identity.get("hub", ""))
        if _last(name) in {_last(part) for part in parts if part}:
            return card
    raise UserError(
        f"The adapter {folder} was trained from {name}, which is no model of the run "
        f"({', '.join(card.name for card in models)}): give a run of that model, or correct "
        "base_model_name_or_path in its adapter_config.json if it names a copy of one of these."
    )


def _model_of(card: ModelCard, models: Sequence[ModelCard]) -> ModelCard | None:
    """The model of the run that a whole one may have been trained from; None: no such one."""
    shape = _shape(card)
    fitting = [model for model in models if _shape(model) == shape and _same_size(model, card)]
    if len(fitting) > 1:
        raise UserError(
            f"The checkpoint {card.folder} may have been trained from any of "
            f"{', '.join(model.name for model in fitting)}: give a run of one of them."
        )
    return fitting[0] if fitting else None


def _shape(card: ModelCard) -> dict[str, Any]:
    config = _json(card.folder / "config.json")
    text = config.get("text_config")
    inner = {**config, **text} if isinstance(text, dict) else config
    return {"architectures": config.get("architectures"), **{k: inner.get(k) for k in _SHAPE}}


def _same_size(one: ModelCard, other: ModelCard) -> bool:
    """Also where one file holds the output layer that the other ties to its embeddings."""
    shape = _shape(one)
    tied = int(shape["vocab_size"] or 0) * int(shape["hidden_size"] or 0)
    return abs(one.parameter_count() - other.parameter_count()) in (0, tied)


def _json(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{file} is no JSON ({error}): save or copy it again.") from error
    if not isinstance(content, dict):
        raise UserError(f"{file} is no JSON object: save or copy it again.")
    return content


def _last(name: str) -> str:
    """The last part of a hub name or a path, without a revision."""
    return name.rstrip("/").rpartition("/")[2].partition("@")[0]
