"""Checkpoints from elsewhere: an adapter on a model of the run, or a whole model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..models.cards import ModelCard, model_card
from ..storage.addresses import digest_of_files
from .evaluation import Target

_WEIGHTS = ("*.safetensors", "*.json", "*.model")
_SHAPE = (
    "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "max_position_embeddings", "vocab_size",
)  # fmt: skip


def folder_targets(
    folders: Sequence[Path], models: Sequence[ModelCard], dtype: str
) -> list[Target]:
    """One target a folder, however often it is given; `models` are those of the run.

    Raises UserError for a folder without weights, and for an adapter on another model.
    """
    names = _names(list(dict.fromkeys(folder.resolve() for folder in folders)))
    return [_target(folder, name, models, dtype) for folder, name in names.items()]


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
    given = _json(folder / "adapter_config.json").get("base_model_name_or_path")
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
    config = _json(card.folder / "config.json")
    text = config.get("text_config")
    inner = {**config, **text} if isinstance(text, dict) else config
    return {"architectures": config.get("architectures"), **{k: inner.get(k) for k in _SHAPE}}


def _json(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{file} is not valid JSON ({error}): save or copy it again.") from error
    if not isinstance(content, dict):
        raise UserError(f"{file} is not a JSON object: save or copy it again.")
    return content


def _last(name: str) -> str:
    """The last part of a hub name or a path, without a revision."""
    return name.rstrip("/").rpartition("/")[2].partition("@")[0]
