"""Notes that reports share: once on the page, and once for LaTeX.

RUN/reports/tables/notes.tex   the notes of all tables, each once
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..storage.files import write_text
from .latex import escape
from .make_report import Section


def notes_of(sections: Sequence[Section]) -> Counter[str]:
    """How many of the sections have each note, in the order of the sections."""
    return Counter(note for s in sections if s.artefact for note in dict.fromkeys(s.artefact.notes))


def shared_notes(sections: Sequence[Section]) -> list[str]:
    """The notes that several sections have."""
    return [note for note, count in notes_of(sections).items() if count > 1]


def write_notes(folder: Path, sections: Sequence[Section]) -> list[Path]:
    """Write the notes of the tables for LaTeX; returns the file, or nothing where there is none."""
    notes = notes_of([s for s in sections if s.artefact and s.artefact.table is not None])
    if not notes:
        return []
    items = "".join(f"\\item {escape(note)}\n" for note in notes)
    file = folder / "reports" / "tables" / "notes.tex"
    write_text(file, f"\\begin{{itemize}}\n{items}\\end{{itemize}}\n")
    return [file]
