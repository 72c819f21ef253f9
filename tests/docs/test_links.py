"""Links between the pages lead somewhere, on GitHub as on the site."""

import re
from urllib.parse import urlsplit

import pytest

from .documents import ROOT, anchors, documents, links

PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in documents()]
ARCHITECTURE = ROOT / "docs" / "architecture.md"


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_to_a_file_and_every_anchor_to_a_heading(page):
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
def test_every_other_link_is_well_formed_https(page):
    for link in links(page.read_text(encoding="utf-8")):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", link
            assert "." in parts.netloc, link
            assert parts.netloc == parts.netloc.strip(".").lower(), link


def test_every_page_of_the_documentation_can_be_reached_from_the_readme():
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


STEPS = re.findall(
    r"^\d\. (?:.+\n)+?(?=\d\. |\n|\Z)", ARCHITECTURE.read_text("utf-8"), re.MULTILINE
)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.partition("**:")[0])
def test_the_files_of_a_step_have_the_names_that_it_gives(step):
    """docs/architecture.md: a rename is seen here."""
    code = "\n".join(
        (ARCHITECTURE.parent / link).resolve().read_text(encoding="utf-8") for link in links(step)
    )
    assert not [
        name for name in re.findall(r"`(\w+)`", step) if not re.search(rf"\b{name}\b", code)
    ]


def test_every_step_of_the_architecture_is_checked():
    assert len(STEPS) == 16
