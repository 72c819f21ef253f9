"""Links between the pages lead somewhere, on GitHub as on the site."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .documents import ROOT, anchors, documents, links

PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in documents()]
_NAMED = re.compile(r"\[`(\w+)`\]\(([^()\s]+/(?!__init__)\w+\.py)\)")


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_to_a_file_and_every_anchor_to_a_heading(page: Path) -> None:
    dead = []
    for link in links(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if urlsplit(link).scheme:
            continue
        target = (page.parent / path).resolve() if path else page
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            dead.append(link)
    assert not dead


@pytest.mark.parametrize("page", PAGES)
def test_every_other_link_is_well_formed_https(page: Path) -> None:
    for link in links(page.read_text(encoding="utf-8")):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", link
            assert "." in parts.netloc, link
            assert parts.netloc == parts.netloc.strip(".").lower(), link


def test_every_page_of_the_documentation_can_be_reached_from_the_readme() -> None:
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = (link.partition("#")[0] for link in links(page.read_text(encoding="utf-8")))
        todo += [
            (page.parent / target).resolve()
            for target in targets
            if target.endswith(".md") and not urlsplit(target).scheme
        ]
    assert not set((ROOT / "docs").glob("*.md")) - seen


@pytest.mark.parametrize("page", PAGES)
def test_a_link_whose_text_is_a_name_leads_to_a_file_that_has_it(page: Path) -> None:
    """`[`hidden_objective`](../smmd_bench/objective/objective.py)`: a rename is seen here."""
    gone = [
        f"{name} in {target}"
        for name, target in _NAMED.findall(page.read_text(encoding="utf-8"))
        if not re.search(rf"\b(def|class) {name}\b", (page.parent / target).read_text("utf-8"))
    ]
    assert not gone
