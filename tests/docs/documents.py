"""The Markdown that people read: fenced blocks, links, anchors, and the commands that it shows."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from smmd_bench.cli import cli

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"^( *)(```+) *(\w*)[^\n]*\n(.*?)^ *\2 *$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
_COMMAND = re.compile(r"^(?:\$ )?smmd-bench ")
OUTSIDE_THE_SITE = ("CONTRIBUTING.md", "SECURITY.md", "examples/README.md")
"""Pages for people who read the repository."""


def documents() -> list[Path]:
    """All pages that link to each other."""
    others = ("README.md", "CHANGELOG.md", "benchmarks/README.md")
    pages = [ROOT / name for name in (*OUTSIDE_THE_SITE, *others)]
    for folder in ("docs", "examples/*", "experiments/*"):
        pages += sorted(ROOT.glob(f"{folder}/*.md"))
    return pages


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a page: language and text."""
    for match in _FENCE.finditer(text):
        yield match[3], match[4]


def links(text: str) -> list[str]:
    """The targets of links and pictures, outside of fences and code."""
    return _LINK.findall(
        re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "code", _FENCE.sub("", text))
    )


def anchors(text: str) -> set[str]:
    """What the headings of a page are called by GitHub and by the site."""
    names = set()
    for heading in re.findall(
        r"^#{1,6} +(.+?) *#*$", _FENCE.sub("", text), re.MULTILINE
    ):
        words = (
            re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        )
        names.add(re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-"))
    return names


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every `smmd-bench` command of the pages and of the commands' own help: where, and its words
    after the shell's reading."""
    for page in documents():
        if page.name != "CHANGELOG.md":
            for language, text in blocks(page.read_text(encoding="utf-8")):
                if language != "python":
                    yield from _commands(str(page.relative_to(ROOT)), text)

    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        yield from _commands(
            f"{name} --help", (command.help or "").partition("Examples:")[2]
        )


def _commands(place: str, text: str) -> Iterator[tuple[str, list[str]]]:
    for line in re.sub(r"\\\n *", "", text).splitlines():
        if _COMMAND.match(line.strip()):
            for part in re.split(r"[;&|]+", line.strip(" $")):
                words = shlex.split(part, comments=True)
                if words[:1] == ["smmd-bench"]:
                    yield place, words[1 : words.index(">") if ">" in words else None]
