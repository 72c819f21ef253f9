"""The model of a run as it was when the run was made."""

from __future__ import annotations

from dataclasses import replace

from ..errors import UserError
from ..models.cards import ModelCard, model_card
from .frames import RunFrames


def card_of_run(name: str, run: RunFrames) -> ModelCard:
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
