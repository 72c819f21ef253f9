"""`make docs` builds a site that needs no network."""

import re
import subprocess
import sys

import pytest

from .documents import ROOT, blocks

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "mkdocs",
        "build",
        "--site-dir",
        str(folder),
    ]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    # strict: links and the navigation are checked
    assert process.returncode == 0, process.stderr
    return folder


def test_formulas_are_mathml_and_none_is_left_as_tex(site):
    source = (ROOT / "docs/losses.md").read_text(encoding="utf-8")
    html = (site / "losses.html").read_text(encoding="utf-8")
    displayed = sum(language == "math" for language, _ in blocks(source))
    formulas = displayed + source.count("$`")
    assert html.count('display="block"') == displayed
    assert html.count("<math") == formulas
    assert html.count("</math>") == formulas
    assert "FORMULA" not in html
    assert "\\mathrm" not in html


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]*\bsrc="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]*\bhref="([^"]+)"', text)
        assert loaded, page.name
        assert not [u for u in loaded if "//" in u and not u.startswith("data:")], (
            page.name
        )
