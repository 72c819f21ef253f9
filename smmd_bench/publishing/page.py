"""The one self-contained page of a run: verdict, tables, figures, completions to search.

RUN/reports/index.html     all of it in one file
RUN/reports/failed.json    the reports that raised, if any, with their tracebacks

Nothing is fetched from a network, everything that comes from a model or a file is escaped, and
only the script of the folder `web` may run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contracts import Artefact
from ..storage.cell import BASE
from ..storage.files import read_own_json, write_json, write_text
from .examples import embedded_examples
from .style import loss_label, model_label, task_label
from .tables import as_text, bold_cells, is_numeric, split_constant

if TYPE_CHECKING:
    import pandas as pd

    from ..results.frames import RunFrames

FAILED = "failed.json"
NAMED = 6
"""Losses, tasks and models that the title names; of more it counts the others."""
_STATES = ("done", "failed", "skipped", "pending")


@dataclass(frozen=True)
class Section:
    """A report of a run: its artefact and files, or why it has none.

    order: the report's, by which sections are sorted. Once written, an artefact has no `figure` and
    no `data`: they are in the files.
    """

    name: str
    title: str
    paper: str
    order: int = 100
    artefact: Artefact | None = None
    files: tuple[Path, ...] = ()
    skipped: str | None = None
    error: str | None = None
    traceback: str | None = None

    @property
    def table(self) -> pd.DataFrame | None:
        """The table, if there is one."""
        return None if self.artefact is None else self.artefact.table

    @property
    def caption(self) -> str:
        """What stands below the table or figure."""
        return "" if self.artefact is None else self.artefact.caption

    @property
    def image(self) -> Path | None:
        """The figure as PNG, if it was written."""
        return self.file(".png")

    def file(self, suffix: str) -> Path | None:
        """The first of its files with that ending, if there is one."""
        return next((path for path in self.files if path.suffix == suffix), None)


def write_page(run: RunFrames, sections: Sequence[Section]) -> Path:
    """Write the page of the reports that were made, and `failed.json` if any of them raised."""
    folder = run.path / "reports"
    html = render_page(run, sections, embedded_examples(run))
    write_text(folder / "index.html", html)

    failed = {}
    for section in sections:
        if section.error:
            failed[section.name] = {
                "error": section.error,
                "traceback": section.traceback,
            }
    # A file of an earlier page would tell of failures that are mended.
    (folder / FAILED).unlink(missing_ok=True)
    if failed:
        write_json(folder / FAILED, failed)
    return folder / "index.html"


def failed_reports(folder: Path) -> dict[str, str]:
    """Read the error of each report that the last `write_page` of a run could not show."""
    failed = read_own_json(folder / "reports" / FAILED) or {}
    return {name: content["error"] for name, content in failed.items()}


def _make_environment(run: RunFrames) -> Any:
    """Make the Jinja environment of the page: HTML is escaped, a misspelled name raises."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("smmd_bench", "publishing/web"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(
        picture=_encode_picture,
        table=_lay_out_table,
        link=lambda file: file.relative_to(run.path / "reports").as_posix(),
    )
    return environment


def render_page(
    run: RunFrames, sections: Sequence[Section], examples: Mapping[str, Any]
) -> str:
    """Render the HTML of the page; `examples` is what `embedded_examples` gives."""
    from markupsafe import Markup

    manifest = run.manifest
    # The command names no folder above `runs`, so that the page is the same anywhere.
    path = run.path.resolve()
    place = f"runs/{path.name}" if path.parent.name == "runs" else path.name

    # A note that several reports give stands once.
    notes: list[str] = []
    for section in sections:
        if section.artefact is not None:
            notes += section.artefact.notes

    # The browser runs the script whose digest the page's policy names, and no other.
    script = _read_text("page.js")
    digest = hashlib.sha256(script.encode()).digest()
    text = json.dumps(examples, ensure_ascii=False)

    # Packed, since the page must open on a phone; without a time it follows from the run alone.
    packed = gzip.compress(text.encode(), 6, mtime=0)

    displayed = [section for section in sections if section.skipped is None]
    statuses = run.cells["status"].value_counts()
    template = _make_environment(run).get_template("page.html.jinja")
    page: str = template.render(
        name=path.name,
        title=name_comparison(run),
        run=manifest,
        report_command=shlex.join(["smmd-bench", "report", place]),
        manifest=json.dumps(manifest, indent=1, ensure_ascii=False),
        counts=statuses.reindex(_STATES, fill_value=0).to_dict(),
        parts={
            "Tables": [section for section in displayed if section.image is None],
            "Figures": [section for section in displayed if section.image is not None],
        },
        notes=[*dict.fromkeys(notes)],
        skipped=[section for section in sections if section.skipped is not None],
        cells=run.cells.to_dict("records"),
        examples=examples,
        packed=_encode(packed),
        # Not escaped: style and script are ours, and hold nothing of a run.
        style=Markup(_read_text("page.css")),
        script=Markup(script),
        digest=_encode(digest),
    )
    return page


def name_comparison(run: RunFrames) -> str:
    """Say what was compared: `CE, NTL, SMMD on arithmetic · builtin/tiny`."""
    # The untuned model was not compared.
    compared = run.cells[run.cells["loss"] != BASE]
    losses = _name_some(compared["loss_name"], loss_label)
    tasks = _name_some(run.cells["task"], _name_task)
    return f"{losses} on {tasks} · {_name_some(run.cells['model'], model_label)}"


def _name_task(spec: str) -> str:
    """`arithmetic` of `arithmetic[level=hard]`; a table's title, which may have brackets, whole."""
    label = task_label(spec)
    return spec.partition("[")[0] if label == spec else label


def _name_some(values: pd.Series[str], label: Callable[[str], str]) -> str:
    """Name the values of a column, of many the first ones."""
    names = [label(str(value)) for value in values.unique()]
    words = [*dict.fromkeys(names)]
    if len(words) > NAMED + 1:
        words = [*words[:NAMED], f"{len(words) - NAMED} more"]
    return ", ".join(words)


def _read_text(file: str) -> str:
    """Read a style sheet or script of the folder `web`."""
    return (resources.files(__package__) / "web" / file).read_text(encoding="utf-8")


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _encode_picture(section: Section) -> str:
    """Encode the figure as a data URI, as SVG or PNG, whichever is smaller."""
    files = filter(None, (section.file(".svg"), section.file(".png")))
    # A scatter of many points is larger as SVG, a chart of bars as PNG.
    file = min(files, key=lambda file: file.stat().st_size)
    kind = "svg+xml" if file.suffix == ".svg" else "png"
    return f"data:image/{kind};base64,{_encode(file.read_bytes())}"


def _lay_out_table(frame: pd.DataFrame) -> dict[str, Any]:
    """Lay a table out: columns (name, CSS classes), rows of cells (text, whether bold, links).

    constant: what the columns say that never change.
    """
    columns, constant = split_constant(as_text(frame))
    bold = bold_cells(frame)
    links = frame.attrs.get("links", {})
    rows = []
    for place, row in enumerate(columns.to_dict("records")):
        cells = []
        for name, cell in row.items():
            # Marks and links name a cell by its row and column, as `tables` says.
            key = (place, name)
            cells.append((cell, key in bold, links.get(key)))
        rows.append(cells)
    # The column that says whose row it is stays in view where a table scrolls.
    heads = ("Loss", "Category", columns.columns[0])
    head = next(name for name in heads if name in columns)
    classes = {}
    for name in columns:
        kinds = ["number"] * is_numeric(columns[name]) + ["head"] * (name == head)
        classes[name] = " ".join(kinds)
    return {
        "columns": [*classes.items()],
        "rows": rows,
        "constant": constant,
    }
