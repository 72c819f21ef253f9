import base64
import hashlib
import html
import itertools
import json
import logging
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.contracts import Artefact
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.publishing.make_report import build_report
from smmd_bench.publishing.packing import unpack
from smmd_bench.publishing.page import render_page
from smmd_bench.publishing.style import new_figure
from smmd_bench.results.frames import RunFrames
from tests.publishing.published import publish
from tests.runs import rewrite, write_run


@dataclass(frozen=True)
class Both:
    """A table and a figure with data."""

    name: ClassVar[str] = "both"
    title: ClassVar[str] = "Both <of> them"
    paper: ClassVar[str] = "Table 0"

    def skip(self, run: RunFrames) -> str | None:
        return None

    def build(self, run: RunFrames) -> Artefact:
        figure = new_figure()
        figure.subplots().plot([1, 2])
        data = pd.DataFrame({"x": [1, 2]})
        table = pd.DataFrame({"<b>": ["<i>&</i>"]})
        return Artefact("A caption.", table, figure, data)


@dataclass(frozen=True)
class TableOnly(Both):
    name: ClassVar[str] = "table_only"

    def build(self, run: RunFrames) -> Artefact:
        table = pd.DataFrame({"Loss": ["CE"]})
        table.attrs["title"] = "A title that names the level"
        return Artefact("A caption.", table, data=pd.DataFrame({"value": [1 / 3]}))


@dataclass(frozen=True)
class Bold(Both):
    name: ClassVar[str] = "bold"

    def build(self, run: RunFrames) -> Artefact:
        table = pd.DataFrame({"Loss": ["CE", "SMMD"], "Acc": ["1", "2"]})
        table.attrs["bold"] = [(1, "Acc")]
        return Artefact("A caption.", table)


@dataclass(frozen=True)
class Skipping(Both):
    name: ClassVar[str] = "skipping"
    title: ClassVar[str] = "A report that is skipped"

    def skip(self, run: RunFrames) -> str | None:
        return "nothing to show"


@dataclass(frozen=True)
class Failing(Both):
    name: ClassVar[str] = "failing"
    title: ClassVar[str] = "A report that fails"

    def build(self, run: RunFrames) -> Artefact:
        raise ValueError("<script>boom</script>")


@dataclass(frozen=True)
class FailingToDraw(Both):
    name: ClassVar[str] = "failing_to_draw"
    title: ClassVar[str] = "A figure that fails"

    def build(self, run: RunFrames) -> Artefact:
        figure = new_figure()
        figure.subplots().set_title("$\\frac{1}{$")
        return Artefact("A caption.", figure=figure)


@pytest.fixture
def run(tmp_path: Path) -> RunFrames:
    write_run(tmp_path / "run", seeds=(0,), n=30, steps=40, resamples=20)
    return sb.read_run(tmp_path / "run")


def files(run: RunFrames) -> set[str]:
    folder = run.path / "reports"
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def page(run: RunFrames) -> str:
    return (run.path / "reports" / "index.html").read_text()


def test_a_table_and_a_figure_are_written_in_every_form(run):
    written = publish(run, [Both()])
    assert files(run) == {
        "index.html", "tables/both.csv", "tables/both.md", "tables/both.tex",
        "figures/both.png", "figures/both.pdf", "figures/both.csv",
    }  # fmt: skip
    assert {str(p.relative_to(run.path / "reports")) for p in written} == files(run)
    assert written[-1].name == "index.html"


def test_the_numbers_behind_a_table_stand_beside_it(run):
    publish(run, [TableOnly()])
    assert (run.path / "reports/tables/table_only_data.csv").read_text() == (
        "value\n0.3333333333333333\n"
    )


def test_a_table_may_carry_a_title_of_its_own(run):
    publish(run, [TableOnly()])
    assert (
        "A title that names the level" in (run.path / "reports/tables/table_only.tex").read_text()
    )
    assert "A title that names the level" in page(run)


def test_publishing_again_gives_the_same_bytes(run):
    def contents() -> dict[str, bytes]:
        return {name: (run.path / "reports" / name).read_bytes() for name in files(run)}

    publish(run, [Both(), TableOnly()])
    first = contents()
    publish(sb.read_run(run.path), [Both(), TableOnly()])
    assert contents() == first


def test_the_files_are_the_same_wherever_the_run_lies(run, tmp_path):
    publish(run, [Both(), TableOnly()])
    copy = sb.read_run(shutil.copytree(run.path, tmp_path / "elsewhere" / run.path.name))
    shutil.rmtree(copy.path / "reports")
    publish(copy, [Both(), TableOnly()])
    assert files(copy) == files(run)
    for name in files(run):
        again, first = (at.path / "reports" / name for at in (copy, run))
        assert again.read_bytes() == first.read_bytes(), name


@pytest.mark.parametrize("report", [Failing(), FailingToDraw()], ids=lambda r: r.name)
def test_a_report_that_raises_is_listed_and_breaks_nothing_else(run, report, caplog):
    with caplog.at_level(logging.CRITICAL):
        publish(run, [report, Both()])
    assert "tables/both.csv" in files(run)
    assert not any(report.name in name or name.endswith(".part") for name in files(run))
    assert "This report failed, and the others are not affected" in page(run)
    assert "<script>boom" not in page(run)


def test_a_skipped_report_is_listed_with_its_reason(run):
    section = build_report(run, Skipping())
    assert section.skipped == "nothing to show"
    publish(run, [Skipping()])
    assert "A report that is skipped (Table 0): nothing to show" in page(run)
    assert "Not shown: 1" in page(run)


def test_the_page_needs_nothing_from_a_network(run):
    publish(run, [Both()])
    assert re.findall(r"(?:src|href)=\"(?!data:|#|tables/|figures/)[^\"]*\"", page(run)) == []
    assert page(run).count("<link") == 0
    assert not re.search(r"@import|url\(|fetch\(|https?://", page(run))
    assert "default-src 'none'" in page(run)


def test_only_the_two_scripts_of_the_page_may_run(run):
    publish(run, [Both()])
    allowed = re.findall(r"'sha256-([^']+)'", page(run))
    scripts = re.findall(r"<script>(.*?)</script>", page(run), re.DOTALL)
    assert len(scripts) == 2
    assert allowed == [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts
    ]


def test_bold_cells_are_bold_on_the_page(run):
    publish(run, [Bold()])
    assert re.findall(r"<strong>(.*?)</strong>", page(run)) == ["2"]


def test_every_artefact_says_the_command_that_makes_it_again(run):
    publish(run, [Both(), Skipping()])
    commands = re.findall(r'<code class="command">(.*?)</code>', page(run))
    assert commands == [
        run.manifest["command"], "smmd-bench report run --only both", "smmd-bench report run",
    ]  # fmt: skip


def test_commands_name_the_folder_of_runs_but_none_above_it(tmp_path):
    write_run(tmp_path / "runs" / "mine", seeds=(0,), n=5, steps=5, resamples=20)
    run = sb.read_run(tmp_path / "runs" / "mine")
    publish(run, [Both()])
    assert "smmd-bench report runs/mine --only both" in page(run)
    assert str(tmp_path) not in page(run)


def test_the_page_names_cells_without_a_folder_and_every_experiment(run):
    file = run.path / "manifest.json"
    manifest = json.loads(file.read_text())
    listed = [*run.cells["address"], "0123456789abcdef"]
    file.write_text(json.dumps({**manifest, "cells": listed, "flags": ["one --a", "two --b"]}))
    publish(sb.read_run(run.path), [Skipping()])
    text = page(run)
    assert "whose folders are not there: 0123456789abcdef." in text
    assert '<code class="command">one --a</code>' in text
    assert '<code class="command">two --b</code>' in text
    assert "from the second on, <code>--extend</code>" in text


def test_the_page_has_the_manifest(run):
    publish(run, [Skipping()])
    shown = re.search(r"<pre>(.*?)</pre>", page(run), re.DOTALL)
    assert shown is not None
    assert json.loads(html.unescape(shown[1])) == run.manifest


def test_the_contents_lead_to_every_part_and_every_heading_has_one_above_it(run):
    publish(run, [Both(), TableOnly(), Skipping()])
    text = re.sub(r"<script.*?</script>", "", page(run), flags=re.DOTALL)
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
    levels = [int(level) for level in re.findall(r"<h(\d)", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_a_page_that_leaves_completions_out_says_how_many_it_may_have(run):
    text = render_page(run, [], embedded_examples(run, limit=40))
    assert "40 of 120 completions, at most 40, examples on which the losses disagree first" in text


def test_figures_embed_their_fonts_as_outlines(run):
    publish(run, [Both()])
    pdf = (run.path / "reports/figures/both.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf


def test_the_page_escapes_what_reports_and_models_say(run):
    cell = run.path / "cells" / run.cells["address"].iloc[1] / "completions.parquet"
    hostile = "</script><img src=x onerror=alert(1)>"
    rewrite(cell, pd.read_parquet(cell).assign(completion=hostile))
    publish(sb.read_run(run.path), [Both()])
    text = page(run)
    assert "&lt;i&gt;&amp;&lt;/i&gt;" in text
    assert "Both &lt;of&gt; them" in text
    assert "<img src=x" not in text
    data = re.search(r'<script type="([a-z/]+)" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert hostile in unpack(*data.groups())["texts"]


def test_the_page_embeds_figures_and_says_what_is_missing(run):
    address = run.cells["address"].iloc[-1]
    (run.path / "cells" / address / "metrics.json").unlink()
    publish(sb.read_run(run.path), [Both()])
    assert 'src="data:image/png;base64,' in page(run)
    assert "3 of 4 cells have results, 1 are pending" in page(run)


def test_a_run_without_results_still_gets_a_page(tmp_path):
    write_run(tmp_path, seeds=(0,), n=5, steps=5, resamples=20)
    for file in tmp_path.glob("cells/*/metrics.json"):
        file.unlink()
    publish(sb.read_run(tmp_path), [Skipping()])
    assert "0 of 4 cells have results" in (tmp_path / "reports" / "index.html").read_text()
