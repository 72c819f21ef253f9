"""Reports become files and sections of the page."""

import base64
import gzip
import hashlib
import json
import re
import shutil

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.publishing.page import name_comparison, render_page

from .conftest import HOSTILE, REPORTS, publish


@pytest.fixture(scope="module")
def page(run):
    return (run.path / "reports/index.html").read_text()


def files(run):
    folder = run.path / "reports"
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_every_report_has_its_files_and_one_that_fails_has_none(run):
    contents = files(run)
    names = [
        "index.html",
        "failed.json",
        "tables/values_data.csv",
        "tables/verdict_data.csv",
    ]
    for report in ("both", "values", "verdict"):
        names += [f"tables/{report}.{form}" for form in ("csv", "md", "tex")]
    names += [f"figures/both.{form}" for form in ("png", "svg", "csv")]
    assert {*contents} == {*names}

    assert contents["tables/values_data.csv"] == b"value\n0.3333333333333333\n"
    assert b"A title that names the level" in contents["tables/values.tex"]
    assert b"\n- A note.\n" in contents["tables/values.md"]
    failed = json.loads(contents["failed.json"])
    assert failed.keys() == {"failing", "failing_to_draw"}


def test_the_same_run_elsewhere_gives_the_same_bytes(run, tmp_path):
    folder = tmp_path / "elsewhere/runs" / run.path.name
    shutil.copytree(run.path, folder, ignore=shutil.ignore_patterns("reports"))
    copy = sb.read_run(folder)
    publish(copy, REPORTS[:3])
    contents = files(copy)
    originals = files(run)
    for name in contents.keys() - {"index.html"}:
        assert contents[name] == originals[name], name

    publish(sb.read_run(folder), REPORTS[:3])
    assert files(copy) == contents
    assert str(tmp_path).encode() not in contents["index.html"]


def test_the_page_has_the_reports_and_says_why_others_are_missing(page):
    assert "A title that names the level" in page
    assert re.findall(r"<strong>(.*?)</strong>", page) == ["10 [9, 11]"]
    assert page.count("This report failed, and the others are not affected") == 2
    assert "A report that is skipped (Table 0): nothing to show" in page
    assert page.count("A note.") == 1
    assert "<code>smmd-bench report runs/mine --only NAME</code>" in page
    assert 'alt="Both &lt;of&gt; them: figure.' in page


def test_the_title_says_what_was_compared_and_then_the_name_of_the_run(page, run):
    title = "CE, NTL, SMMD on arithmetic, clock_time · builtin/tiny"
    assert f"<h1>{title} <small>mine</small></h1>" in page

    losses = pd.Categorical([f"own{at}" for at in range(9)])
    named = name_comparison(
        run.only(run.cells.iloc[:9].assign(loss=losses, loss_name=losses))
    )
    assert (
        named
        == f"{', '.join(losses[:6])}, 3 more on arithmetic, clock_time · builtin/tiny"
    )


def test_a_title_with_brackets_is_named_whole(run, tmp_path):
    (tmp_path / "flats.csv").write_text("question,answer\na,1\n")
    spec = f'table[path={tmp_path / "flats.csv"},title="Prices [EUR]"]'
    cells = run.cells.assign(task=spec).astype({"task": "category"})
    assert name_comparison(run.only(cells)).endswith("on Prices [EUR] · builtin/tiny")


def test_several_commands_are_a_list(run):
    manifest = {**run.manifest, "command": "smmd-bench one\nsmmd-bench two"}
    extended = run.only(run.cells)
    extended.__dict__["manifest"] = manifest
    page = render_page(extended, [], embedded_examples(run))
    assert "Made by 2 commands" in page
    assert page.count("<li><code>smmd-bench ") == 2


def test_the_page_escapes_what_reports_and_models_say(page):
    for text in (
        "&lt;i&gt;&amp;&lt;/i&gt;",
        "Both &lt;of&gt; them",
        "&lt;script&gt;boom",
    ):
        assert text in page
    assert "<img src=x" not in page

    (data,) = re.findall(r' id="data">(.*?)</script>', page)
    rows = json.loads(gzip.decompress(base64.b64decode(data)))["rows"]
    assert any(HOSTILE in row[4] for row in rows)


def test_the_page_needs_nothing_from_a_network_and_runs_its_own_script_alone(page):
    assert not re.search(r"(?:src|href)=\"(?!data:|#|tables/|figures/)", page)
    assert not re.search(r"<link|@import|url\(|fetch\(|https?://", page)
    assert "default-src 'none'" in page
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = hashlib.sha256(script.encode()).digest()
    (allowed,) = re.findall(r"'sha256-([^']+)'", page)
    assert base64.b64decode(allowed) == digest


def test_the_contents_lead_to_every_part(page):
    text = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"?]+)', text)) <= set(ids)
    assert "".join(re.findall(r"<h(\d)", text)) == "12333323222"


def test_the_page_says_what_is_missing_of_the_run(run):
    failed = run.only(
        run.cells.assign(status="failed", stage="train", error="no memory")
    )
    text = render_page(failed, [], embedded_examples(failed))
    assert f"0 of {len(run.cells)} cells have results, {len(run.cells)} failed." in text
    assert "failed in train: no memory" in text
