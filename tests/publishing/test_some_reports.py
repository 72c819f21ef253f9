"""Some reports in some formats, and the command `report`."""

import json
import shutil
from pathlib import Path

import pytest

from smmd_bench.errors import UserError
from smmd_bench.publishing.write_reports import write_some_reports
from tests.in_process import call
from tests.publishing.plugin_files import write_plugin
from tests.runs import write_run

UNDRAWN = r"""
figure = new_figure()
figure.subplots().set_title(r"$\frac{1}{$")
return Artefact("A caption.", figure=figure)
"""


@pytest.fixture
def run(run_folder, tmp_path):
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


@pytest.mark.parametrize(
    ("only", "names"),
    [
        (["table2"], ["arithmetic_table"]),
        (["figure7", "arithmetic_table", "Table 2"], ["error_histogram", "arithmetic_table"]),
    ],
)
def test_a_name_of_the_papers_is_that_of_its_report(run, only, names):
    sections, written = write_some_reports(run, only, ["tex"])
    assert [section.name for section in sections] == names
    found = {path for path in (run / "reports").rglob("*") if path.is_file()}
    assert found == {*written} == {run / "reports" / "tables" / f"{name}.tex" for name in names}


def test_a_figure_of_two_parts_is_both(tmp_path):
    sigmas = tuple(f"smmd[sigma={sigma}]" for sigma in (1, 3))
    losses = ("ce", *sigmas, "smmd", "smmd[lambda=1]", "smmd[lambda=9]")
    write_run(tmp_path, losses=losses, seeds=(0,), n=40)
    _, written = write_some_reports(tmp_path, ["figure3"], ["png"])
    assert {path.name for path in written} == {"sigma_sensitivity.png", "lambda_sensitivity.png"}


@pytest.mark.parametrize(
    ("only", "words"),
    [
        ("tabel2", "Unknown report 'tabel2'.*table2"),
        ("table1", "Nothing was made of .*: math_table: the run has no cell of gsm8k or svamp"),
        ("table", "Unknown report 'table'"),
    ],
)
def test_what_cannot_be_made_is_one_sentence(run, only, words):
    with pytest.raises(UserError, match=words):
        write_some_reports(run, [only])


def test_a_figure_that_cannot_be_saved_fails_the_command_and_keeps_the_others(run, tmp_path):
    plugin = str(write_plugin(tmp_path / "plugin.py", undrawn=UNDRAWN))
    words = ["--only", "undrawn,table2", "--format", "latex,png", "--plugin", plugin]
    said = call(["report", "run", *words], tmp_path)
    assert said.status == 1
    assert "Failed: report undrawn: ValueError" in said.stderr
    assert said.stdout.splitlines()[-1] == str(
        Path("run", "reports", "tables", "arithmetic_table.tex")
    )


def test_the_command_prints_the_files_and_notes_an_earlier_state_of_the_others(run, tmp_path):
    words = ["report", "run", "--only", "table2", "--format", "latex,markdown"]
    said = call([*words, "-q"], tmp_path)
    assert sorted(Path(line).name for line in said.stdout.splitlines()) == [
        "arithmetic_table.md",
        "arithmetic_table.tex",
    ]
    assert not said.stderr
    (run / "reports" / ".stamp").write_text("of an earlier state")
    said = call(words, tmp_path)
    assert "an earlier state of the run" in " ".join(said.stderr.split())
    with pytest.raises(UserError, match="Unknown format 'doc'"):
        call(["report", "run", "--format", "doc"], tmp_path)


def test_two_runs_make_one_report_in_a_folder_of_its_own(tmp_path):
    for folder, task in (("one", "arithmetic"), ("two", "gsm8k")):
        write_run(tmp_path / folder, tasks=(task,), losses=("ce",), seeds=(0,), n=9, resamples=9)
    with pytest.raises(UserError, match="--out"):
        call(["report", "one", "two"], tmp_path)
    said = call(["report", "one", "two", "--out", "both", "--json"], tmp_path)
    assert {row["task"] for row in json.loads(said.stdout)["metrics"]} == {"arithmetic", "gsm8k"}
