"""The references are what the code says."""

import shutil
import subprocess
import sys

import pytest

import smmd_bench

from .documents import ROOT, anchors

pytestmark = pytest.mark.docs

SCRIPTS = {
    "write_api_reference.py": "api.md",
    "write_cli_reference.py": "cli.md",
    "draw_architecture.py": "images/architecture.svg",
}


@pytest.mark.parametrize(("script", "page"), SCRIPTS.items())
def test_the_check_of_a_reference_sees_that_it_is_stale(script, page, tmp_path):
    """That they are up to date is what `make lint` checks."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "docs" / page).parent.mkdir(parents=True)
    for name in (script, "_generated_file.py"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    copy = tmp_path / "docs" / page
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    command = [sys.executable, str(tmp_path / "scripts" / script), "--check"]
    copy.write_text(f"{text}more", encoding="utf-8")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "run `make docs`" in done.stderr


def test_the_stable_api_is_in_the_reference():
    page = anchors((ROOT / "docs" / "api.md").read_text(encoding="utf-8"))
    assert {name for name in smmd_bench.__all__ if name != "__version__"} <= page
    assert {"task", "loss", "report", "engine", "executor"} <= page
    assert {"numerictargets", "numericloss", "violations"} <= page
