"""The models that have a card here: built-in checkpoints, and the paper's backbones on the hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import yaml

from .card_content import backbones


@dataclass(frozen=True)
class ListedModel:
    """A model's name and what its card says; sizes are micro-batches by GPU memory in GB."""

    name: str
    summary: str
    micro_batch_sizes: Mapping[str, int] = field(default_factory=dict)


def listed_models() -> list[ListedModel]:
    """Built-in ones first."""
    found = []
    for card in sorted(Path(str(files("smmd_bench.models") / "builtin")).glob("*/card.yaml")):
        content = yaml.safe_load(card.read_text(encoding="utf-8"))
        found.append(ListedModel(f"builtin/{card.parent.name}", content["summary"]))
    for name, content in backbones().items():
        summary = (
            f"{content['label']}, {content['params']}, N={content['numeric_tokens']}, "
            f"{content['settings']['dtype']}"
        )
        sizes = {str(gb): size for gb, size in content["micro_batch_sizes"].items()}
        found.append(ListedModel(name, summary, sizes))
    return found
