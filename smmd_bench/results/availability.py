"""What a finished run still needs: its plugins, their code, and the weights of its models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UserError
from ..models.cards import ModelCard, card_at, model_card
from ..plugin_system.parameters import split_spec
from ..plugin_system.plugin_source import source_digest
from ..plugin_system.registry import Group, entry, names, own_points, singular
from ..storage.cell import BASE

if TYPE_CHECKING:
    from ..contracts import Run


def require_plugins(run: Run) -> None:
    """Raise UserError where the run was made with a task or loss that is not here."""
    cells = run.manifest.get("cells") or ()
    lacking = {cell["task_name"] for cell in cells} - {*names("tasks")}
    # The losses of completions made elsewhere are labels.
    if "predictions" not in run.manifest:
        lacking |= {cell["loss_name"] for cell in cells} - {BASE, *names("losses")}
    if lacking:
        listed = ", ".join(sorted(lacking))
        raise UserError(
            f"{run.path} was made with plugins that are not here ({listed}): name their files with "
            f"--plugin; {run.path / 'plugins'} has copies."
        )


def describe_old_code(run: Run) -> list[str]:
    """A note for each plugin whose code has changed since cells of the run were made with it."""
    digests_then: dict[tuple[Group, str], set[str | None]] = {}
    for cell in run.manifest.get("cells") or ():
        if "plugins" not in cell:  # completions made elsewhere
            continue
        engine, _ = split_spec(cell["engine"])
        used: dict[Group, str] = {
            "tasks": cell["task_name"],
            "losses": cell["loss_name"],
            "engines": engine,
        }
        for group, name in used.items():
            digest = cell["plugins"].get(f"{singular(group)} {name}")
            digests_then.setdefault((group, name), set()).add(digest)

    notes = []
    for (group, name), digests in digests_then.items():
        # `require_plugins` says what results need; an engine they do not.
        if name not in names(group):
            continue
        if digests != {_digest_here(group, name)}:
            notes.append(
                f"The code of the {singular(group)} {name} is another one than that of the run: "
                "its numbers are of the old code until the run's command makes them again."
            )
    return notes


def _digest_here(group: Group, name: str) -> str | None:
    if name in own_points(group):  # not imported: torch takes seconds
        return None
    plugin = entry(group, name).plugin
    return None if plugin is None else source_digest(plugin)


def card_of_run(name: str, run: Run) -> ModelCard:
    """Find the model of the run. Raises UserError if its weights have changed since."""
    identity = (run.manifest.get("models") or {}).get(name)
    if identity is None:
        return model_card(name)

    if "hub" in identity:
        card = model_card(f"{identity['hub']}@{identity['commit']}")
    else:
        card = card_at(name, _find_path(name, run))
    # A name may lead to other weights by now; those of the run are told by their digest.
    if dict(card.identity) == identity:
        return replace(card, name=name)
    raise UserError(
        f"The model {name} in {card.folder} has changed since {run.path} was made: put the old "
        "files back there, or train again into another run."
    )


def _find_path(name: str, run: Run) -> str | None:
    """Find the folder that a run's command gave a model; None: the name says it."""
    for cell in run.manifest.get("cells") or ():
        if cell["model"] == name and cell.get("model_path"):
            return str(cell["model_path"])
    return None


def describe_retraining(run: Path) -> str:
    """Say how to have the weights of a measured cell back."""
    return f"the command of {run} with --restore-weights trains them again"
