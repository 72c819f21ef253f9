"""Names and completions in what people open: LaTeX, other forms of tables, the page."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.publishing.latex import to_latex, to_page
from smmd_bench.publishing.make_report import Section
from smmd_bench.publishing.packing import columns, unpack
from smmd_bench.publishing.page import render_page
from smmd_bench.publishing.style import file_stem, loss_label
from smmd_bench.publishing.tables import as_text, to_csv, to_markdown
from smmd_bench.results.frames import RunFrames
from smmd_bench.storage.addresses import folder_name
from smmd_bench.storage.files import write_text

from .latex_check import check_latex
from .runs import small_run
from .settings import folder
from .texts import text_of

HARMLESS = "harmless"
COLUMNS = 3
ADDED = ("categories", "folder")
"""What the page adds to the examples."""


def tables(data: bytes) -> None:
    """A name in headings, cells, title and caption of a table."""
    text = text_of(data)
    half = len(text) // 2
    names = [text, text[:half], text[half:]]
    headings = [names[0], f"{names[1]}1", f"{names[2]}2"]
    if len({*headings}) < COLUMNS:
        return
    frame = pd.DataFrame({n: [*names[at:], *names[:at], "1.0"] for at, n in enumerate(headings)})
    frame.attrs["bold"] = [(0, frame.columns[1])]
    rows = len(frame)
    check_latex(to_latex(frame, f"{text}.", "tab:x"), rows, COLUMNS)
    check_latex(to_page(frame, text, text, "tab:x"), rows, None)
    assert to_markdown(frame).count("\n") == rows + 2
    read = list(csv.reader(io.StringIO(to_csv(frame), newline=""), strict=True))
    assert [len(row) for row in read] == [COLUMNS] * (rows + 1)
    assert as_text(frame).shape == (rows, COLUMNS)
    assert re.fullmatch(r"[\w.-]*", folder_name([text], {}))
    assert re.fullmatch(r"[A-Za-z0-9_.-]*", file_stem(text))
    assert loss_label(text)[-1:] in (text[-1:], text[-1:].upper()[-1:], "d", "s")


def page(data: bytes) -> None:
    """A text as every name and completion: the page has the elements of one with harmless text.

    The scripts that run are the page's own, by the digests of its policy; the data is what went in.
    """
    text = f"x{text_of(data)}"
    shown = _Elements(page_of(text))
    expected = _harmless()
    assert shown.elements == expected.elements
    assert shown.policy == expected.policy
    own = [body for kind, body in shown.scripts if kind is None]
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in own]
    assert re.findall(r"'sha256-([^']+)'", shown.policy) == digests
    ((kind, body),) = [script for script in shown.scripts if script[0] is not None]
    assert unpack(str(kind), body) | dict.fromkeys(ADDED) == _as_json(text)


class _Elements(HTMLParser):
    """The elements of a page with the names of their attributes, and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.scripts: list[tuple[str | None, str]] = []
        self.policy = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert not [name for name in given if name.startswith("on")]
        assert not str(given.get("href", "")).lower().startswith(("javascript:", "data:"))
        self.elements[tag, tuple(given)] += 1
        if tag == "script":
            self.scripts.append((given.get("type"), ""))
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy += str(given["content"])

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            kind, body = self.scripts.pop()
            self.scripts.append((kind, body + data))


def _examples(text: str) -> dict[str, Any]:
    """What `embedded_examples` gives, of two completions."""
    title = {"model": text, "task": text, "seed": 0, "losses": [text, "ce"]}
    return {
        "groups": [title],
        "labels": {text: loss_label(text), "ce": "CE"},
        "total": 2,
        "shown": 2,
        "limit": 10,
        "rows": [[0, text, text, [text, ""], "ab", "10", 1, text, [0, None], {text: text}]],
        "digits": {},
        "pictures": [],
        "pictured": {},
    }


def _as_json(text: str) -> dict[str, Any]:
    return {**columns(_examples(text)), **dict.fromkeys(ADDED)}


def page_of(text: str) -> str:
    """The page of a run in which every name is the text; it is also written."""
    run = small_run()
    named = RunFrames(run.path)
    cells = run.cells.copy()
    for name in ("model", "task", "loss", "error", "stage", "status"):
        cells[name] = text
    cells.loc[0, "status"] = "failed"
    manifest = {
        **run.manifest,
        "experiment": {"title": text},
        "versions": {text: text},
        "flags": [text, f"{text} again"],
        **dict.fromkeys(("name", "created", "command"), text),
    }
    named.__dict__.update(manifest=manifest, cells=cells)
    table = pd.DataFrame({text: [text, f"{text}."], "n": [1, 2]})
    table.attrs["bold"] = [(0, text)]
    sections = [
        Section("made", text, text, Artefact(text, table)),
        Section("failed", text, text, error=text, traceback=text),
        Section("skipped", text, text, skipped=text),
    ]
    html = render_page(named, sections, _examples(text))
    write_text(folder() / "index.html", html)
    return html


@cache
def _harmless() -> _Elements:
    return _Elements(page_of(HARMLESS))
