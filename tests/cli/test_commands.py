"""What commands say that need no training, and what they import for it."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pandas as pd
import pytest
import yaml

from smmd_bench.cli import cli
from smmd_bench.cli.voice import rows_of
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import RunDirectory
from tests.plugin_system.loss_file import LOSS
from tests.runs import quick_run

from .conftest import run_here

COMMANDS = cli.list_commands(click.Context(cli))
JOB = ["train-eval", "--task", "arithmetic", "--losses"]


def test_every_command_has_a_sentence_and_help_of_80_columns_with_examples():
    lines = (
        run_here("--help", COLUMNS="80")
        .stdout.partition("Daily work:\n")[2]
        .splitlines()
    )
    lines = [line for line in lines if line and not line.endswith(":")]
    assert [line.split()[0] for line in lines] == COMMANDS
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)

    for name in COMMANDS:
        out = run_here(name, "--help", COLUMNS="80")
        assert out.returncode == 0, name
        assert f"smmd-bench {name}" in out.stdout.split("Examples:")[1], name
        assert max(map(len, out.stdout.splitlines())) <= 80, name


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
    ],
)
def test_what_must_be_quick_imports_no_heavy_library(words, said, heavy):
    code = (
        f"import sys; sys.argv = {['smmd-bench', *words.split()]!r}\n"
        "from smmd_bench.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"assert not {{{heavy!r}, 'torch', 'matplotlib'}} & set(sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert said in out.stdout + out.stderr


def test_flags_print_the_file_that_means_the_same(tmp_path):
    (tmp_path / "mine.py").write_text(LOSS)
    flags = [
        *JOB,
        "ce,smmd[sigma=1+2],mine[lambda=1.0]",
        "--seeds",
        "0,1",
        "--epochs",
        "2",
    ]
    flags += [
        "--no-base",
        "--set",
        "learning_rate=3e-4",
        "--tune",
        "learning_rate=1e-4,1e-3",
    ]
    text = run_here(*flags, "--plugin", "mine.py", "--print-yaml", cwd=tmp_path).stdout
    content = yaml.safe_load(text)
    assert content["losses"] == ["ce", "smmd[sigma=1+2]", "mine"]
    assert content["recipe"] == {"epochs": 2, "learning_rate": 0.0003}
    (tmp_path / "file.yaml").write_text(text)
    dry = [run_here(*words, "--dry-run", "--json", cwd=tmp_path) for words in (
        [*flags, "--plugin", "mine.py"], ["run", "file.yaml"],
    )]  # fmt: skip
    assert dry[0].stdout == dry[1].stdout != ""


@pytest.mark.parametrize(
    ("losses", "note"), [("ce,smmd", ""), ("ntl", "to compare with: add it")]
)
def test_a_dry_run_says_what_is_to_be_done_and_writes_nothing(losses, note, tmp_path):
    requested = ("--decoders", "mean", "--seeds", "3", "--epochs", "1")
    out = run_here(*JOB, losses, *requested, "--dry-run", cwd=tmp_path)
    assert out.returncode == 0
    assert "N = 10" in out.stdout
    assert (
        "1 epoch, batch 64, rate 0.0005, seed 3, decoded greedily, mean; train"
        in out.stdout
    )
    assert note in " ".join(out.stderr.split())
    assert ("Note: " in out.stderr) == bool(note)
    cells = json.loads(
        run_here(*JOB, losses, "--dry-run", "--json", cwd=tmp_path).stdout
    )["cells"]
    assert [cell["to_do"][0] for cell in cells] == [
        "decode",
        *["train"] * (len(cells) - 1),
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_asks_once_what_is_missing(monkeypatch, tmp_path):
    asked = []
    missing = RunDirectory.missing

    def count(run, cells):
        asked.append(run)
        return missing(run, cells)

    monkeypatch.setattr(RunDirectory, "missing", count)
    assert run_here(*JOB, "ce", "--dry-run", cwd=tmp_path).returncode == 0
    assert len(asked) == 1


@pytest.mark.usefixtures("few_reports")
@pytest.mark.parametrize("words", [[], ["--only", "overview"]])
def test_a_report_says_that_the_code_of_a_plugin_has_changed(words, tmp_path):
    run = quick_run(tmp_path / "run").path
    manifest = json.loads((run / "manifest.json").read_text())
    for cell in manifest["cells"]:
        if cell["loss"] == "smmd":  # as if it had come from a file
            cell |= {"plugins": {"loss smmd": "of that time"}, "engine": "vllm"}
    (run / "manifest.json").write_text(json.dumps(manifest))

    output = " ".join(run_here("report", run, *words).stderr.split())
    assert (
        output.count(
            "Note: The code of the loss smmd is another one than that of the run"
        )
        == 1
    )
    assert "ntl" not in output
    if not words:
        assert (
            "The code of the loss smmd" in (run / "reports" / "index.html").read_text()
        )
        assert (
            "The code of the loss"
            in (run / "reports/tables/arithmetic_table.md").read_text()
        )

    for cell in manifest["cells"]:  # all of them first-party, and one is not any more
        cell |= {"plugins": {}, "engine": "vllm"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "mine.py").write_text(LOSS.replace('"mine"', '"ntl"'))
    out = run_here("report", run, *words, "--plugin", tmp_path / "mine.py")
    assert "The code of the loss ntl is another one" in " ".join(out.stderr.split())


@pytest.mark.usefixtures("few_reports")
def test_json_is_one_object_with_paths_and_rows(run_folder):
    content = json.loads(run_here("report", run_folder, "--json").stdout)
    run = read_run(run_folder)
    assert (content["run"], len(content["metrics"])) == (
        str(run_folder),
        len(run.metrics),
    )
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
    def rows(*words: object):
        return json.loads(run_here("show", run_folder, *words, "--json").stdout)["rows"]

    run = read_run(run_folder)
    assert [row["address"] for row in rows()] == list(run.cells["address"])

    (smmd,) = [row for row in rows("--loss", "smmd") if row["seed"] == 1]
    address = smmd["address"]
    first = run.metrics[run.metrics["address"] == address].iloc[0]
    assert smmd["metric"] == first["metric"]
    assert smmd["value"] == first["value"]

    answers = run.completions[run.completions["address"] == address]
    of_cell = rows("--cell", address[:8], "-n", 3)
    assert [row["completion"] for row in of_cell] == list(answers["completion"].head(3))

    example = rows("--uid", "test-000003", "--seed", 1)
    assert [row["loss"] for row in example] == ["base", "ce", "ntl", "smmd"]
    assert len({row["prompt"] for row in example}) == 1


def test_compare_and_power_print_a_row_for_each_loss(run_folder):
    unchanged = run_here("compare", run_folder, run_folder)
    assert (unchanged.returncode, unchanged.stdout.count("0.00 [")) == (0, 7)
    out = run_here("compare", run_folder, "--losses", "smmd[lambda=3],ce,ntl")
    assert "SMMD against others" in out.stdout
    assert "Needed" in run_here("power", run_folder, "--difference", "2").stdout
    rows = json.loads(run_here("power", run_folder, "--json").stdout)["rows"]
    assert {row["loss"] for row in rows} == {"ntl", "smmd"}


def test_power_says_beside_the_number_that_three_seeds_are_the_least(tmp_path):
    out = run_here("power", quick_run(tmp_path, n=100).path, "--difference", "20")
    assert out.stdout.count("2 (take 3)") == 8
    assert "One seed says nothing of the spread over seeds: give 3" in " ".join(
        out.stdout.split()
    )


def test_what_a_run_names_is_never_loaded(run_folder, tmp_path):
    """A run folder may come from a stranger."""
    marker, run = (
        tmp_path / "loaded",
        Path(shutil.copytree(run_folder, tmp_path / "run")),
    )
    (file := tmp_path / "mine.py").write_text(
        f"import os\nos.mkdir({str(marker)!r})\n{LOSS}"
    )
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["experiments"] = [{"name": "theirs", "plugins": [str(file)]}]
    (run / "manifest.json").write_text(json.dumps(manifest))
    for words in ("show RUN", "compare RUN RUN", "report RUN --only scale_errors"):
        assert run_here(*words.replace("RUN", str(run)).split()).returncode == 0
    assert not marker.exists()
    run_here("show", run, "--plugin", file)
    assert marker.exists()


def test_validate_says_what_fails_with_status_1(tmp_path):
    assert "0 failed" in run_here("validate", "ce").stdout
    assert run_here("new", "loss", "broken", "--folder", tmp_path).returncode == 0
    file = tmp_path / "broken.py"
    file.write_text(file.read_text().replace("@dataclass(frozen=True)\n", ""))
    out = run_here("validate", file, "--json")
    (loss,) = json.loads(out.stdout)["plugins"]
    assert (out.returncode, loss["plugin"]) == (1, "broken")
    assert any("not a dataclass" in check["detail"] for check in loss["checks"])
