"""The models that have a card here: built-in checkpoints, and the paper's backbones on the hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .card_content import backbones, builtin_folders, card_content


@dataclass(frozen=True)
class ListedModel:
    """A model's name and what its card says; sizes are micro-batches by GPU memory in GB."""

    name: str
    summary: str
    micro_batch_sizes: Mapping[str, int] = field(default_factory=dict)


def listed_models() -> list[ListedModel]:
    """Built-in ones first."""
    found = [
        ListedModel(name, card_content(folder / "card.yaml").summary)
        for name, folder in builtin_folders().items()
    ]
    for name, card in backbones().items():
        tokens = f"N={card.numeric_tokens}" if card.numeric_tokens else ""
        known = (card.label or "", card.params, tokens, card.recipe_of("").dtype)
        summary = ", ".join(filter(None, known))
        sizes = {str(gb): size for gb, size in card.micro_batch_sizes.items()}
        found.append(ListedModel(name, summary, sizes))
    return found
