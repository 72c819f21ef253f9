"""What a shell completes besides commands and options, which click completes by itself.

The completers are for click's `shell_complete`. Nothing here imports a first-party plugin.
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

Known = Callable[[str], Mapping[str, str]]
"""Names, each with what it is, for a word that is typed."""
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(known: Known, otherwise: str | None = None) -> Complete:
    """Completes known names: in a list with commas, or else a path, a "file" or "dir"."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = ("", "", incomplete) if otherwise else incomplete.rpartition(",")
        found = [
            CompletionItem(f"{before}{comma}{name}", help=text or None)
            for name, text in known(incomplete).items()
            if name.startswith(last) and name not in before.split(",")
        ]
        if incomplete.count("[") > incomplete.count("]"):  # within the brackets of a plugin
            found = []
        return found or ([CompletionItem(incomplete, type=otherwise)] if otherwise else [])

    return complete


def _plugins(*groups: Group) -> dict[str, str]:
    from ..plugin_system.listing import own_summaries
    from ..plugin_system.registry import names

    known: dict[str, str] = {}
    for group in groups:
        known |= {**dict.fromkeys(names(group), ""), **own_summaries(group)}
    return known


def _plugins_and_groups(_: str) -> dict[str, str]:
    from ..plugin_system.registry import GROUPS

    return {**dict.fromkeys(GROUPS, ""), **_plugins(*GROUPS)}


def _models(_: str) -> dict[str, str]:
    from ..models.card_content import listed_models

    return {model.name: model.summary for model in listed_models()}


def _runs(incomplete: str) -> dict[str, str]:
    """Folders with a manifest: in `runs/`, or in the folder that the word begins with."""
    typed = Path(incomplete)
    folder = typed if incomplete.endswith(os.sep) else typed.parent
    places = [folder] if os.sep in incomplete else [Path("runs"), Path()]
    return {str(file.parent): "" for place in places for file in place.glob("*/manifest.json")}


tasks = _completer(lambda _: _plugins("tasks"))
losses = _completer(lambda _: _plugins("losses"))
run_losses = _completer(lambda _: {"base": "the untuned model", **_plugins("losses")})
engines = _completer(lambda _: _plugins("engines"))
executors = _completer(lambda _: _plugins("executors"))
models = _completer(_models, otherwise="dir")
plugins_and_files = _completer(_plugins_and_groups, otherwise="file")
runs = _completer(_runs, otherwise="dir")
