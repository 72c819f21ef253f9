import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.contracts import Artefact
from smmd_bench.publishing.publish import build, publish
from smmd_bench.publishing.style import new_figure
from smmd_bench.results.files import write_parquet
from smmd_bench.results.run import RunFrames
from tests.runs import write_run


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


@pytest.mark.parametrize("report", [Failing(), FailingToDraw()], ids=lambda r: r.name)
def test_a_report_that_raises_is_listed_and_breaks_nothing_else(run, report, caplog):
    with caplog.at_level(logging.CRITICAL):
        publish(run, [report, Both()])
    assert "tables/both.csv" in files(run)
    assert not any(report.name in name or name.endswith(".part") for name in files(run))
    assert "This report failed, and the others are not affected" in page(run)
    assert "<script>boom" not in page(run)


def test_a_skipped_report_is_listed_with_its_reason(run):
    (section,) = build(run, [Skipping()])
    assert section.skipped == "nothing to show"
    publish(run, [Skipping()])
    assert "A report that is skipped, not shown: nothing to show" in page(run)


def test_the_page_needs_nothing_from_a_network(run):
    publish(run, [Both()])
    assert re.findall(r"(?:src|href)=\"(?!data:|#|tables/|figures/)[^\"]*\"", page(run)) == []
    assert not re.search(r"@import|url\(|fetch\(|https?://", page(run))
    assert "default-src 'none'" in page(run)


def test_the_page_escapes_what_reports_and_models_say(run):
    cell = run.path / "cells" / run.cells["address"].iloc[1] / "completions.parquet"
    hostile = "</script><img src=x onerror=alert(1)>"
    write_parquet(cell, pd.read_parquet(cell).assign(completion=hostile))
    publish(sb.read_run(run.path), [Both()])
    text = page(run)
    assert "&lt;i&gt;&amp;&lt;/i&gt;" in text
    assert "Both &lt;of&gt; them" in text
    assert "<img src=x" not in text
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert hostile in {answer for row in json.loads(data[1])["rows"] for answer in row[3]}


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
