"""What a shell completes besides commands and options, which click completes by itself.

Each function is for click's `shell_complete`. Nothing here imports a first-party plugin.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from ..plugin_system.registry import Group

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _plugins(*groups: Group, base: bool = False) -> Complete:
    """Names of plugins, also in a list with commas; `base`: and that of the untuned model."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from ..plugin_system.listing import own_summaries
        from ..plugin_system.registry import names

        if incomplete.count("[") > incomplete.count("]"):  # within the brackets of a plugin
            return []
        before, comma, last = incomplete.rpartition(",")
        known = {"base": "the untuned model"} if base else {}
        for group in groups:
            known |= {**dict.fromkeys(names(group), ""), **own_summaries(group)}
        left = {name: text for name, text in known.items() if name not in before.split(",")}
        found = _starting(left, last)
        return [CompletionItem(f"{before}{comma}{item.value}", help=item.help) for item in found]

    return complete


tasks, losses = _plugins("tasks"), _plugins("losses")
run_losses = _plugins("losses", base=True)
engines, executors = _plugins("engines"), _plugins("executors")
_every_plugin = _plugins("tasks", "losses", "engines", "executors", "reports")


def models(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Models that have a card, and folders."""
    from ..models.listing import listed_models

    found = _starting({model.name: model.summary for model in listed_models()}, incomplete)
    return found or [CompletionItem(incomplete, type="dir")]


def plugins_and_files(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Plugins of every group, the groups, and files."""
    from ..plugin_system.registry import GROUPS

    found = _starting(dict.fromkeys(GROUPS, ""), incomplete)
    found += _every_plugin(context, parameter, incomplete)
    return found or [CompletionItem(incomplete, type="file")]


def runs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Folders with a manifest: in `runs/`, or in the folder that the word begins with."""
    typed = Path(incomplete)
    folder = typed if incomplete.endswith(os.sep) else typed.parent
    places = [folder] if os.sep in incomplete else [Path("runs"), Path()]
    found = {str(file.parent): "" for place in places for file in place.glob("*/manifest.json")}
    return _starting(found, incomplete) or [CompletionItem(incomplete, type="dir")]


def _starting(known: Mapping[str, str], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=text or None)
        for name, text in known.items()
        if name.startswith(incomplete)
    ]
