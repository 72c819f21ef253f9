"""What click's protocol gives to a shell; the shell's own part is click's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import COMMAND, call


def complete(*words: str, cwd: Path | None = None) -> list[str]:
    """The values that bash is offered for the last word."""
    out = call(
        cwd=cwd,
        _SMMD_BENCH_COMPLETE="bash_complete",
        COMP_WORDS=" ".join(["smmd-bench", *words]),
        COMP_CWORD=str(len(words)),
    )
    assert out.stderr == ""
    return [line.partition(",")[2] for line in out.stdout.splitlines() if line]


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
        (["regress", "x", "--losses", "b"], ["base"]),
        (["train-evil", "--t"], []),
    ],
)
def test_names_are_completed(words, found):
    assert complete(*words) == found


def test_runs_are_folders_with_a_manifest(tmp_path):
    for name in ("runs/one", "runs/two", "elsewhere/three", "runs/none"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("runs/one", "runs/two", "elsewhere/three"):
        (tmp_path / name / "manifest.json").write_text("{}")
    assert sorted(complete("report", "", cwd=tmp_path)) == ["runs/one", "runs/two"]
    assert complete("show", "runs/o", cwd=tmp_path) == ["runs/one"]
    assert complete("regress", "elsewhere/", cwd=tmp_path) == ["elsewhere/three"]
    assert complete("clean", "runs/one", "runs/t", cwd=tmp_path) == ["runs/two"]


def test_completion_imports_no_torch_and_offers_summaries():
    code = (
        "import sys; sys.argv = ['smmd-bench'];\n"
        "from smmd_bench.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'pandas', 'transformers', 'numpy'} & set(sys.modules)"
    )
    words = {"COMP_WORDS": "smmd-bench train-eval --losses", "COMP_CWORD": "ce,sm"}
    environment = {**os.environ, **words, "_SMMD_BENCH_COMPLETE": "fish_complete"}
    out = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    assert "plain,ce,smmd\tL = L_CE + lambda L_SMMD" in out.stdout


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
