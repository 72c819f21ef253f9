"""What goes wrong is recorded, and the rest goes on."""

from pathlib import Path

import pytest

from .conftest import SMALL, cells

SOURCE = (Path(__file__).parents[2] / "examples" / "own_loss.py").read_text(encoding="utf-8")
BROKEN = {"raises": "1 / 0", "diverges": "loss * float('nan')"}


@pytest.mark.engine
@pytest.mark.slow
def test_a_cell_that_fails_is_recorded_and_the_others_go_on(smmd_bench, tmp_path):
    plugins = []
    for name, result in BROKEN.items():
        plugins += ["--plugin", tmp_path / f"{name}.py"]
        broken = SOURCE.replace('"huber"', f'"{name}"').replace("return loss,", f"return {result},")
        plugins[-1].write_text(broken)
    words = f"train-eval --task arithmetic --losses raises,diverges,ce {SMALL} --no-base"
    out = tmp_path / "run"
    result = smmd_bench(f"{words} --engine transformers --out", out, *plugins)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "division by zero" in result.stderr
    assert "became nan at step 1" in result.stderr
    assert "2 of 3 cells failed" in result.stderr
    stored = cells(out)
    assert "Traceback" in stored["tiny", "raises"].failure["traceback"]
    assert stored["tiny", "diverges"].failure["stage"] == "train"
    assert stored["tiny", "ce"].failure == {}
    assert stored["tiny", "ce"].metrics is not None
