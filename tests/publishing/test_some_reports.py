"""All reports of a run, some of them in some formats, and the command `report`."""

import json
import shutil
from pathlib import Path

import pytest

from smmd_bench.plugin_system import registry
from smmd_bench.publishing import write_reports as module
from smmd_bench.publishing.write_reports import write_reports, write_some_reports
from tests.conftest import expect_user_error
from tests.in_process import call
from tests.runs import write_run

PLUGIN = r"""
from dataclasses import dataclass
from typing import ClassVar
import pandas as pd
from smmd_bench import new_figure
from smmd_bench.contracts import Artefact

@dataclass(frozen=True)
class Cells:
    name: ClassVar[str] = "cells"
    title: ClassVar[str] = "Cells"
    paper: ClassVar[str] = ""

    def build(self, run):
        return Artefact("A caption.", pd.DataFrame({"Cells": [str(len(run.cells))]}))

class Undrawn(Cells):
    name: ClassVar[str] = "undrawn"

    def build(self, run):
        figure = new_figure()
        figure.subplots().set_title(r"$\frac{1}{$")
        return Artefact("A caption.", figure=figure)
"""


@pytest.fixture
def plugin(tmp_path):
    """A file of two reports, one of which fails."""
    file = tmp_path / "plugin.py"
    file.write_text(PLUGIN)
    return file


@pytest.fixture
def run(run_folder, tmp_path):
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


@pytest.fixture
def only(monkeypatch):
    """`only(name, ...)`: of the installed reports those with these names."""
    every = registry.points

    def keep(*names):
        points = {
            name: point for name, point in every("reports").items() if name in names
        }
        monkeypatch.setattr(
            registry, "points", lambda g: points if g == "reports" else every(g)
        )

    return keep


def contents(folder):
    files = (file for file in (folder / "reports").rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def test_each_report_is_made_and_one_that_fails_leaves_the_others(run, only, plugin):
    only("arithmetic_table", "overview", "math_table")
    registry.load_plugin_file(plugin)
    steps = []
    sections = write_reports(run, lambda *step: steps.append(step))
    assert steps == [("make reports", number, 5) for number in range(1, 6)]

    failed = [section.name for section in sections if section.error]
    assert failed == ["undrawn"]
    errors = json.loads(contents(run)["reports/failed.json"])
    assert "ParseSyntaxException" in errors["undrawn"]["traceback"]


def test_files_of_people_stay_and_those_of_a_report_that_skips_now_go(run, only):
    only("arithmetic_table", "math_table")
    tables = run / "reports/tables"
    tables.mkdir(parents=True)
    (tables / "by_hand.csv").write_text("by hand")
    (tables / "math_table.csv").write_text("of an earlier state")
    write_reports(run)
    assert (tables / "by_hand.csv").read_text() == "by hand"
    assert not (tables / "math_table.csv").exists()
    assert (tables / "arithmetic_table.csv").is_file()


@pytest.mark.parametrize(
    ("only", "names"),
    [
        (["table2"], ["arithmetic_table"]),
        (
            ["figure7", "arithmetic_table", "Table 2"],
            ["error_histogram", "arithmetic_table"],
        ),
    ],
)
def test_a_name_of_the_papers_is_that_of_its_report(run, only, names):
    sections = write_some_reports(run, only, ["tex"])
    assert [section.name for section in sections] == names
    assert {*contents(run)} == {f"reports/tables/{name}.tex" for name in names}


@pytest.mark.parametrize(
    ("only", "words"),
    [
        ("tabel2", "Unknown report 'tabel2'.*table2"),
        (
            "table1",
            "Nothing was made of .*: math_table: the run has no results of gsm8k or svamp; its "
            "results are in arithmetic_table",
        ),
        ("table", "Unknown report 'table'"),
    ],
)
def test_what_cannot_be_made_is_one_sentence(run, only, words):
    write_some_reports(run, ["arithmetic_table"], ["md"])
    with expect_user_error(words):
        write_some_reports(run, [only])


def test_a_figure_that_cannot_be_saved_fails_the_command_and_keeps_the_others(
    run, plugin, tmp_path
):
    words = f"report run --only undrawn,table2 --format latex,png --plugin {plugin}"
    result = call(words, tmp_path)
    assert result.status == 1
    errors = result.stderr.splitlines()
    assert "Failed: report undrawn: ValueError" in result.stderr
    assert errors[-1] == "run/reports/tables/arithmetic_table.tex"

    # Nothing else, for a pipe.
    output = result.stdout.splitlines()
    assert output[1].startswith("\\begin{table")


def test_an_unknown_format_is_named_and_a_figure_of_two_panels_has_both(tmp_path):
    with expect_user_error("Unknown format 'doc'"):
        call("report run --format doc", tmp_path)
    assert module.find_reports(["figure3"]) == [
        "lambda_sensitivity",
        "sigma_sensitivity",
    ]


def test_columns_of_tables_are_chosen_and_an_unknown_one_is_named(run, tmp_path):
    files = contents(run)
    words = "report run --only table2 --format csv --columns"
    result = call(f"{words} 'Acc (%),Loss,Loss'", tmp_path)
    assert result.status == 0
    assert result.stdout.startswith("Acc (%),Loss\n")
    with expect_user_error(r"Unknown column 'Acc': did you mean Acc \(%\)"):
        call(f"{words} Acc", tmp_path)
    assert contents(run) == files  # a table of some columns takes no place


def test_a_run_of_a_plugin_that_is_not_here_has_no_report(run):
    file = run / "manifest.json"
    text = file.read_text()
    file.write_text(text.replace('"loss_name": "smmd"', '"loss_name": "own"'))
    error = r"run was made with plugins that are not here \(own\): name their files with --plugin"
    for report in (
        write_reports,
        lambda folder: write_some_reports(folder, ["verdict"]),
    ):
        with expect_user_error(error):
            report(run)
    assert not (run / "reports").exists()


def test_a_pdf_has_its_fonts_as_outlines(run):
    (section,) = write_some_reports(run, ["overview"], ["pdf"])
    assert b"/FontFile2" in section.files[0].read_bytes()


def test_two_runs_make_one_report_in_a_folder_of_its_own(tmp_path):
    for folder, task in (("one", "arithmetic"), ("two", "gsm8k")):
        write_run(
            tmp_path / folder,
            tasks=(task,),
            losses=("ce",),
            seeds=(0,),
            n=9,
            resamples=9,
        )
    with expect_user_error("--out"):
        call("report one two", tmp_path)

    result = call("report one two --out both --json", tmp_path)
    metrics = json.loads(result.stdout)["metrics"]
    assert {row["task"] for row in metrics} == {"arithmetic", "gsm8k"}
