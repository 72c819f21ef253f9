"""`make docs` builds a site that needs no network, and fails on what leads nowhere."""

import re
import shutil
import subprocess
import sys

import pytest

from .documents import OUTSIDE_THE_SITE, ROOT, anchors, blocks, documents

pytestmark = pytest.mark.docs


def build(config, site):
    """The command of the Makefile, into another folder."""
    command = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--config-file"]
    return subprocess.run(
        [*command, str(config), "--site-dir", str(site)], capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "site"
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there_with_the_anchors_that_github_makes(site):
    other = {"README": "index", "CHANGELOG": "changelog"}
    for page in documents():
        if str(page.relative_to(ROOT)) in OUTSIDE_THE_SITE:
            continue
        folder = page.parent.relative_to(ROOT)
        if folder.name in ("docs", "", "benchmarks"):
            name = "benchmarks" if folder.name == "benchmarks" else other.get(page.stem, page.stem)
            html = (site / f"{name}.html").read_text(encoding="utf-8")
            ids = set(re.findall(r'<h\d id="([^"]+)"', html))
            github = anchors(page.read_text(encoding="utf-8"))
            assert {re.sub(r"_(\d+)$", r"-\1", i) for i in ids} == github, name


def test_formulas_are_mathml_and_none_is_left_as_tex(site):
    source = (ROOT / "docs" / "losses.md").read_text(encoding="utf-8")
    html = (site / "losses.html").read_text(encoding="utf-8")
    displayed = sum(block.language == "math" for block in blocks(source))
    assert html.count('display="block"') == displayed
    assert html.count("<math") == html.count("</math>") == displayed + source.count("$`")
    assert "FORMULA" not in html
    assert "\\mathrm" not in html


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]*\bsrc="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]*\bhref="([^"]+)"', text)
        assert loaded, page.name
        far = [url for url in loaded if "//" in url and not url.startswith("data:")]
        assert not far, page.name


def test_links_that_lead_nowhere_fail_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    for file in ("mkdocs.yml", "CITATION.cff", *(page.name for page in ROOT.glob("*.md"))):
        shutil.copy(ROOT / file, tmp_path)
    for name in ("docs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, dirs_exist_ok=True)
    linked = ("benchmarks", "examples", "experiments", "smmd_bench", "plugins", "tasks", "reports")
    for name in (*linked, "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    bad = ("nowhere.md", "losses.md#nowhere", "../smmd_bench/nowhere.py")
    with (tmp_path / "docs" / "start.md").open("a", encoding="utf-8") as page:
        page.write("".join(f"\n[a link]({link})\n" for link in bad))
    done = build(tmp_path / "mkdocs.yml", tmp_path / "bad")
    assert done.returncode != 0
    assert done.stderr.count("WARNING -") == len(bad), done.stderr
    assert all(link.rpartition("/")[2] in done.stderr for link in bad)
