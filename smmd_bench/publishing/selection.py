"""Some of a run's artefacts, in some formats; the page and the other files stay as they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ..contracts import Progress
from ..errors import UserError, did_you_mean
from ..plugin_system.registry import entries
from ..results.frames import read_run
from .processes import made_reports
from .publish import FORMATS, Section
from .run import forget_publication, is_stale
from .up_to_date import compare_what_is_missing

SPELLINGS = {"csv": "csv", "markdown": "md", "latex": "tex", "png": "png", "pdf": "pdf"}
"""How `--format` spells a format, and the ending of its files."""


def publish_some(
    folder: Path,
    only: Sequence[str],
    formats: Collection[str] = FORMATS,
    progress: Progress = lambda *_: None,
) -> tuple[list[Section], list[Path]]:
    """Make the reports that `only` names (none: all); returns them and the files written.

    A name is a report's or the paper's: `arithmetic_table`, `table2`, `figure3`. `formats` are
    endings. Raises UserError for an unknown name, and where there is nothing to make.
    """
    compare_what_is_missing(folder)
    if is_stale(folder):  # what is made now must not count for the others
        forget_publication(folder)
    run = read_run(folder)
    plugins: dict[str, Any] = {e.name: e.plugin for e in entries("reports") if e.plugin}
    papers = {name: _numbered(str(plugin.paper)) for name, plugin in plugins.items()}
    names: dict[str, None] = {}
    for asked in only or plugins:
        known = [n for n in plugins if asked == n or _is_in(_plain(asked), papers[n])]
        if not known:
            spelled = [*plugins, *sorted(filter(None, papers.values()))]
            raise UserError(f"Unknown report '{asked}': {did_you_mean(asked, spelled)}")
        names |= dict.fromkeys(known)
    sections = made_reports(run, list(names), progress, formats)
    written = [path for section in sections for path in section.files]
    if not written and not any(section.error for section in sections):
        reasons = "; ".join(f"{s.name}: {s.skipped or _NONE}" for s in sections)
        raise UserError(f"Nothing was made of {folder}: {reasons}.")
    return sections, written


_PAPER = re.compile(r"(?:Table|Figure) \d+(?: \([a-z]\))?")
_NONE = "it has none of these formats"


def _plain(text: str) -> str:
    """ "Figure 3 (a)" and "figure3a" alike."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _numbered(paper: str) -> str:
    """`figure3a` of "Figure 3 (a)", `figure4` of "Figure 4 (Appendix C.1)"; empty: no number."""
    found = _PAPER.match(paper)
    return _plain(found[0]) if found else ""


def _is_in(asked: str, paper: str) -> bool:
    """Whether a name of the paper's is that of a report, or of the figure that it is a part of."""
    return bool(paper) and asked in (paper, paper.rstrip("ab"))
