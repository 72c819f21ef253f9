"""What click's protocol gives to a shell; the shell's own part is click's."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from smmd_bench.cli import cli

from .conftest import COMMAND


def complete(*words: str) -> list[str]:
    """The values that bash is offered for the last word."""
    shell = BashComplete(cli, {}, "smmd-bench", "_SMMD_BENCH_COMPLETE")
    return [item.value for item in shell.get_completions([*words[:-1]], words[-1])]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["tr"], ["train-eval"]),
        (["train-eval", "--trac"], ["--track"]),
        (["train-eval", "--track", "t"], ["tensorboard", "trackio"]),
        (["train-eval", "--task", "gs"], ["gsm8k"]),
        (["train-eval", "--losses", "ce,sm"], ["ce,smmd"]),
        (["train-eval", "--losses", "ntl,nt"], ["ntl,ntil"]),
        (["train-eval", "--losses", "smmd[si"], []),
        (["train-eval", "--model", "builtin/"], ["builtin/tiny", "builtin/tiny-vl"]),
        (["train-eval", "--engine", "v"], ["vllm"]),
        (["train-eval", "--executor", "lo"], ["local"]),
        (["sample", "svam"], ["svamp"]),
        (["prepare", "gsm8k", "--model", "Qwen/Qwen2.5-1"], ["Qwen/Qwen2.5-1.5B"]),
        (["ls", "lo"], ["losses"]),
        (["validate", "scale"], ["scale_errors"]),
        (["regress", "x", "--losses", "ba"], ["base"]),
        (["train-evil", "--t"], []),
    ],
)
def test_names_are_completed(words, found):
    assert complete(*words) == found


def test_runs_are_folders_with_a_manifest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "none").mkdir(parents=True)
    for name in ("runs/one", "runs/two", "elsewhere/three"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_text("{}")
    assert sorted(complete("report", "")) == ["runs/one", "runs/two"]
    assert complete("show", "runs/o") == ["runs/one"]
    assert complete("regress", "elsewhere/") == ["elsewhere/three"]
    assert complete("clean", "runs/one", "runs/t") == ["runs/two"]
    (tmp_path / "runs" / "two").rename(tmp_path / "runs" / "two,again")
    assert complete("show", "runs/two,") == ["runs/two,again"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_after_the_line_of_the_documentation():
    line = 'eval "$(_SMMD_BENCH_COMPLETE=bash_source smmd-bench)"'
    code = (
        f"{line}\nCOMP_WORDS=(smmd-bench train-eval --task clo) COMP_CWORD=3\n"
        "_smmd_bench_completion smmd-bench; echo ${COMPREPLY[@]}; complete -p smmd-bench"
    )
    environment = {**os.environ, "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}"}
    out = subprocess.run(["bash", "-c", code], capture_output=True, text=True, env=environment)
    assert out.stdout.splitlines()[0] == "clock_time"
    assert out.stdout.rstrip().endswith("-F _smmd_bench_completion smmd-bench")
