"""What commands say that need no training, and what they import for it."""

import json
import math
import re
import shutil
import subprocess
import sys

import click
import pandas as pd
import pytest
import yaml

from smmd_bench.cli import cli
from smmd_bench.cli.voice import rows_of
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import read_json, write_json
from tests.plugin_system.loss_file import LOSS
from tests.runs import planted_run, quick_run

from .conftest import run_here

COMMANDS = cli.list_commands(click.Context(cli))
JOB = "train-eval --task arithmetic --losses"


def test_every_command_has_a_sentence_and_help_of_80_columns_with_examples():
    overview = run_here("--help", COLUMNS="80").stdout
    _, _, commands = overview.partition("Daily work:\n")
    lines = commands.splitlines()
    lines = [line for line in lines if line and not line.endswith(":")]
    assert [line.split()[0] for line in lines] == COMMANDS
    for line in lines:
        assert re.search(r"[^.]\.$", line)

    for name in COMMANDS:
        out = run_here(f"{name} --help", COLUMNS="80")
        text = out.stdout
        assert out.returncode == 0, name
        assert f"smmd-bench {name}" in text.split("Examples:")[1], name
        assert max(map(len, text.splitlines())) <= 80, name


@pytest.mark.parametrize(
    ("words", "said", "heavy"),
    [
        ("--help", "Daily work:", "rich"),
        ("score --help", "Examples:", "rich"),
        ("ls", "  smmd ", "pandas"),
        (
            "train-eval --task arithmatic --losses ce",
            "did you mean arithmetic?",
            "numpy",
        ),
        ("overhead --losses ntll", "did you mean ntl", "pandas"),
        (f"{JOB} ce --model ./nowhere", "'./nowhere' does not exist", "pandas"),
        (f"{JOB} ce --model qwen/typo", "'qwen/typo' is not a folder", "pandas"),
        (f"{JOB} ce --model qwen/typo --dry-run", "the model qwen/typo", "pandas"),
        (f"{JOB} ce --model ./nowhere --out HELD", "Another process", "pandas"),
    ],
)
def test_what_must_be_quick_imports_no_heavy_library(words, said, heavy, tmp_path):
    words = words.replace("HELD", str(tmp_path))
    code = (
        f"import sys; sys.argv = {['smmd-bench', *words.split()]!r}\n"
        "from smmd_bench.cli import run_command\nrun_command()\n"
        f"assert not {{{heavy!r}, 'torch', 'matplotlib'}} & set(sys.modules)"
    )
    with RunDirectory(tmp_path).locked():
        out = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
    assert said in out.stdout + out.stderr


def test_flags_print_the_file_that_means_the_same(tmp_path):
    (tmp_path / "mine.py").write_text(LOSS)
    flags = (
        f"{JOB} ce,smmd[sigma=1+2],mine[lambda=1.0] --seeds 0,1 --epochs 2 --no-base "
        "--set learning_rate=3e-4 --tune learning_rate=1e-4,1e-3 --plugin mine.py"
    )
    text = run_here(f"{flags} --print-yaml", cwd=tmp_path).stdout
    content = yaml.safe_load(text)
    assert content["losses"] == ["ce", "smmd[sigma=1+2]", "mine"]
    assert content["recipe"] == {"epochs": 2, "learning_rate": 0.0003}

    (tmp_path / "file.yaml").write_text(text)
    by_flags, by_file = (
        json.loads(run_here(f"{words} --dry-run --json", cwd=tmp_path).stdout)
        for words in (flags, "run file.yaml")
    )
    # Others write on the disk meanwhile.
    assert by_flags.pop("free_disk_bytes") > 0
    del by_file["free_disk_bytes"]
    assert by_flags == by_file


@pytest.mark.usefixtures("few_reports")
@pytest.mark.parametrize("words", ["", "--only overview"])
def test_a_report_says_that_the_code_of_a_plugin_has_changed(words, tmp_path):
    run = quick_run(tmp_path / "run").path
    manifest = read_json(run / "manifest.json")
    for cell in manifest["cells"]:
        if cell["loss"] == "smmd":  # as if it had come from a file
            cell |= {"plugins": {"loss smmd": "of that time"}, "engine": "vllm"}
    write_json(run / "manifest.json", manifest)

    output = " ".join(run_here(f"report {run} {words}").stderr.split())
    assert (
        output.count(
            "Note: The code of the loss smmd is another one than that of the run"
        )
        == 1
    )
    assert "ntl" not in output
    if not words:
        assert "The code of the loss smmd" in (run / "reports/index.html").read_text()
        assert (
            "The code of the loss"
            in (run / "reports/tables/arithmetic_table.md").read_text()
        )

    for cell in manifest["cells"]:  # all of them first-party, and one is not any more
        cell |= {"plugins": {}, "engine": "vllm"}
    write_json(run / "manifest.json", manifest)
    (tmp_path / "mine.py").write_text(LOSS.replace('"mine"', '"ntl"'))
    out = run_here(f"report {run} {words} --plugin {tmp_path / 'mine.py'}")
    assert "The code of the loss ntl is another one" in " ".join(out.stderr.split())


@pytest.mark.usefixtures("few_reports")
def test_json_is_one_object_with_paths_and_rows(run_folder):
    content = json.loads(run_here(f"report {run_folder} --json").stdout)
    run = read_run(run_folder)
    assert content["run"] == str(run_folder)
    assert len(content["metrics"]) == len(run.metrics)
    assert len(content["comparisons"]) == len(run.comparisons)

    frame = pd.DataFrame(
        {"a": [1.5, math.nan, math.inf], "t": pd.Categorical(["x", None, "y"])}
    )
    assert rows_of(frame) == [
        {"a": 1.5, "t": "x"},
        {"a": None, "t": None},
        {"a": None, "t": "y"},
    ]


def test_show_lists_cells_then_the_examples_of_one_then_one_example(run_folder):
    def show(words=""):
        output = run_here(f"show {run_folder} {words} --json").stdout
        return pd.DataFrame(json.loads(output)["rows"])

    run = read_run(run_folder)
    assert [*show()["address"]] == [*run.cells["address"]]

    smmd = show("--loss smmd").set_index("seed").loc[1]
    address = smmd["address"]
    metrics = run.metrics.set_index("address")
    first = metrics.loc[address].iloc[0]
    assert smmd["metric"] == first["metric"]
    assert smmd["value"] == first["value"]

    completions = run.completions.set_index("address")
    answers = completions.loc[address, "completion"]
    of_cell = show(f"--cell {address[:8]} -n 3")
    assert [*of_cell["completion"]] == [*answers.head(3)]

    example = show("--uid test-000003 --seed 1")
    assert [*example["loss"]] == ["base", "ce", "ntl", "smmd"]
    assert example["prompt"].nunique() == 1


def test_show_counts_wrong_answers_and_shows_the_first_with_their_digits(run_folder):
    wrong = f"show {run_folder} --seed 1 --wrong --loss smmd -n 1"
    output = run_here(f"{wrong} --json").stdout
    (cell,) = json.loads(output)["cells"]
    metrics = read_run(run_folder).metrics
    metrics = metrics.set_index(["address", "metric"])
    address = cell["address"]
    accuracy = metrics.loc[(address, "exact_match"), "value"]
    assert accuracy == 100 - cell["wrong"] / 2

    title, _, line, note = run_here(wrong).stdout.splitlines()
    count = cell["wrong"]
    order = "the first 1, largest errors first"
    assert title == f"SMMD, seed 1: {count} of 200 wrong; {order}"
    (row,) = cell["rows"]
    assert line.startswith(row["uid"])
    assert row["completion"] in line

    percents = []
    for p in row["p_target"]:
        percent = f"{100 * p:.0f}"
        percents.append(percent)
    digits = " ".join(percents)
    assert line.endswith(digits)
    assert "probability" in note


def test_show_has_both_completions_of_a_flip_in_100_columns(run_folder):
    flips = f"show {run_folder} --seed 1 --flips ntl"
    output = run_here(f"{flips} --json").stdout
    (cell,) = json.loads(output)["cells"]
    gained = cell["gained"]
    lost = cell["lost"]

    text = run_here(flips).stdout
    title, header, *rows = text.splitlines()
    assert f"+{gained} only NTL has right" in title
    assert f"−{lost} only CE" in title
    for line in rows:
        assert len(line) <= 100

    columns = header.split()
    first_columns = columns[:5]
    assert first_columns == ["uid", "target", "CE", "NTL", "right"]
    answers = min(10, gained + lost)
    # The last line explains the probabilities.
    assert len(rows) == answers + 1


def test_show_has_an_example_with_the_probabilities_of_its_digits(run_folder):
    output = run_here(f"show {run_folder} --uid test-000003").stdout
    answers, _, digits = output.partition("Digit probabilities")
    for loss in ("ce", "ntl", "smmd"):
        assert re.search(rf"^{loss} .* (yes|no) ", answers, re.MULTILINE)
        assert re.search(rf"^ *\d +{loss} ", digits, re.MULTILINE)
    assert "0  1  2" in re.sub(" +", "  ", digits)


def test_the_digits_of_a_decimal_say_where_its_point_is(tmp_path):
    planted_run(tmp_path, ["12.75", "1"], {"ce": ["12.5", "2"]})
    digits = run_here(f"show {tmp_path} --uid p0").stdout
    lines = digits.partition("Digit probabilities")[2].splitlines()[2:6]
    assert [line.split()[0] for line in lines] == ["1", "2", ".7", "5"]


def test_compare_and_power_print_a_row_for_each_loss(run_folder):
    unchanged = run_here(f"compare {run_folder} {run_folder}")
    assert unchanged.returncode == 0
    assert unchanged.stdout.count("0.00 [") == 7
    out = run_here(f"compare {run_folder} --losses smmd[lambda=3],ce,ntl")
    assert "SMMD against others" in out.stdout

    all_metrics = run_here(f"compare {run_folder} --metric all --json")
    rows = json.loads(all_metrics.stdout)["rows"]
    assert {(row["loss"], row["against"]) for row in rows} == {
        ("ce", "ntl"),
        ("ce", "smmd"),
    }
    assert {"exact_match", "mean_absolute_error"} < {row["metric"] for row in rows}
    assert "Needed" in run_here(f"power {run_folder} --difference 2").stdout
    rows = json.loads(run_here(f"power {run_folder} --json").stdout)["rows"]
    assert {row["loss"] for row in rows} == {"ntl", "smmd"}


def test_power_says_beside_the_number_that_three_seeds_are_the_least(tmp_path):
    quick_run(tmp_path, n=100)
    output = " ".join(run_here(f"power {tmp_path} --difference 20").stdout.split())
    assert output.count("2 (take 3)") == 8
    assert "One seed says nothing of the spread over seeds: give 3" in output


def test_what_a_run_names_is_never_loaded(run_folder, tmp_path):
    """A run folder may come from a stranger."""
    marker, file = tmp_path / "loaded", tmp_path / "mine.py"
    run = shutil.copytree(run_folder, tmp_path / "run")
    file.write_text(f"import os\nos.mkdir({str(marker)!r})\n{LOSS}")
    manifest = read_json(run / "manifest.json")
    manifest["experiments"] = [{"name": "theirs", "plugins": [str(file)]}]
    write_json(run / "manifest.json", manifest)
    for words in ("show RUN", "compare RUN RUN", "report RUN --only scale_errors"):
        assert run_here(words.replace("RUN", str(run))).returncode == 0
    assert not marker.exists()

    run_here(f"show {run} --plugin {file}")
    assert marker.exists()


def test_validate_says_what_fails_with_status_1(tmp_path):
    assert "0 failed" in run_here("validate ce").stdout
    assert run_here(f"new loss broken --folder {tmp_path}").returncode == 0
    file = tmp_path / "broken.py"
    file.write_text(file.read_text().replace("@dataclass(frozen=True)\n", ""))
    out = run_here(f"validate {file} --json")
    (loss,) = json.loads(out.stdout)["plugins"]
    assert out.returncode == 1
    assert loss["plugin"] == "broken"
    assert any("not a dataclass" in check["detail"] for check in loss["checks"])
