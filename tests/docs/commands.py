"""Every `smmd-bench` command that the documentation shows, and whether it can be run here.

A command that needs a GPU, a bucket or the hub says so in a comment: at the end of its line, alone
in the next line, or alone in the first line of its block, where it counts for the whole block.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from smmd_bench.cli import cli

from .documents import ROOT, blocks, documents

_MARK = re.compile(r"#.*\b(?:wants|needs) (a GPU|the hub|a bucket)\b")
_COMMENT = re.compile(r"(?:^|\s)# .*$")
_COMMAND = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*smmd-bench ")
_LANGUAGES = ("", "bash", "sh", "console", "text")


@dataclass(frozen=True)
class Command:
    """One call, as it is written, without its comment. `page` and `line` say where.

    words: after the shell's reading, without `smmd-bench`. output: the file of a `>`, if any.
    """

    page: str
    line: int
    text: str
    words: tuple[str, ...]
    output: str | None
    marked: bool

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def documented() -> list[Command]:
    """The commands of the pages, of the commands' own help, and of the examples' docstrings."""
    found = []
    for page in documents():
        name = str(page.relative_to(ROOT))
        if name == "docs/cli.md":  # made from the help texts, which are read below
            continue
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language in _LANGUAGES:
                found += _commands(name, block.line, block.text)
    context = click.Context(cli, info_name="smmd-bench")
    for name in ["", *cli.list_commands(context)]:
        command = cli.get_command(context, name) if name else cli
        assert command is not None
        _, _, examples = (command.help or "").partition("Examples:")
        found += _commands(f"smmd-bench {name} --help".replace("  ", " "), 1, examples)
    for file in sorted(ROOT.glob("examples/**/*.py")):
        docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        found += _commands(str(file.relative_to(ROOT)), 1, docstring)
    return found


def _commands(page: str, first: int, text: str) -> Iterator[Command]:
    lines = text.splitlines()
    whole = bool(lines) and lines[0].lstrip().startswith("#") and bool(_MARK.search(lines[0]))
    at = 0
    while at < len(lines):
        start, line = at, lines[at].strip()
        at += 1
        if not _COMMAND.match(line):
            continue
        while _COMMENT.sub("", line).rstrip().endswith("\\"):
            line = f"{line.rstrip()[:-1]} {lines[at].strip()}"
            at += 1
        after = lines[at].strip() if at < len(lines) and lines[at].lstrip()[:1] == "#" else ""
        marked = whole or bool(_MARK.search(line)) or bool(_MARK.search(after))
        for part in re.split(r"\s*(?:;|&&)\s*", _COMMENT.sub("", line).strip(" &$")):
            words = shlex.split(part, comments=True)
            if "smmd-bench" not in words:
                continue
            call = words[words.index("smmd-bench") + 1 :]
            output = None
            if ">" in call:
                output = call[call.index(">") + 1]
                call = call[: call.index(">")]
            yield Command(page, first + start, part, tuple(call), output, marked)


def page_names(commands: list[Command]) -> list[str]:
    """The places where commands stand, in order."""
    return list(dict.fromkeys(command.page for command in commands))


def repository(name: str) -> Path:
    """A path of the repository."""
    return ROOT / name
