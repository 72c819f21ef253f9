"""One call of a documented command, small enough for a test, in this process.

What is appended to a command (the last of two equal options counts) is in `SMALL`; what a word of
it stands for is in `WORDS`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import click

from smmd_bench.cli import cli
from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.parameters import split_list
from tests.in_process import as_a_process

from .commands import Command, repository

_DATA = ("--data-dir", str(repository("tests/data")))
_RECIPE = (
    "--train-examples=24", "--validation-examples=4", "--test-examples=8", "--epochs=1",
    "--engine=transformers", "--executor=in_process",
)  # fmt: skip
SMALL: dict[str, tuple[str, ...]] = {
    "train-eval": _RECIPE,
    "run": ("--executor=in_process",),
    "regress": ("--limit=1", "--losses=ce", "--executor=in_process", "--data-dir=DIR"),
    "score": ("--limit=8",),
    "overhead": (
        "--losses=ce", "--geometry=tiny", "--steps=2", "--drop=1", "--repeats=1",
        "--batch-size=2", "--length=32", "--device=cpu", "--threads=1",
        "--numeric-tokens=10",
    ),
    "sample": (),
}  # fmt: skip
WORDS: dict[str, tuple[str, ...]] = {
    "...": ("--task", "arithmetic", "--losses", "ce,smmd"),
    "0,1,2": ("0",),  # seeds
    "ce,ntl,smmd": ("ce,smmd",),
    "ce,gce,ntl,ntil,smmd": ("ce,smmd",),
    "runs/arithmetic_tiny_ce_ntl_smmd_1a2b3c": ("runs/NAME",),
    "smmd,numeric_ce,brier": ("smmd,ce",),
    "smmd,numeric_ce,brier,smmd[kernel=shuffled]": ("smmd,ce",),
    "mmlu": ("mmlu_anatomy,samsum",),  # one of the 57 subjects
    "mmlu,samsum": ("mmlu_anatomy,samsum",),
}
_FETCHED = ("gsm8k", "svamp", "samsum")


def small(command: Command, folder: Path) -> list[str]:
    """The words of a command as it is called here, in `folder`."""
    words = [word for given in command.words for word in WORDS.get(given, (given,))]
    words = [word.replace("s3://bucket", f"file://{folder}/bucket") for word in words]
    name = words[0]
    prints = {"--print-yaml", "--print-flags"} & {*words}
    words += [w for w in SMALL.get(name, ()) if not (prints and w.startswith("--executor"))]
    if name not in ("regress", "train-eval") and any(w in _FETCHED for w in words):
        words += _DATA  # builtin/tiny is trained on problems and dialogues made here
    if name == "sample" and "-n" in words:
        at = words.index("-n") + 1
        words[at] = str(min(20, int(words[at])))
    if name == "validate":  # a plugin of one's own that is meant to be installed
        words += [
            f"--plugin={word}.py"
            for word in words[1:]
            if (folder / f"{word}.py").is_file() and word not in _installed()
        ]
    if name == "show":  # the beginning of an address
        words = [_address(folder) if word == "3f9c" else word for word in words]
    return words


def meaning(words: Sequence[str], folder: Path) -> str:
    """Equal for two calls in `folder` that do the same; click.UsageError: it cannot be read."""
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None, f"there is no command {words[0]}"
    with contextlib.ExitStack() as stack:
        stack.enter_context(as_a_process(folder))
        context = command.make_context(words[0], list(words[1:]))
    return f"{words[0]} {sorted(context.params.items(), key=str)}"


def losses_exist(command: Command) -> None:
    """Load the losses that a command names, where fewer are trained or measured here."""
    if "--losses" in command.words:
        for spec in split_list(command.words[command.words.index("--losses") + 1]):
            if spec != "base":
                registry.load_loss(spec)


def _installed() -> set[str]:
    return {name for group in registry.GROUPS for name in registry.names(group)}


def _address(folder: Path) -> str:
    cells = sorted((folder / "runs" / "NAME" / "cells").iterdir())
    return next(c.name for c in cells if (c / "checkpoint").is_dir())[:8]
