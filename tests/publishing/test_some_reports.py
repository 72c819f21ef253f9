"""Some reports in some formats, by the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from smmd_bench.errors import UserError
from smmd_bench.publishing.write_reports import write_reports, write_some_reports
from tests.cli.conftest import call
from tests.publishing.plugin_files import write_plugin
from tests.runs import write_run

UNDRAWN = r"""
figure = new_figure()
figure.subplots().set_title(r"$\frac{1}{$")
return Artefact("A caption.", figure=figure)
"""


@pytest.fixture
def run(run_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


def files(run: Path) -> set[str]:
    return {
        str(f.relative_to(run / "reports")) for f in (run / "reports").rglob("*") if f.is_file()
    }


def test_a_name_of_the_papers_is_that_of_its_report(run: Path) -> None:
    sections, written = write_some_reports(run, ["table2"], ["tex"])
    assert [section.name for section in sections] == ["arithmetic_table"]
    assert [path.name for path in written] == ["arithmetic_table.tex"]
    assert files(run) == {"tables/arithmetic_table.tex"}


def test_some_are_the_bytes_of_all_and_leave_the_page_alone(run: Path) -> None:
    write_reports(run)
    before = {name: (run / "reports" / name).read_bytes() for name in files(run)}
    write_some_reports(run, ["arithmetic_table", "error_histogram"])
    assert {name: (run / "reports" / name).read_bytes() for name in files(run)} == before


def test_a_figure_of_two_parts_is_both(tmp_path: Path) -> None:
    losses = (
        "ce",
        *(f"smmd[sigma={s}]" for s in (1, 3)),
        "smmd",
        "smmd[lambda=1]",
        "smmd[lambda=9]",
    )
    write_run(tmp_path, losses=losses, seeds=(0,), n=40)
    _, written = write_some_reports(tmp_path, ["figure3"], ["png"])
    assert {path.name for path in written} == {"sigma_sensitivity.png", "lambda_sensitivity.png"}


def test_figures_of_the_appendix_have_the_numbers_of_the_paper(run: Path) -> None:
    sections, written = write_some_reports(run, ["table2", "figure4", "figure7"], ["tex"])
    names = ["arithmetic_table", "dataset_samples", "error_histogram"]
    assert [section.name for section in sections] == names
    assert {path.name for path in written} >= {"arithmetic_table.tex"}


@pytest.mark.parametrize(
    ("only", "words"),
    [
        ("tabel2", "Unknown report 'tabel2'.*table2"),
        ("table1", "Nothing was made of .*: math_table: the run has no cell of gsm8k or svamp"),
        ("table", "Unknown report 'table'"),
    ],
)
def test_what_cannot_be_made_is_one_sentence(run: Path, only: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        write_some_reports(run, [only])


def test_a_figure_that_cannot_be_saved_fails_the_command_and_keeps_the_others(
    run: Path, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path / "plugin.py", undrawn=UNDRAWN)
    for only, names in (("undrawn", []), ("undrawn,table2", ["arithmetic_table.tex"])):
        made = call("report", run, "--only", only, "--format", "latex,png", "--plugin", plugin)
        assert made.returncode == 1, made.stderr
        assert "Failed: report undrawn: ValueError" in made.stderr
        assert [Path(line).name for line in made.stdout.splitlines()] == names


def test_the_command_prints_the_files_and_makes_one_report_of_two_runs(
    run: Path, tmp_path: Path
) -> None:
    made = call("report", run, "--only", "table2", "--format", "latex,markdown", "-q")
    assert made.returncode == 0, made.stderr
    names = [Path(line).name for line in made.stdout.splitlines()]
    assert sorted(names) == ["arithmetic_table.md", "arithmetic_table.tex"]
    assert call("report", run, "--format", "doc").returncode == 2
    write_run(tmp_path / "other", tasks=("gsm8k",), seeds=(0,))
    assert "--out" in call("report", run, tmp_path / "other").stderr
    both = call("report", run, tmp_path / "other", "--out", tmp_path / "both", "--json")
    assert both.returncode == 0, both.stderr
    assert {row["task"] for row in json.loads(both.stdout)["metrics"]} == {
        "arithmetic[operations=1..2]",
        "gsm8k",
    }


def test_some_reports_of_another_state_than_the_others_are_noted(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "copy"))
    only = ("--only", "table2", "--format", "latex")
    assert "earlier state" not in call("report", folder, *only).stderr
    (folder / "reports").mkdir(exist_ok=True)
    (folder / "reports" / ".stamp").write_text("of an earlier state")
    assert "are of an earlier state of the run" in " ".join(
        call("report", folder, *only).stderr.split()
    )
