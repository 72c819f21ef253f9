"""The one self-contained page of a run: tables, figures as data URIs, completions to search.

Nothing is fetched from a network, and everything that comes from a model or a file is escaped.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import tables

if TYPE_CHECKING:
    import pandas as pd

    from ..results.run import RunFrames


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

    environment = Environment(
        loader=PackageLoader("smmd_bench", "publishing"),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    manifest = run.manifest
    name = str(manifest.get("name") or run.path.name)
    states = run.cells["status"].value_counts()
    return environment.get_template("page.html.jinja").render(
        name=name,
        title=str((manifest.get("experiment") or {}).get("title") or name),
        command=manifest.get("command"),
        created=manifest.get("created"),
        versions=manifest.get("versions") or {},
        counts={
            "all": len(run.cells),
            **{
                state: int(states.get(state, 0))
                for state in ("done", "failed", "skipped", "pending")
            },
        },
        sections=[_section(section) for section in sections],
        cells=_cells(run.cells),
        examples=None if isinstance(examples, str) else examples,
        examples_error=examples if isinstance(examples, str) else None,
    )


def _section(section: PageSection) -> dict[str, Any]:
    image = None
    if section.image is not None:
        image = "data:image/png;base64," + base64.b64encode(section.image).decode("ascii")
    return {
        "name": section.name,
        "title": section.title,
        "paper": section.paper,
        "caption": section.caption,
        "files": [{"path": path, "what": _what(path)} for path in section.files],
        "skipped": section.skipped,
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
    return {"columns": columns, "rows": text.to_numpy().tolist()}


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
