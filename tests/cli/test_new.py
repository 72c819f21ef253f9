"""What `smmd-bench new` writes works, is clean, and passes its own tests."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import run_here

BIN = Path(sys.executable).parent
KINDS = ("task", "loss", "report")


def run(*command: str | Path, cwd: Path, **more: str) -> str:
    words, environment = [str(word) for word in command], {**os.environ, **more}
    out = subprocess.run(words, cwd=cwd, capture_output=True, text=True, env=environment)
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout


def test_what_is_written_works_is_clean_and_passes_its_own_tests(tmp_path):
    for kind in KINDS:
        assert run_here("new", kind, f"my_{kind}", cwd=tmp_path).returncode == 0
    lines = [f'{{"Problem": "{at}?", "label": "{at}"}}' for at in range(60)]
    (tmp_path / "n.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    lines = ["Problem\tlabel", *(f"{at}?\ta, {at}" for at in range(60))]
    (tmp_path / "words.tsv").write_text("\n".join(lines))
    for file in ("n.jsonl.gz", "words.tsv"):
        words = ("new", "task", f"my_{file.partition('.')[0]}", "--from", file)
        assert run_here(*words, cwd=tmp_path).returncode == 0
    rules = ["--isolated", "--line-length", "100", "--quiet"]
    run(BIN / "ruff", "check", *rules, "--select", "E,F,W,I,UP,B,N,RUF,SIM,PT", ".", cwd=tmp_path)
    run(BIN / "ruff", "format", "--check", *rules, ".", cwd=tmp_path)
    lean = ["-p", "no:hypothesispytest"]  # three seconds of imports
    passed = run(BIN / "python", "-m", "pytest", "-q", "-W", "error", *lean, ".", cwd=tmp_path)
    assert passed.splitlines()[-1].startswith("17 passed")
    files = [part for kind in KINDS for part in ("--plugin", f"my_{kind}.py")]
    listed = run(BIN / "smmd-bench", "ls", *files, cwd=tmp_path)
    for kind in KINDS:
        assert f"my_{kind} " in listed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("task arithmetic", "choose another, such as my_arithmetic"),
        ("loss Earth-Mover", "take a-z, 0-9 and _"),
        ("loss class", "'class' is no name"),
        ("task 2nd", "a letter first"),
        ("report json", "would hide the module json"),
        ("task there", "there.py exists already"),
        ("loss mine --from there.py", "is for a task"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(words, said, tmp_path):
    (tmp_path / "there.py").write_text("mine")
    out = run_here("new", *words.split(), cwd=tmp_path)
    assert (out.returncode, said in out.stderr) == (2, True), out.stderr
    assert {path.name for path in tmp_path.rglob("*")} == {"there.py"}
