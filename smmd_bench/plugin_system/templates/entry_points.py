"""An entry point into a pyproject.toml, with everything else left as it is."""

from __future__ import annotations

import re
import tomllib
from typing import Any


def lines_of(group: str, name: str, value: str) -> str:
    """The lines that register a plugin, as a person would add them."""
    return f'[project.entry-points."smmd_bench.{group}"]\n{name} = "{value}"\n'


def with_entry_point(text: str, group: str, name: str, value: str) -> str | None:
    """The text with the entry point: at the end of its table, or in a new table at the end.

    None where that would not give the same content and the entry point, as with an inline table:
    what is written is read again and compared first.
    """
    header = re.compile(
        rf"""^\s*\[ \s* project \s*\.\s* entry-points \s*\.\s*
        (["'])smmd_bench\.{group}\1 \s*\] [ \t]* (\#.*)? $""",
        re.MULTILINE | re.VERBOSE,
    )
    ends = "\r\n" if "\r\n" in text else "\n"
    new = f'{name} = "{value}"'
    if found := header.search(text):
        following = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, found.end())
        table = text[found.end() : following.start() if following else len(text)].rstrip()
        at = found.end() + len(table)
        changed = f"{text[:at]}{ends}{new}{text[at:] or ends}"
    else:
        added = lines_of(group, name, value).replace("\n", ends)
        changed = f"{text.rstrip()}{ends}{ends}{added}"
    return changed if _read(changed) == _expected(text, group, name, value) else None


def _expected(text: str, group: str, name: str, value: str) -> dict[str, Any] | None:
    content = _read(text)
    if content is None:
        return None
    points = content.setdefault("project", {}).setdefault("entry-points", {})
    table = points.setdefault(f"smmd_bench.{group}", {})
    if name in table:
        return None
    table[name] = value
    return content


def _read(text: str) -> dict[str, Any] | None:
    """None for what is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
