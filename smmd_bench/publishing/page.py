"""The one self-contained page of a run: tables, figures, completions to search.

RUN/reports/index.html     all of it in one file
RUN/reports/failed.json    the reports that raised, if any, with their tracebacks

Nothing is fetched from a network, everything that comes from a model or a file is escaped, and
only the scripts of the folder `web` may run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..plugin_system.registry import own_points
from ..scoring.categories import CATEGORIES
from ..storage.files import read_json, write_json, write_text
from .examples import embedded_examples
from .inline_svg import inline_svg, picture_uri
from .make_report import Section, describe_failure
from .notes import shared_notes
from .packing import pack
from .tables import as_text, bold_cells, constant_line, is_numeric, varying

if TYPE_CHECKING:
    import pandas as pd

    from ..results.frames import RunFrames

FAILED = "failed.json"
SCRIPTS = ("state.js", "page.js", "sorting.js")
EXAMPLE_SCRIPTS = ("reading.js", "filters.js", "slices.js", "detail.js", "completions.js")
_STATES = ("done", "failed", "skipped", "pending")


def write_page(run: RunFrames, sections: Sequence[Section]) -> Path:
    """Write the page of the reports that were made, and `failed.json` if any of them raised."""
    folder = run.path / "reports"
    failed = {s.name: (s.error, s.traceback) for s in sections if s.error is not None}
    try:
        page = render_page(run, sections, embedded_examples(run))
    except Exception as problem:
        failed["completions"] = error, _ = describe_failure(problem)
        page = render_page(run, sections, error)
    write_text(folder / "index.html", page)
    (folder / FAILED).unlink(missing_ok=True)
    if failed:
        content = {name: {"error": e, "traceback": t} for name, (e, t) in failed.items()}
        write_json(folder / FAILED, content)
    return folder / "index.html"


def failed_reports(folder: Path) -> dict[str, str]:
    """The error of each report that the last `write_page` of a run could not show, by name."""
    failed = read_json(folder / "reports" / FAILED) or {}
    return {name: content["error"] for name, content in failed.items()}


def render_page(
    run: RunFrames, sections: Sequence[Section], examples: Mapping[str, Any] | str
) -> str:
    """The HTML of the page; `examples` is what `embedded_examples` gives, or its error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    if not _has_paper_task(run):
        sections = [replace(section, paper="") for section in sections]
    environment = Environment(
        loader=PackageLoader("smmd_bench", "publishing"),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(
        figure=_figure,
        table=_table,
        link=lambda file: file.relative_to(run.path / "reports").as_posix(),
        what=_what,
    )
    manifest = run.manifest
    name = str(manifest.get("name") or run.path.name)
    packed = None if isinstance(examples, str) else _packed(examples, _folder(run))
    return environment.get_template("web/page.html.jinja").render(
        name=name,
        title=str((manifest.get("experiment") or {}).get("title") or name),
        run=manifest,
        flags=[f for f in manifest.get("flags") or () if f != manifest.get("command")],
        absent=[],
        report_command=report_command(run),
        manifest=json.dumps(manifest, indent=1, ensure_ascii=False),
        counts=run.cells["status"].value_counts().reindex(_STATES, fill_value=0).to_dict(),
        parts=_parts([section for section in sections if section.skipped is None]),
        shared=shared_notes(sections),
        skipped=[section for section in sections if section.skipped is not None],
        cells=run.cells.to_dict("records"),
        examples=packed,
        examples_error=examples if packed is None else None,
        style=Markup(_text("page.css")),
        scripts=[_script(file) for file in SCRIPTS + (EXAMPLE_SCRIPTS if packed else ())],
    )


def _has_paper_task(run: RunFrames) -> bool:
    """Whether a task is first-party, and so the paper's: others' pages do not name its tables."""
    tasks = set(run.cells["task_name"])
    return not tasks or not tasks.isdisjoint(own_points("tasks"))


def report_command(run: RunFrames) -> str:
    """The command that makes the reports of a run again, where its folder is in `runs`."""
    return shlex.join(["smmd-bench", "report", _folder(run)])


def _folder(run: RunFrames) -> str:
    """The run's folder for commands; none above `runs`, so that the page is the same anywhere."""
    path = run.path.resolve()
    return f"runs/{path.name}" if path.parent.name == "runs" else path.name


def _parts(sections: Sequence[Section]) -> list[tuple[str, str, list[Section]]]:
    """Tables and figures: id, title and sections; what failed stands among the tables."""
    parts = [
        ("all-tables", "Tables", [section for section in sections if section.image is None]),
        ("all-figures", "Figures", [section for section in sections if section.image is not None]),
    ]
    return [part for part in parts if part[2]]


def _packed(examples: Mapping[str, Any], folder: str) -> dict[str, Any]:
    from markupsafe import Markup

    kind, text = pack({**examples, "categories": CATEGORIES, "folder": folder})
    said = {key: examples[key] for key in ("shown", "total", "limit", "pictures")}
    return {**said, "kind": kind, "packed": Markup(text)}


def _text(file: str) -> str:
    """A style sheet or script of this folder."""
    return (resources.files(__package__) / "web" / file).read_text(encoding="utf-8")


def _script(file: str) -> dict[str, Any]:
    """A script and its digest; the page's policy lets nothing else run."""
    from markupsafe import Markup

    text = _text(file)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return {"text": Markup(text), "digest": digest}


def _figure(section: Section) -> str:
    """The figure as SVG, which follows the theme, or as a picture where that is too large."""
    from markupsafe import Markup

    label = f"{section.title}: figure. The numbers are in the table or in the CSV file."
    file = section.file(".svg")
    try:
        svg = inline_svg(file, section.name, label) if file is not None else None
    except Exception:  # a figure of a plugin may hold what matplotlib does not write
        svg = None
    if svg is not None:
        return Markup(svg)
    assert section.image is not None, section.name
    return Markup('<img src="{}" alt="{}">').format(picture_uri(section.image), label)


def _what(file: Path) -> str:
    """`tables/x.csv` -> `table (csv)`, `tables/x_data.csv` -> `data (csv)`."""
    folder, form = file.parent.name, file.suffix[1:]
    if form == "csv" and (folder == "figures" or file.stem.endswith("_data")):
        return "data (csv)"
    return f"{folder.removesuffix('s')} ({form})"


def _table(frame: pd.DataFrame) -> dict[str, Any]:
    """Columns: name, whether it holds numbers; rows of cells: text, whether it is bold.

    constant: what the columns say that never change.
    """
    whole = as_text(frame)
    text, bold = varying(whole), bold_cells(frame)
    text = whole if text.columns.empty else text
    cells = {
        name: [(cell, (at, name) in bold) for at, cell in enumerate(text[name])] for name in text
    }
    return {
        "columns": [(name, is_numeric(text[name])) for name in text],
        "rows": list(zip(*cells.values(), strict=True)),
        "constant": constant_line(whole, text),
    }
