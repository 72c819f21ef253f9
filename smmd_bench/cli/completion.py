"""What the shell completes: names of plugins, models, groups and runs; nothing here imports torch.

The functions are for click's `shell_complete`; commands themselves are completed by click.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = {
    "bash": ("~/.bashrc", 'eval "$(smmd-bench completion bash)"'),
    "zsh": ("~/.zshrc, after compinit", 'eval "$(smmd-bench completion zsh)"'),
    "fish": ("~/.config/fish/config.fish", "smmd-bench completion fish | source"),
}
"""Where the line goes that makes a shell complete, and the line."""

_Group = Literal["tasks", "losses", "engines", "executors", "reports"]


def groups(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The groups of `smmd-bench ls`."""
    from ..plugin_system.registry import GROUPS

    return _beginning(dict.fromkeys((*GROUPS, "models"), ""), incomplete)


def tasks(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Tasks, also after the comma of a list."""
    return _in_list(_plugins("tasks"), incomplete)


def losses(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Losses, also after the comma of a list."""
    return _in_list(_plugins("losses"), incomplete)


def run_losses(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Losses and the untuned model, also after the comma of a list."""
    return _in_list({"base": "the untuned model", **_plugins("losses")}, incomplete)


def engines(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Engines."""
    return _beginning(_plugins("engines"), incomplete)


def executors(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Executors."""
    return _beginning(_plugins("executors"), incomplete)


def models(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Models that have a card, and folders."""
    from ..models.listing import listed_models

    found = _beginning({model.name: model.summary for model in listed_models()}, incomplete)
    return found or [CompletionItem(incomplete, type="dir")]


def plugins_and_files(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Plugins of every group, the groups, and files."""
    from ..plugin_system.registry import GROUPS

    known: dict[str, str] = dict.fromkeys(GROUPS, "")
    for group in GROUPS:
        known |= _plugins(group)
    return _beginning(known, incomplete) or [CompletionItem(incomplete, type="file")]


def runs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Folders with a manifest: in `runs/`, or in the folder that the word begins with."""
    typed = Path(incomplete)
    folder = typed if incomplete.endswith(os.sep) else typed.parent
    places = [folder] if os.sep in incomplete else [Path("runs"), Path()]
    found = {str(file.parent): "" for place in places for file in place.glob("*/manifest.json")}
    return _beginning(found, incomplete) or [CompletionItem(incomplete, type="dir")]


def script(shell: str) -> str:
    """click's own script for a shell, and a comment that says which line makes it permanent."""
    from . import cli

    kind = get_completion_class(shell)
    assert kind is not None
    place, line = SHELLS[shell]
    source = kind(cli, {}, "smmd-bench", "_SMMD_BENCH_COMPLETE").source()
    return f"{source.strip()}\n\n# To have it in every shell, put this line in {place}:\n# {line}\n"


def _plugins(group: _Group) -> Mapping[str, str]:
    """Names with what they are, where that is known without importing anything."""
    from ..plugin_system.listing import own_summaries
    from ..plugin_system.registry import names

    return {**dict.fromkeys(names(group), ""), **own_summaries(group)}


def _in_list(known: Mapping[str, str], incomplete: str) -> list[CompletionItem]:
    """The names that can stand where the last word of a comma-separated list begins."""
    if incomplete.count("[") > incomplete.count("]"):  # within the brackets of a plugin
        return []
    before, comma, last = incomplete.rpartition(",")
    given = set(before.split(","))
    left = {name: text for name, text in known.items() if name not in given}
    return [
        CompletionItem(f"{before}{comma}{item.value}", help=item.help)
        for item in _beginning(left, last)
    ]


def _beginning(known: Mapping[str, str], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=text or None)
        for name, text in known.items()
        if name.startswith(incomplete)
    ]
