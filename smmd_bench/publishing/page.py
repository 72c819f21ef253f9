"""The one self-contained page of a run: tables, figures as data URIs, completions to search.

Nothing is fetched from a network, everything that comes from a model or a file is escaped, and
only the two scripts of this folder may run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from ..scoring.categories import CATEGORIES
from . import tables
from .packing import pack

if TYPE_CHECKING:
    import pandas as pd

    from ..results.frames import RunFrames


@dataclass(frozen=True)
class PageSection:
    """A report as the page shows it: what it made, why it was skipped, or how it failed.

    `image` is a PNG; `files` are paths relative to the page.
    """

    name: str
    title: str
    paper: str
    caption: str = ""
    table: pd.DataFrame | None = None
    image: bytes | None = None
    files: Sequence[str] = ()
    skipped: str | None = None
    error: str | None = None


def render_page(
    run: RunFrames, sections: Sequence[PageSection], examples: Mapping[str, Any] | str
) -> str:
    """The HTML of the page.

    `examples` is what `embedded_examples` gives, or the error that it raised.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("smmd_bench", "publishing"),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    manifest = run.manifest
    name = str(manifest.get("name") or run.path.name)
    states = run.cells["status"].value_counts()
    command = report_command(run)
    shown = [_section(section, command) for section in sections if section.skipped is None]
    scripts = ["page.js"] if isinstance(examples, str) else ["page.js", "examples.js"]
    return environment.get_template("page.html.jinja").render(
        name=name,
        title=str((manifest.get("experiment") or {}).get("title") or name),
        command=manifest.get("command"),
        flags=[f for f in manifest.get("flags") or () if f != manifest.get("command")],
        absent=_absent(run),
        report_command=command,
        created=manifest.get("created"),
        versions=manifest.get("versions") or {},
        manifest=json.dumps(manifest, indent=1, ensure_ascii=False),
        counts={
            "all": len(run.cells),
            **{
                state: int(states.get(state, 0))
                for state in ("done", "failed", "skipped", "pending")
            },
        },
        parts=_parts(shown),
        skipped=[section for section in sections if section.skipped is not None],
        cells=_cells(run.cells),
        examples=None if isinstance(examples, str) else _examples(examples),
        examples_error=examples if isinstance(examples, str) else None,
        style=Markup(_part("page.css")),
        scripts=[_script(_part(file)) for file in scripts],
    )


def report_command(run: RunFrames) -> str:
    """The command that makes the reports of a run again, from the folder that `--out` defaults to.

    It names no folder above `runs`, so that the page is the same wherever the run lies.
    """
    path = run.path.resolve()
    folder = f"runs/{path.name}" if path.parent.name == "runs" else path.name
    return shlex.join(["smmd-bench", "report", folder])


def _absent(run: RunFrames) -> list[str]:
    """Addresses of the cells that the manifest lists and that have no folder."""
    listed = run.manifest.get("cells") or ()
    return [str(a) for a in listed if not (run.path / "cells" / a / "cell.json").is_file()]


def _parts(sections: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tables and figures, each with its sections; what failed stands among the tables."""
    halves = {
        "tables": ("Tables", [section for section in sections if section["image"] is None]),
        "figures": ("Figures", [section for section in sections if section["image"] is not None]),
    }
    return [
        {"id": f"all-{name}", "title": title, "sections": found}
        for name, (title, found) in halves.items()
        if found
    ]


def _examples(examples: Mapping[str, Any]) -> dict[str, Any]:
    from markupsafe import Markup

    kind, text = pack({**examples, "categories": CATEGORIES})
    said = {key: examples[key] for key in ("shown", "total", "limit", "pictures")}
    return {**said, "kind": kind, "packed": Markup(text)}


def _part(file: str) -> str:
    """A style sheet or script of this folder."""
    return (resources.files(__package__) / file).read_text(encoding="utf-8")


def _script(text: str) -> dict[str, Any]:
    """A script and its digest, by which alone the page's policy lets it run."""
    from markupsafe import Markup

    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return {"text": Markup(text), "digest": digest}


def _section(section: PageSection, command: str) -> dict[str, Any]:
    image = None
    if section.image is not None:
        image = "data:image/png;base64," + base64.b64encode(section.image).decode("ascii")
    return {
        "name": section.name,
        "title": section.title,
        "paper": section.paper,
        "caption": section.caption,
        "files": [{"path": path, "what": _what(path)} for path in section.files],
        "command": f"{command} --only {section.name}",
        "error": section.error,
        "image": image,
        "table": None if section.table is None else _table(section.table),
    }


def _what(path: str) -> str:
    """`tables/x.csv` -> `table (csv)`, `tables/x_data.csv` -> `data (csv)`."""
    stem, _, suffix = path.rpartition(".")
    what = (
        "data"
        if suffix == "csv" and (path.startswith("figures/") or stem.endswith("_data"))
        else ""
    )
    return f"{what or ('table' if path.startswith('tables/') else 'figure')} ({suffix})"


def _table(frame: pd.DataFrame) -> dict[str, Any]:
    text = tables.as_text(frame)
    columns = [{"name": name, "numeric": tables.is_numeric(text[name])} for name in text.columns]
    bold = tables.bold_cells(frame)
    rows = [
        [
            {"text": cell, "bold": (at, name) in bold}
            for name, cell in zip(text.columns, row, strict=True)
        ]
        for at, row in enumerate(text.to_numpy().tolist())
    ]
    return {"columns": columns, "rows": rows}


def _cells(cells: pd.DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {str(key): value for key, value in row.items()} for row in cells.to_dict("records")
    ]
    for row in rows:
        if row["status"] == "failed":
            row["status"] = f"failed in {row['stage']}: {row['error']}"
        elif row["status"] == "skipped":
            row["status"] = f"skipped: {row['error']}"
    return rows
