"""The published values of `paper.yaml`, by table, model, task and loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

_KEYS = ("model", "task", "loss")


@dataclass(frozen=True, slots=True)
class PaperModel:
    """A model of the paper: its key in `paper.yaml` and how the paper's tables name it."""

    key: str
    name: str
    params: str


def paper_model(model: str) -> PaperModel | None:
    """The paper's model that a hub name or a local folder is, by its last part; None: another."""
    last = model.rstrip("/").rpartition("/")[2].casefold()
    for key, entry in _content()["models"].items():
        if last in (name.casefold() for name in entry["names"]):
            return PaperModel(key, entry["name"], entry["params"])
    return None


def published(table: str, *, model: str, task: str, loss: str) -> Mapping[str, float]:
    """The published values by metric; empty where the paper's table has no such row, which only
    its own setting has: specs of another level or parameter are spelled in another way."""
    known = paper_model(model)
    if known is None:
        return {}
    for row in rows(table):
        if (row.get("model"), row["task"], row.get("loss")) == (known.key, task, loss):
            return {key: value for key, value in row.items() if key not in _KEYS}
    return {}


def is_paper_task(name: str) -> bool:
    """Whether a task, by its name, is one of the paper's."""
    return any(row.get("task") == name for table in _content()["tables"] for row in rows(table))


def rows(table: str) -> list[dict[str, Any]]:
    """The rows of a table of the paper, as printed."""
    return list(_content()["tables"][table]["rows"])


def reference(table: str) -> str:
    """How a caption refers to a table of the paper: `Table 2 of the paper`.

    What stands in the text and in no table says `where`: `Appendix C.7 of the paper`.
    """
    entry = _content()["tables"][table]
    return f"{entry.get('where') or 'Table {number}'.format(**entry)} of the paper"


@cache
def _content() -> dict[str, Any]:
    text = (files("smmd_bench.reports") / "paper.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))
