"""How the command line names reports and formats: `table2`, `figure3`; `latex`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..errors import UserError, did_you_mean
from ..plugin_system.registry import entry, names

SPELLINGS = {
    "csv": "csv", "markdown": "md", "latex": "tex", "png": "png", "pdf": "pdf", "svg": "svg",
}  # fmt: skip
"""How `--format` spells a format, and the ending of its files."""
_NUMBER = re.compile(r"(?:Table|Figure) \d+(?: \([a-z]\))?")


def require_reports(only: Iterable[str]) -> None:
    """Raise UserError for the first of these that names no report."""
    papers = {n: str(getattr(entry("reports", n).plugin, "paper", "")) for n in names("reports")}
    reports_named(only, papers if only else {})


def require_formats(asked: Iterable[str]) -> None:
    """Raise UserError for the first of these that is no format."""
    for name in asked:
        if name not in SPELLINGS:
            raise UserError(f"Unknown format '{name}': {did_you_mean(name, SPELLINGS)}")


def reports_named(only: Iterable[str], papers: Mapping[str, str]) -> list[str]:
    """The reports with these names, each once; `papers`: what each report shows of the paper.

    Raises UserError for an unknown name.
    """
    numbers = {name: _paper_name(paper) for name, paper in papers.items()}
    found: dict[str, None] = {}
    for asked in only:
        plain = _plain(asked)
        known = [
            name
            for name, paper in numbers.items()
            if asked == name or (paper and plain in (paper, paper.rstrip("ab")))
        ]
        if not known:
            spelled = [*papers, *sorted(filter(None, numbers.values()))]
            raise UserError(f"Unknown report '{asked}': {did_you_mean(asked, spelled)}")
        found |= dict.fromkeys(known)
    return [*found]


def _paper_name(paper: str) -> str:
    """`figure3a` of "Figure 3 (a)", `figure4` of "Figure 4 (Appendix C.1)"; empty: no number."""
    found = _NUMBER.match(paper)
    return _plain(found[0]) if found else ""


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
