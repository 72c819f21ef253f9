"""Hooks of mkdocs.yml: the repository's Markdown, written for GitHub, as pages of a site.

README.md, CHANGELOG.md and benchmarks/README.md become pages. Links are adapted; a link to a file
that is not a page keeps only its text. Formulas (GitHub's $`...`$ and math fences) become MathML,
which browsers show without any script.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
_SOURCES = {page: source for source, page in PAGES.items()}
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\S\n]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_MATH = re.compile(r"^```math\n(.*?)^```$|\$`([^`]+)`\$", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"FORMULA(\d+)HERE")
_formulas: list[str] = []


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that do not lie in docs/."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fit the links, and put a word in the place of each formula."""
    uri = page.file.src_uri
    parts, at = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_linked(markdown[at : fence.start()], uri), fence[0]]
        at = fence.end()
    return _MATH.sub(_place, "".join([*parts, _linked(markdown[at:], uri)]))


def on_page_content(html: str, **_: Any) -> str:
    """Put the formulas back, as MathML."""
    return _PLACE.sub(lambda match: _formulas[int(match[1])], html)


def site_link(target: str, source: str, page: str) -> str | None:
    """The link on the page for a link in the repository; None: to a file without a page."""
    path, mark, anchor = target.partition("#")
    if not path or "://" in target:
        return target
    there = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if there in PAGES:
        found = PAGES[there]
    elif there.startswith("docs/") or not (ROOT / there).exists():
        found = there.removeprefix("docs/")  # where nothing is, the strict build says so
    else:
        return None
    return posixpath.relpath(found, posixpath.dirname(page) or ".") + mark + anchor


def _linked(text: str, page: str) -> str:
    source = _SOURCES.get(page, f"docs/{page}")

    def fitted(match: re.Match[str]) -> str:
        link = site_link(match[3], source, page)
        return match[2] if link is None else f"{match[1]}[{match[2]}]({link})"

    return _LINK.sub(fitted, text)


def _place(match: re.Match[str]) -> str:
    block = match[1] is not None
    formula = convert(match[1] or match[2], display="block" if block else "inline")
    _formulas.append(formula)
    return f"FORMULA{len(_formulas) - 1}HERE"
