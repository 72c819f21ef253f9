"""Hooks of mkdocs.yml: the repository's Markdown, written for GitHub, as pages of a site.

The files of PAGES become pages, and so does the reference of Python, which mkdocstrings makes. A
link to a file that is not a page keeps only its text.
Formulas (GitHub's $`...`$ and math fences) become MathML, which needs no script.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

import smmd_bench

ROOT = Path(__file__).parent.parent
PAGES = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/README.md",
    "replication.md": "experiments/replication/README.md",
    "dose.md": "experiments/dose/README.md",
    "dose-registration.md": "experiments/dose/registration.md",
}
REFERENCES = {
    "api.md": "# Python reference\n\n## import smmd_bench as sb\n\n"
    + "".join(
        f"::: smmd_bench{module}.{name}\n\n" for name, module in smmd_bench._API.items()
    )
    + "## Contracts of plugins\n\n::: smmd_bench.contracts\n",
}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s#]*)(#[^()\s]*)?\)")
_MATH = re.compile(r"^```math\n(.*?)^```$|\$`([^`]+)`\$", re.MULTILINE | re.DOTALL)
_formulas: list[str] = []


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that do not lie in docs/."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    for page, text in REFERENCES.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fit the links, and put a word in the place of each formula."""
    if page.file.src_uri in (*REFERENCES, "cli.md"):
        return markdown
    source = PAGES.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    pages = {source: page for page, source in PAGES.items()}

    def fit(match: re.Match[str]) -> str:
        mark, text, path, anchor = match.groups(default="")
        if not path or "://" in path:
            return match[0]
        there = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if (
            (ROOT / there).exists()
            and not there.startswith("docs/")
            and there not in pages
        ):
            return text
        return (
            f"{mark}[{text}]({pages.get(there, there.removeprefix('docs/'))}{anchor})"
        )

    return _MATH.sub(_place, _LINK.sub(fit, markdown))


def on_page_content(html: str, **_: Any) -> str:
    """Put the formulas back, as MathML."""
    return re.sub(r"FORMULA(\d+)HERE", lambda match: _formulas[int(match[1])], html)


def _place(match: re.Match[str]) -> str:
    display = "block" if match[1] is not None else "inline"
    _formulas.append(convert(match[1] or match[2], display=display))
    return f"FORMULA{len(_formulas) - 1}HERE"
