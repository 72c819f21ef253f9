"""Which models suit which tasks and engines: decided before anything is planned."""

from __future__ import annotations

from collections.abc import Iterable

from ..contracts import Modality
from ..errors import UserError
from ..models.cards import ModelCard
from ..models.recipe import Recipe
from ..models.tokenizers import reads_images
from ..plugin_system.registry import load_engine, load_task

INSTEAD = "transformers"
"""The engine that decodes what another one refuses."""
DEFAULT_MODELS = {Modality.TEXT: "builtin/tiny", Modality.VISION: "builtin/tiny-vl"}
"""What is trained where no model is named, by what the tasks' prompts are made of."""


def default_model(tasks: Iterable[str]) -> str:
    """The built-in model for tasks, where none is named. Raises UserError where some tasks are text
    and others vision: none suits both."""
    first: dict[Modality, str] = {}
    for spec in tasks:
        first.setdefault(load_task(spec).modality, spec)

    # The built-in model that reads pictures has learnt no arithmetic.
    if len(first) > 1:
        raise UserError(
            f"{first[Modality.TEXT]} is a text task and {first[Modality.VISION]} a vision task, so "
            "no built-in model suits both: name one that reads images, or run them apart."
        )
    return DEFAULT_MODELS[next(iter(first), Modality.TEXT)]


def require_images(task: str, card: ModelCard) -> None:
    """Raise UserError where a task has images and the model takes none."""
    if load_task(task).modality is Modality.VISION and not reads_images(card.folder):
        raise UserError(
            f"The task {task} has images, and the model {card.name} reads text only: take one that "
            f"reads images, such as {DEFAULT_MODELS[Modality.VISION]}."
        )


def require_compilable(task: str, recipe: Recipe) -> None:
    """Raise UserError where layers are to be compiled together with what was never tried."""
    if not recipe.compile:
        return
    if recipe.gradient_checkpointing:
        raise UserError(
            "compile and gradient_checkpointing are not tried together: leave one out."
        )
    if load_task(task).modality is Modality.VISION:
        raise UserError(
            f"compile is not tried with pictures, which {task} has: leave it out."
        )


def refusal(engine: str, card: ModelCard) -> str | None:
    """Why an engine cannot run a model; None: it can, for all that it says."""
    # The method is optional in the contract of engines.
    refuses = getattr(load_engine(engine), "refuses", None)
    return None if refuses is None else refuses(card.folder)
