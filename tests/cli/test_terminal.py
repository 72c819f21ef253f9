"""Widths, colours and plain lines: on pipes of 80 columns, and on a real pseudo-terminal."""

import re

import pytest
from rich.console import Console

from smmd_bench.cli.voice import Voice
from smmd_bench.publishing.write_reports import write_some_reports
from smmd_bench.run.progress import shown

from .conftest import call, on_terminal, run_here

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|4[0-7])[;m]")
DRY = ["train-eval", "--task", "arithmetic", "--losses", "ce,smmd[sigma=1+2,lambda=5]", "--dry-run"]


def lines(text: str) -> list[str]:
    """What is seen of what was written; a line that is written over shows its last state."""
    return [
        line.rpartition("\r")[2] for line in ESCAPE.sub("", text).replace("\r\n", "\n").split("\n")
    ]


@pytest.fixture(scope="module")
def dry(tmp_path_factory):
    """A dry run in an empty folder, as a terminal of 80 columns shows it."""
    return lines(on_terminal(*DRY, cwd=tmp_path_factory.mktemp("dry")))


@pytest.mark.parametrize(
    ("words", "columns"),
    [("report --only arithmetic_table,verdict", 120), ("show", 80), ("show", 120)],
)
def test_a_run_fits_the_terminal(run_folder, words, columns):
    name, *options = words.split()
    seen = lines(on_terminal(name, run_folder, *options, columns=columns))
    paths = [line for line in seen if str(run_folder) in line]
    widths = [len(line) for line in seen if line not in paths]
    assert 55 < max(widths) <= columns


@pytest.mark.parametrize(
    "words",
    ["ls", "ls -v", pytest.param("doctor", marks=pytest.mark.slow),
     "sample arithmetic -n 1", "clean --dry-run", "prepare arithmetic --model builtin/tiny"],
)  # fmt: skip
def test_80_columns_are_enough(words, tmp_path):
    seen = lines(on_terminal(*words.split(), cwd=tmp_path))
    assert [line for line in seen if len(line) > 80 and " /" not in line] == []


def test_80_columns_are_enough_for_a_dry_run(dry):
    assert [line for line in dry if len(line) > 80 and " /" not in line] == []


def test_words_are_not_broken_on_a_terminal_and_a_pipe_gets_whole_lines(dry, tmp_path):
    piped = call(*DRY, cwd=tmp_path, COLUMNS="").stdout.splitlines()
    assert len(piped[1]) > 80
    assert " ".join(line.strip() for line in dry[1:4]).startswith(piped[1][:150])


def test_pipes_and_no_color_have_no_colours(run_folder):
    assert COLOUR.search(on_terminal("show", run_folder))
    assert not COLOUR.search(on_terminal("show", run_folder, NO_COLOR="1"))
    assert "\x1b" not in call("show", run_folder).stdout
    assert "\x1b" not in call("ls", "-v").stdout


@pytest.mark.usefixtures("few_reports")
def test_published_tables_follow_columns(run_folder, monkeypatch, capsys):
    shown = run_here("report", run_folder, COLUMNS="80").stdout
    sections = write_some_reports(run_folder, ["arithmetic_table"], ["csv"])

    def published(columns):
        monkeypatch.setenv("COLUMNS", columns)
        Voice().tables(sections)
        return capsys.readouterr().out.splitlines()

    narrow, tables, wide = map(published, ("40", "80", "100"))
    assert "\n".join(tables) in shown
    assert narrow == tables  # not below 80
    assert 60 < max(map(len, tables)) <= 80 < max(map(len, wide)) <= 100


def test_brackets_are_no_markup_in_progress_on_a_pipe_and_on_a_terminal(capsys):
    for console in (Console(), Console(force_terminal=True, width=80, color_system=None)):
        with shown(console) as progress:
            progress("validate smmd[sigma=1,lambda=5] seed 0", 30, 60)
            progress("a note of smmd[red]", 0, 0)
        out = capsys.readouterr().out
        assert "a note of smmd[red]" in out
        assert "validate smmd[sigma=1" in out
        assert re.search("30/60|30 of 60", out)
    assert len(f"validate{lines(out.rpartition('validate')[2])[0]}".rstrip()) <= 80


def test_what_the_encoding_lacks_is_a_question_mark(run_folder):
    ascii_only = {"PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    said = []
    for words in (["validate", "local"], ["compare", run_folder, run_folder], ["show", run_folder]):
        out = call(*words, **ascii_only)
        assert (out.returncode, out.stdout.isascii()) == (0, True), out.stderr
        said.append(out.stdout)
    assert "? " in said[0]
