"""Reports become files and sections of the page."""

import base64
import hashlib
import html
import itertools
import json
import logging
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.contracts import Artefact
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.publishing.make_report import Section
from smmd_bench.publishing.packing import unpack
from smmd_bench.publishing.page import EXAMPLE_SCRIPTS, SCRIPTS, render_page
from tests.publishing.published import Told, publish
from tests.runs import quick_run, rewrite, write_run

HOSTILE = "</script><img src=x onerror=alert(1)>"


def both():
    figure = sb.new_figure()
    figure.subplots().plot([1, 2])
    table = pd.DataFrame({"<b>": ["<i>&</i>"]})
    return Artefact("A caption.", table, figure, pd.DataFrame({"x": [1, 2]}))


def table_only():
    table = pd.DataFrame({"Loss": ["CE", "SMMD"], "Acc": ["1", "2"]})
    table.attrs.update(title="A title that names the level", bold=[(1, "Acc")])
    return Artefact("A caption.", table, data=pd.DataFrame({"value": [1 / 3]}))


def failing():
    raise ValueError("<script>boom</script>")


def failing_to_draw():
    figure = sb.new_figure()
    figure.subplots().set_title("$\\frac{1}{$")
    return Artefact("A caption.", figure=figure)


SKIPPING = Told("skipping", both, "A report that is skipped", "nothing to show")
REPORTS = (
    Told("both", both, "Both <of> them"), Told("table_only", table_only), SKIPPING,
    Told("failing", failing), Told("failing_to_draw", failing_to_draw),
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with a hostile completion, published."""
    folder = tmp_path_factory.mktemp("publish") / "runs" / "mine"
    write_run(folder, seeds=(0,), n=30, steps=40, resamples=20)
    run = sb.read_run(folder)
    completions = folder / "cells" / run.cells["address"].iloc[1] / "completions.parquet"
    rewrite(completions, pd.read_parquet(completions).assign(completion=HOSTILE))
    run = sb.read_run(folder)
    logging.disable(logging.CRITICAL)
    publish(run, REPORTS)
    logging.disable(logging.NOTSET)
    return run


@pytest.fixture(scope="module")
def page(run):
    return (run.path / "reports" / "index.html").read_text()


def files(run):
    folder = run.path / "reports"
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_every_report_has_its_files_and_one_that_fails_has_none(run):
    found = files(run)
    forms = [f"tables/{n}.{form}" for n in ("both", "table_only") for form in ("csv", "md", "tex")]
    figure = [f"figures/both.{form}" for form in ("png", "pdf", "svg", "csv")]
    others = ["tables/table_only_data.csv", "index.html", "failed.json"]
    assert {*found} == {*forms, *figure, *others}
    assert found["tables/table_only_data.csv"] == b"value\n0.3333333333333333\n"
    assert b"A title that names the level" in found["tables/table_only.tex"]
    assert json.loads(found["failed.json"]).keys() == {"failing", "failing_to_draw", "checksum"}


def test_the_same_run_elsewhere_gives_the_same_bytes(run, tmp_path):
    copy = sb.read_run(shutil.copytree(run.path, tmp_path / "elsewhere" / "runs" / run.path.name))
    shutil.rmtree(copy.path / "reports")
    publish(copy, REPORTS[:3])
    kept = files(copy)
    for name in kept.keys() - {"index.html"}:
        assert kept[name] == files(run)[name], name
    publish(sb.read_run(copy.path), REPORTS[:3])
    assert files(copy) == kept
    assert str(tmp_path).encode() not in kept["index.html"]


def test_the_page_has_the_reports_and_says_why_others_are_missing(page):
    assert "A title that names the level" in page
    assert 'aria-label="Both &lt;of&gt; them: figure.' in page
    assert re.findall(r"<strong>(.*?)</strong>", page) == ["2"]
    assert page.count("This report failed, and the others are not affected") == 2
    assert "A report that is skipped (Table 0): nothing to show" in page
    assert "Not shown: 1" in page


def test_the_page_escapes_what_reports_and_models_say(page):
    for text in ("&lt;i&gt;&amp;&lt;/i&gt;", "Both &lt;of&gt; them", "&lt;script&gt;boom"):
        assert text in page
    assert "<img src=x" not in page
    data = re.search(r'<script type="([a-z/]+)" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert HOSTILE in unpack(*data.groups())["texts"]


@pytest.mark.parametrize(("task", "named"), [("arithmetic", True), ("temperature", False)])
def test_the_page_names_the_papers_tables_beside_its_own_tasks_alone(tmp_path, task, named):
    run = quick_run(tmp_path, tasks=(task,))
    section = Section("both", "Both", "Figure 6 (Appendix C.6)", both())
    assert (section.paper in render_page(run, [section], "no examples")) == named


def test_the_page_needs_nothing_from_a_network_and_runs_its_own_scripts_alone(page):
    assert re.findall(r"(?:src|href)=\"(?!data:|#|tables/|figures/)[^\"]*\"", page) == []
    elsewhere = r"<link|@import|url\((?!#)|fetch\(|https?://(?!www\.w3\.org/2000/svg)"
    assert not re.search(elsewhere, page)
    assert "default-src 'none'" in page
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [hashlib.sha256(text.encode()).digest() for text in scripts]
    assert len(scripts) == len(SCRIPTS + EXAMPLE_SCRIPTS)
    assert re.findall(r"'sha256-([^']+)'", page) == [base64.b64encode(d).decode() for d in digests]


def test_every_artefact_says_the_command_that_makes_it_again(run, page):
    again = "smmd-bench report runs/mine"
    commands = re.findall(r'<code class="command">(.*?)</code>', page)
    shown = ("failing", "failing_to_draw", "table_only", "both")
    assert commands[0] == run.manifest["command"]
    assert sorted(commands[1:]) == sorted([again, *(f"{again} --only {name}" for name in shown)])
    shown_manifest = re.search(r"<pre>(.*?)</pre>", page, re.DOTALL)
    assert shown_manifest is not None
    assert json.loads(html.unescape(shown_manifest[1])) == run.manifest


def test_the_contents_lead_to_every_part_and_every_heading_has_one_above_it(page):
    text = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
    levels = [int(level) for level in re.findall(r"<h(\d)", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_the_page_says_what_is_missing_of_the_run(run, tmp_path):
    folder = Path(shutil.copytree(run.path, tmp_path / "run"))
    listed = [*run.cells["address"], "0123456789abcdef"]
    manifest = {**run.manifest, "cells": listed, "flags": ["one --a", "two --b"]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "cells" / listed[0] / "metrics.json").unlink()
    part = sb.read_run(folder)
    text = render_page(part, [], embedded_examples(part, limit=40))
    assert "3 of 5 cells have results, 1 are pending, 1 are gone" in text
    assert "whose folders are not there: 0123456789abcdef." in text
    assert '<code class="command">one --a</code>' in text
    assert "from the second on, <code>--extend</code>" in text
    assert "39 of 90 completions, at most 40, examples on which the losses disagree first" in text
    for address in listed[1:-1]:
        (folder / "cells" / address / "metrics.json").unlink()
    publish(sb.read_run(folder), [SKIPPING])
    assert "0 of 5 cells have results" in (folder / "reports" / "index.html").read_text()


def test_figures_embed_their_fonts_as_outlines(run):
    pdf = files(run)["figures/both.pdf"]
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
