"""Links between the pages lead somewhere, on GitHub as on the site."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .documents import ROOT, anchors, documents, links

PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in documents()]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading_or_is_https(page):
    dead = []
    for link in links(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        parts = urlsplit(link)
        if parts.scheme:
            well_formed = parts.scheme == "https" and "." in parts.netloc
        else:
            target = (page.parent / path).resolve() if path else page
            well_formed = target.exists() and target.is_relative_to(ROOT)
            if well_formed and anchor:
                well_formed = anchor in anchors(target.read_text(encoding="utf-8"))
        if not well_formed:
            dead.append(link)
    assert not dead


def test_every_page_of_the_documentation_can_be_reached_from_the_readme():
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page not in seen and page.suffix == ".md" and page.exists():
            seen.add(page)
            targets = [link.partition("#")[0] for link in links(page.read_text(encoding="utf-8"))]
            todo += [(page.parent / target).resolve() for target in targets if target]
    assert not set((ROOT / "docs").glob("*.md")) - seen
