import os
import shlex
import subprocess
import sys

import click
import pytest
import yaml
from filelock import FileLock

from smmd_bench.cli import cli
from tests.plugin_system.loss_file import LOSS

from .conftest import run_here

MAIN_JOB = ["train-eval", "--task", "arithmetic", "--losses", "ce,ntl,smmd"]
COMMANDS = cli.list_commands(click.Context(cli))


def test_every_command_has_a_sentence_and_help_of_80_columns_with_examples():
    lines = run_here("--help", COLUMNS="80").stdout.split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in lines] == COMMANDS
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)
    for name in COMMANDS:
        out = run_here(name, "--help", COLUMNS="80")
        assert out.returncode == 0, name
        assert f"smmd-bench {name}" in out.stdout.split("Examples:")[1], name
        assert max(map(len, out.stdout.splitlines())) <= 80, name


COMPLETION = {
    "_SMMD_BENCH_COMPLETE": "fish_complete",
    "COMP_WORDS": "smmd-bench train-eval --losses",
    "COMP_CWORD": "ce,sm",
}


@pytest.mark.parametrize(
    ("arguments", "said", "heavy"),
    [
        ("--version", "smmd-bench, version ", {"rich", "pandas", "numpy"}),
        ("--help", "Commands:", {"rich", "pandas", "numpy"}),
        ("score --help", "Examples:", {"rich", "pandas", "numpy", "pyarrow"}),
        ("ls", "  smmd ", {"pandas", "numpy"}),
        ("ls models", "Qwen2.5-0.5B, 0.5B, N=10, bfloat16", {"pandas", "numpy"}),
        ("show RUN", "Completion", {"matplotlib"}),
        ("completion", "plain,ce,smmd\tL = L_CE + lambda L_SMMD", {"pandas", "numpy"}),
        ("train-eval --task arithmatic --losses ce", "did you mean arithmetic?", {"numpy"}),
        ("train-eval --task arithmetic --losses ce,smd", "did you mean smmd?", {"numpy"}),
        ("train-eval --task arithmetic --losses ce --engine vlm", "mean vllm?", {"numpy"}),
        ("train-eval --task arithmetic --losses ce --executor x", "known: local", {"numpy"}),
        ("train-eval --task arithmetic[levle=x] --losses ce", "did you mean level?", {"pandas"}),
        ("run FILE", "Unknown task 'arithmatic'", {"pandas"}),
        ("score --task arithmatic --predictions x", "did you mean arithmetic?", {"numpy"}),
        ("train-eval --task arithmetic --losses ce,smmd[sgma=2]", "did you mean sigma?", {"numpy"}),
        ("train-eval --task arithmetic --losses ce --model builtin/t", "mean builtin/", {"numpy"}),
        ("overhead --losses ntll", "did you mean ntl", {"numpy", "pandas"}),
        ("overhead --geometry tinny", "did you mean tiny?", {"numpy", "pandas"}),
        ("report RUN --format pgn", "did you mean png?", {"pandas", "matplotlib"}),
        ("report no-such-run", "is not a run folder", {"pandas", "matplotlib"}),
        ("export RUN --loss smd --out exported", "did you mean smmd?", {"pandas"}),
        ("regress RUN --suite mmluu", "did you mean mmlu", {"pandas", "lm_eval", "datasets"}),
        ("train-eval --task arithmetic --losses ce --out RUN", "is working on", {"pandas"}),
    ],
)
def test_what_must_be_quick_imports_no_heavy_library(arguments, said, heavy, run_folder, tmp_path):
    (file := tmp_path / "file.yaml").write_text("tasks: [arithmatic]\nlosses: [ce]\n")
    line = arguments.replace("RUN", str(run_folder)).replace("FILE", str(file))
    words = ["smmd-bench", *line.split()]
    code = (
        f"import sys; sys.argv = {words!r}\n"
        "from smmd_bench.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"assert not {heavy | {'torch', 'transformers'}!r} & set(sys.modules)"
    )
    more = COMPLETION if arguments == "completion" else {}
    words, env = [sys.executable, "-c", code], {**os.environ, **more}
    with FileLock(run_folder / ".lock"):  # as by another process
        out = subprocess.run(words, check=True, capture_output=True, text=True, env=env)
    assert said in out.stdout + out.stderr


MY_LOSS = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Mine:
    name: ClassVar[str] = "mine"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: float = 2.0

    def bind(self, vocabulary):
        raise NotImplementedError
"""


def test_sample_prints_examples_of_a_task():
    out = run_here("sample", "arithmetic[operations=1..2]", "-n", "3", "--json")
    lines = [yaml.safe_load(line) for line in out.stdout.splitlines()]
    assert len(lines) == 3
    assert all(line["operations"] in (1, 2) for line in lines)


def test_flags_and_yaml_print_each_other(tmp_path):
    flags = [*MAIN_JOB, "--seeds", "0,1", "--epochs", "2", "--no-base"]
    flags += ["--set", "learning_rate=3e-4", "--losses", "ce,smmd[sigma=1+2]"]
    text = run_here(*flags, "--print-yaml").stdout
    file = tmp_path / "experiment.yaml"
    file.write_text(text)
    command = shlex.split(run_here("run", file, "--print-flags").stdout)
    assert command[0] == "smmd-bench"
    assert run_here(*command[1:], "--print-yaml").stdout == text
    assert yaml.safe_load(text)["recipe"] == {"epochs": 2, "learning_rate": 0.0003}


def test_a_dry_run_lists_models_and_cells_and_writes_nothing(tmp_path):
    out = run_here(*MAIN_JOB, "--dry-run", cwd=tmp_path)
    assert out.returncode == 0
    assert "float32, Qwen2Tokenizer with N = 10" in out.stdout.splitlines()[0]
    assert out.stdout.count("to do: train, decode, measure\n") == 3
    assert out.stdout.count("to do: decode, measure\n") == 1  # the untuned model
    assert list(tmp_path.iterdir()) == []


def test_a_plan_says_which_decoders_answer(tmp_path):
    out = run_here(*MAIN_JOB, "--decoders", "median, mean", "--dry-run", cwd=tmp_path)
    assert "Decoded greedily, and by the mean and the median of p(number)." in out.stdout
    out = run_here(*MAIN_JOB, "--decoders", "medain", "--dry-run", cwd=tmp_path)
    assert out.returncode == 2
    assert "There is no decoder 'medain': did you mean median" in out.stderr


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ("ce,smmd", None),
        ("ce,ce,smmd[sigma=2],smmd", "Given more than once, and counted once: ce (losses), smmd"),
        ("ntl", "losses are compared with the untuned model only; add ce to"),
    ],
)
def test_a_dry_run_notes_what_may_not_be_meant(losses, said, tmp_path):
    out = run_here(*MAIN_JOB[:-1], losses, "--dry-run", cwd=tmp_path)
    assert out.returncode == 0
    assert out.stderr.count("Note: ") == (said is not None)
    assert (said or "") in " ".join(out.stderr.split())


def test_a_loss_of_a_plugin_has_one_spelling_in_a_file_too(tmp_path):
    (tmp_path / "mine.py").write_text(MY_LOSS)
    flags = [*MAIN_JOB[:-1], "ce,mine[weight=2.0],mine", "--plugin", "mine.py", "--print-yaml"]
    text = run_here(*flags, cwd=tmp_path).stdout
    assert yaml.safe_load(text)["losses"] == ["ce", "mine"]
    (tmp_path / "own.yaml").write_text(text.replace("- mine\n", "- mine[weight=2]\n"))
    command = run_here("run", "own.yaml", "--print-flags", cwd=tmp_path).stdout
    assert "--losses ce,mine " in command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train-evil", ["No such command 'train-evil'", "Did you mean 'train-eval'"]),
        ("train-eval --losses ce", ["--task"]),
        ("train-eval --task arithmatic --losses ce", ["did you mean arithmetic"]),
        ("train-eval --task arithmetic --losses smd", ["did you mean smmd"]),
        ("train-eval --task arithmetic --losses smmd[sgima=1]", ["did you mean sigma"]),
        ("JOB --model ./none", ["does not exist", "safetensors"]),
        ("train-eval --task arithmetic --losses SMMD", ["'SMMD': did you mean smmd?"]),
        ("JOB --dry-run --out=", ["--out names no folder: give it one, or leave it out."]),
        (
            "JOB --dry-run --set method=lora --set lora_targets=q_proj,vproj",
            ["asks for 'vproj', and no layer of", "did you mean v_proj"],
        ),
        ("JOB --seeds a", ["--seeds", "0,1,2"]),
        ("JOB --set x", ["KEY=VALUE"]),
        ("JOB --set epochs=1 --epochs 2", ["--epochs 2 and --set epochs=1 contradict"]),
        ("JOB --set epochs=1 --set epochs=2", ["epochs is given as 1 and as 2"]),
        ("JOB --stall nan", ["--stall", "nan is no number of minutes"]),
        ("JOB --tune=", ["tune[0] must name something"]),
        ("train-eval --task= --losses ce", ["--task", "give at least one TASK"]),
        ("train-eval --task arithmetic --losses=", ["--losses", "give at least one LOSS"]),
        ("report RUN --only=", ["--only", "give at least one NAME"]),
        ("sample arithmetic --seed -1", ["--seed", "0<=x"]),
        ("ls --plugin A.py --plugin B.py", ["B.py both define the loss mine"]),
        (
            "run TWICE",
            ["TWICE is not valid YAML", "the key tasks stands twice (line 3, column 1)."],
        ),
        ("run FILE", ["FILE is empty"]),
        ("JOB --set epochs=inf", ["epochs must be an integer, not inf"]),
        ("JOB --dry-run --executor loacl", ["did you mean local"]),
        ("JOB --dry-run --engine vlm", ["did you mean vllm"]),
        ("JOB --dry-run --out FILE", ["FILE cannot be made, because", "--out"]),
        ("JOB --dry-run --out FILE/x/y", ["FILE/x/y cannot be made, because"]),
        ("export RUN --out FILE/x", ["FILE/x cannot be made, because", "is a file"]),
        ("run none.yaml", ["none.yaml cannot be read"]),
        ("run LATIN", ["The experiment file LATIN is not UTF-8: save it as UTF-8."]),
        ("report none", ["none"]),
        ("ls loses", ["'loses' is not one of 'tasks', 'losses'"]),
        ("sample arithmetic --plugin none.py", ["none.py does not exist"]),
    ],
)
def test_a_mistake_is_one_sentence_with_status_2(arguments, words, tmp_path):
    files = {
        "FILE": b"",
        "LATIN": b"tasks: [arithmetic]\nlosses: [c\xff]\n",
        "TWICE": b"tasks: [arithmetic]\nlosses: [ce]\ntasks: [gsm8k]\n",
        "A.py": LOSS.encode(),
        "B.py": LOSS.encode(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    job = MAIN_JOB if arguments.startswith("JOB") else []
    out = run_here(*job, *arguments.removeprefix("JOB").split(), cwd=tmp_path)
    assert out.returncode == 2
    assert not out.stdout or "lora_targets" in arguments  # the recipe is said before the check
    assert out.stderr.splitlines()[-1].startswith("Error: ")
    for word in words:
        assert word in out.stderr
    assert {path.name for path in tmp_path.iterdir()} == set(files)


def test_an_error_of_the_system_names_the_path(tmp_path):
    (file := tmp_path / "FILE").touch()
    found = run_here("sample", "arithmetic", SMMD_BENCH_CACHE=str(file))
    assert found.returncode == 2
    assert found.stderr.startswith(f"Error: A file cannot be used ({file}")
    assert found.stderr.count("\n") == 1
