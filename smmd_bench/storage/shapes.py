"""What the JSON files of a run hold, as far as they are read: a run folder may come from anywhere.

A shape is a type or several, a mapping of names to shapes ("name?": it may be absent or null; "*":
every other name), a list with the shape of its items, or a check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .files import DamagedError


def _integer(value: object) -> bool:
    """An integer that a column of a frame can hold."""
    return isinstance(value, int) and abs(value) < 2**63


def _number(value: object) -> bool:
    """A number that a column of a frame can hold, or null."""
    small = isinstance(value, int) and abs(value) < 2**63
    return value is None or small or (isinstance(value, float) and math.isfinite(value))


_SIZES = {"*": _integer}
_ADDRESSES = {
    "train": str,
    "decode": str,
    "measure": str,
    "validate?": str,
    "select?": str,
    "beams?": str,
}
_CELL = {
    "address": str, "addresses": _ADDRESSES, "model": str, "model_label?": str, "task": str,
    "task_name?": str, "loss": str, "loss_name?": str, "seed": _integer, "params?": _integer,
    "recipe?": dict, "trained_on?": str, "source?": str, "reference?": str, "identity?": dict,
    "data?": {"sizes?": _SIZES, "identity?": dict}, "plugins?": {"*": str}, "trials?": [str],
    "trial_stages?": [{"select": str, "decode": str}], "trial?": str,
    "grid?": [{"text": str, "loss": str, "settings": dict}],
}  # fmt: skip
_MADE_HERE = {
    "data": {"licence": str, "sizes": _SIZES, "there": _SIZES, "identity": dict},
    "generation": dict,
    "plugins": dict,
}
_COMPARED = {
    "difference": _number, "low": _number, "high": _number, "p": _number, "b?": _integer,
    "c?": _integer, "jackknife?": [_number],
}  # fmt: skip
_COMPARISON = {
    "metrics": {"*": _COMPARED},
    "mcnemar?": {"b": _integer, "c": _integer, "p": _number},
}
_SHAPES: Mapping[str, Any] = {
    "manifest": {
        "cells?": [str], "trials?": [str],
        "experiment?": {"*": (str, int, list, dict, type(None))}, "flags?": [str],
        "plugin_paths?": {"*": str},
        "name?": str, "versions?": dict, "data?": {"*": dict},
    },
    "cell": _CELL,
    "train": {"epochs": [{"epoch": _integer, "weights": str}]},
    "selection": {
        "metric": str, "best_epoch": _integer, "epochs": [{"epoch": _integer, "*": _number}],
    },
    "choice": {
        "metric": str, "chosen": str,
        "trials": [{
            "address": str, "text": str, "epoch": _integer,
            "value": _number, "low": _number, "high": _number, "n": _integer,
        }],
    },
    "metrics": {"metrics": {"*": {"value": _number, "low": _number, "high": _number}}},
    "comparison": _COMPARISON,
    "noise": _COMPARISON,
    "FAILED": {"stage?": str, "error?": str},
    "canary": {"epoch": _integer, "weights": str},
}  # fmt: skip


def require_shape(content: Any, file: Path) -> None:
    """Raise DamagedError where the content of a file of a run is not what is read of it."""
    wrong = _wrong(content, _SHAPES.get(file.stem, {}), "")
    if not wrong and file.stem == "cell" and content.get("identity") is not None:
        wrong = _wrong(content, _MADE_HERE, "")
    if wrong:
        raise DamagedError(file, f"not what this package writes (see {wrong})")


def _wrong(value: Any, shape: Any, where: str) -> str | None:
    """The place of the first value that has another shape; None: there is none."""
    if isinstance(shape, (type, tuple)):
        return None if isinstance(value, shape) else where
    if isinstance(shape, list):
        items = enumerate(value) if isinstance(value, list) else ()
        inner = (_wrong(item, shape[0], f"{where}[{at}]") for at, item in items)
        return next(filter(None, inner), None) if isinstance(value, list) else where
    if not isinstance(shape, Mapping):
        return None if shape(value) else where
    if not isinstance(value, dict):
        return where
    named = {name.removesuffix("?") for name in shape}
    for name, part in shape.items():
        key = name.removesuffix("?")
        if name == "*":
            others = ((k, v) for k, v in value.items() if k not in named)
            found = next(filter(None, (_wrong(v, part, f"{where}[{k}]") for k, v in others)), None)
        elif name.endswith("?") and value.get(key) is None:
            continue
        else:
            found = _wrong(value.get(key), part, f"{where}[{key}]" if where else key)
        if found:
            return found
    return None
