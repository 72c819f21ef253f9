"""What a model card says: the keys of a card.yaml, and of an entry of `models/backbones.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from ..errors import UserError, did_you_mean
from .recipe import checked_settings

KEYS = {
    "label": "how tables name the model",
    "summary": "one line for `smmd-bench ls models`",
    "params": "how many parameters, as people write it",
    "numeric_tokens": "N of its tokenizer by the rule `integer`, checked before a run",
    "recipe": "settings on top of the defaults, in place of the paper's recipe",
    "settings": "settings on top of the recipe",
    "tasks": "by task: settings, and `parameters` of the task",
    "micro_batch_sizes": "by GPU memory in GB; shown, not applied",
}
_TEXT = ("label", "summary", "params")
_MAPPINGS = ("recipe", "settings", "tasks", "micro_batch_sizes")


def card_content(card: Path) -> dict[str, Any]:
    """What a card.yaml says; raises UserError for a mistake in it."""
    return checked_content(_read(card), f"The card {card}")


@cache
def backbones() -> Mapping[str, dict[str, Any]]:
    """The content of the cards of the paper's backbones, by hub name."""
    file = Path(str(files("smmd_bench") / "models" / "backbones.yaml"))
    return {name: checked_content(card, f"{name} in {file}") for name, card in _read(file).items()}


def checked_content(content: Any, origin: str) -> dict[str, Any]:
    """The content of a card if it has no mistake; raises UserError, which begins with `origin`."""
    _require(origin, "the card", content, dict)
    for key in content:
        if key not in KEYS:
            raise UserError(f"{origin} has an unknown key '{key}': {did_you_mean(str(key), KEYS)}")
    for key in _TEXT:
        _require(origin, key, content.get(key, ""), str)
    for key in _MAPPINGS:
        _require(origin, key, content.get(key, {}), dict)
    sizes = {f"micro_batch_sizes: {k}": v for k, v in content.get("micro_batch_sizes", {}).items()}
    for key, value in {"numeric_tokens": content.get("numeric_tokens", 1), **sizes}.items():
        if type(value) is not int or value < 1:
            raise UserError(f"{origin} has a mistake: {key} must be an integer > 0, not {value!r}.")
    tasks = content.get("tasks", {})
    for name, own in tasks.items():
        _require(origin, f"tasks: {name}", own, dict)
        _require(origin, f"tasks: {name}: parameters", own.get("parameters", {}), dict)
    for settings in (content.get("recipe", {}), content.get("settings", {}), *tasks.values()):
        try:
            checked_settings({k: v for k, v in settings.items() if k != "parameters"})
        except UserError as error:
            raise UserError(f"{origin}: {error}") from error
    return dict(content)


def _read(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"The card {file} is not valid YAML in UTF-8: {reason}.") from error


def _require(origin: str, what: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        wanted = "a text" if kind is str else "a mapping of names to values"
        raise UserError(f"{origin} has a mistake: {what} must be {wanted}, not {value!r}.")
