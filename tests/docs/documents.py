"""The Markdown that people read: fenced blocks, links, and the anchors that headings make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUTSIDE_THE_SITE = ("CONTRIBUTING.md", "SECURITY.md", "examples/README.md")
"""Pages for people who read the repository."""
_FENCE = re.compile(r"^( *)(```+|~~~+) *(\w*)[^\n]*\n(.*?)^ *\2 *$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language ("": none is said), its text, its first line's number."""

    language: str
    text: str
    line: int


def documents() -> list[Path]:
    """All pages that link to each other."""
    others = (*OUTSIDE_THE_SITE, "README.md", "CHANGELOG.md", "benchmarks/README.md")
    pages = [ROOT / name for name in others if (ROOT / name).is_file()]
    return [*pages, *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("examples/*/*.md"))]


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    for match in _FENCE.finditer(text):
        yield Block(match[3], match[4], text.count("\n", 0, match.start(4)) + 1)


def links(text: str) -> list[str]:
    """The targets of links and pictures, outside of fences and code."""
    prose = _FENCE.sub("", text)
    code = [match.span() for match in _CODE.finditer(prose)]
    return [
        match[1]
        for match in _LINK.finditer(prose)
        if not any(start <= match.start() and match.end() <= end for start, end in code)
    ]


def anchors(text: str) -> set[str]:
    """What the headings of a page are called by GitHub, and by the site: both must agree."""
    found: dict[str, int] = {}
    names = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        count = found[name] = found.get(name, -1) + 1
        names.add(name if count == 0 else f"{name}-{count}")
    return names
