"""An entry point into a pyproject.toml, with everything else left as it is."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress


def lines_of(group: str, name: str, value: str) -> str:
    """The lines that register a plugin, as a person would add them."""
    return f'[project.entry-points."smmd_bench.{group}"]\n{name} = "{value}"\n'


def with_entry_point(text: str, group: str, name: str, value: str) -> str | None:
    """The text with the entry point: at the end of its table, or in a new table at the end.

    None if that would not give the same content and the entry point, as with an inline table.
    """
    header = re.compile(
        rf"""^\s*\[ \s* project \s*\.\s* entry-points \s*\.\s*
        (["'])smmd_bench\.{group}\1 \s*\] [ \t]* (\#.*)? $""",
        re.MULTILINE | re.VERBOSE,
    )
    ends = "\r\n" if "\r\n" in text else "\n"
    if found := header.search(text):
        following = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, found.end())
        table = text[found.end() : following.start() if following else len(text)].rstrip()
        at = found.end() + len(table)
        changed = f'{text[:at]}{ends}{name} = "{value}"{text[at:] or ends}'
    else:
        added = lines_of(group, name, value).replace("\n", ends)
        changed = f"{text.rstrip()}{ends}{ends}{added}"
    with suppress(tomllib.TOMLDecodeError):
        wanted = tomllib.loads(text)
        points = wanted.setdefault("project", {}).setdefault("entry-points", {})
        known = points.setdefault(f"smmd_bench.{group}", {})
        if known.setdefault(name, value) is value and tomllib.loads(changed) == wanted:
            return changed
    return None
