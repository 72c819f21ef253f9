"""The weights that a run was made from, and those that it has lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import UserError
from ..models.cards import ModelCard, card_at, model_card
from .frames import RunFrames


def again(run: Path) -> str:
    """How to have the weights of a measured cell back."""
    return f"the command of {run} with --restore-weights trains them again"


def card_of_run(name: str, run: RunFrames) -> ModelCard:
    """The model of the run. Raises UserError if its weights have changed since."""
    then = (run.manifest.get("models") or {}).get(name)
    if then is None:
        return model_card(name)
    places = (said.get("model_path") for said in run.rows if said["model"] == name)
    own = next(filter(None, places), None)
    card = model_card(f"{then['hub']}@{then['commit']}") if "hub" in then else card_at(name, own)
    if dict(card.identity) == then:
        return replace(card, name=name)
    raise UserError(
        f"The model {name} in {card.folder} has changed since {run.path} was made, so that its "
        "checkpoints belong to other weights: put the old files back there, or train again into "
        "another run."
    )
