import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

COMMAND = str(Path(sys.executable).parent / "smmd-bench")
MAIN_JOB = ["train-eval", "--task", "arithmetic", "--losses", "ce,ntl,smmd"]


def call(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, cwd=cwd)


@pytest.mark.parametrize("name", ["train-eval", "run", "report", "sample", "ls", "prepare"])
def test_every_command_has_help_with_examples(name: str) -> None:
    out = call(name, "--help")
    assert out.returncode == 0
    assert f"smmd-bench {name}" in out.stdout.split("Examples:")[1]


def test_the_version_is_printed() -> None:
    assert call("--version").stdout.startswith("smmd-bench, version ")


def test_ls_models_names_the_papers_backbones_without_torch() -> None:
    code = (
        "import sys; sys.argv = ['smmd-bench', 'ls', 'models'];\n"
        "from smmd_bench.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'pandas', 'transformers'} & set(sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    lines = [line.split(maxsplit=1) for line in out.stdout.splitlines()]
    found = {words[0]: words[1] for words in lines if len(words) == 2}
    assert found["Qwen/Qwen2.5-0.5B"] == "Qwen2.5-0.5B, 0.5B, N=10, bfloat16"
    assert found["meta-llama/Meta-Llama-3-8B"] == "Llama3-8B, 8B, N=1000, bfloat16"
    assert "builtin/tiny" in found


def test_sample_prints_examples_of_a_task() -> None:
    out = call("sample", "arithmetic[operations=1..2]", "-n", "3", "--json").stdout.splitlines()
    lines = [yaml.safe_load(line) for line in out]
    assert len(lines) == 3
    assert all(line["operations"] in (1, 2) for line in lines)


def test_flags_and_yaml_print_each_other(tmp_path: Path) -> None:
    flags = [*MAIN_JOB, "--seeds", "0,1", "--epochs", "2", "--no-base"]
    flags += ["--set", "learning_rate=3e-4", "--losses", "ce,smmd[sigma=1+2]"]
    text = call(*flags, "--print-yaml").stdout
    file = tmp_path / "experiment.yaml"
    file.write_text(text)
    command = shlex.split(call("run", str(file), "--print-flags").stdout)
    assert command[0] == "smmd-bench"
    assert call(*command[1:], "--print-yaml").stdout == text
    assert yaml.safe_load(text)["recipe"] == {"epochs": 2, "learning_rate": 0.0003}


def test_a_dry_run_lists_cells_and_time_and_writes_nothing(tmp_path: Path) -> None:
    out = call(*MAIN_JOB, "--dry-run", cwd=tmp_path)
    assert out.returncode == 0
    assert out.stdout.count("to do: train, decode, measure, about") == 3
    assert out.stdout.count("to do: decode, measure, about") == 1  # the untuned model
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train-evil"], ["No such command 'train-evil'", "Did you mean 'train-eval'"]),
        (["train-eval", "--losses", "ce"], ["--task"]),
        (["train-eval", "--task", "arithmatic", "--losses", "ce"], ["did you mean arithmetic"]),
        (["train-eval", "--task", "arithmetic", "--losses", "smd"], ["did you mean smmd"]),
        (
            ["train-eval", "--task", "arithmetic", "--losses", "smmd[sgima=1]"],
            ["did you mean sigma"],
        ),
        (
            ["train-eval", "--task", "arithmetic", "--losses", "smmd[sigma=0]"],
            ["sigma must be from 0.001"],
        ),
        (["train-eval", "--task", "arithmetic", "--losses", "ntl[lambda=-1]"], ["must be >= 0"]),
        (
            ["train-eval", "--task", "arithmetic", "--losses", "ce", "--model", "./none"],
            ["does not exist", "safetensors"],
        ),
        (["train-eval", "--task", "arithmetic", "--losses", "ce", "--seeds", "a"], ["0,1,2"]),
        (["train-eval", "--task", "arithmetic", "--losses", "ce", "--set", "x"], ["KEY=VALUE"]),
        ([*MAIN_JOB, "--seeds", "-1"], ["from 0 to 4294967295, not -1"]),
        ([*MAIN_JOB, "--set", "epochs=inf"], ["epochs=inf", "an integer"]),
        ([*MAIN_JOB, "--dry-run", "--executor", "loacl"], ["did you mean local"]),
        ([*MAIN_JOB, "--dry-run", "--engine", "vlm"], ["did you mean vllm"]),
        (["run", "none.yaml"], ["cannot be read"]),
        (["report", "none"], ["none"]),
        (["ls", "loses"], ["'loses' is not one of 'tasks', 'losses'"]),
        (["sample", "arithmetic", "--plugin", "none.py"], ["does not exist"]),
    ],
)
def test_a_mistake_is_one_sentence_with_status_2(
    arguments: list[str], words: list[str], tmp_path: Path
) -> None:
    out = call(*arguments, cwd=tmp_path)
    assert out.returncode == 2
    assert out.stdout == ""
    for word in words:
        assert word in out.stderr
    assert "Traceback" not in out.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_at_or_below_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "FILE").touch()
    for out in ("FILE", "FILE/x/y"):
        found = call(*MAIN_JOB, "--dry-run", "--out", out, cwd=tmp_path)
        assert (found.returncode, found.stdout) == (2, "")
        assert f"{out} cannot be made, because" in found.stderr
        assert "--out" in found.stderr


def test_an_experiment_that_is_not_utf_8_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_bytes(b"tasks: [arithmetic]\nlosses: [c\xff]\n")
    found = call("run", str(file), "--dry-run")
    assert found.returncode == 2
    assert found.stderr == f"Error: The experiment file {file} is not UTF-8: save it as UTF-8.\n"


def test_an_error_of_the_system_names_the_path(tmp_path: Path) -> None:
    file = tmp_path / "FILE"
    file.touch()
    found = subprocess.run(
        [COMMAND, "sample", "arithmetic"],
        capture_output=True,
        text=True,
        env={**os.environ, "SMMD_BENCH_CACHE": str(file)},
    )
    assert found.returncode == 2
    assert found.stderr.startswith(f"Error: A file cannot be used ({file}")
    assert found.stderr.count("\n") == 1


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys; sys.argv = ['smmd-bench', '--help'];\n"
        "from smmd_bench.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'pandas', 'rich', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
