"""What goes wrong is recorded, and the rest goes on."""

import pytest

from .conftest import SMALL, cells

BROKEN = '''
from dataclasses import dataclass
from typing import ClassVar
from smmd_bench.contracts import NumericLoss

class _Term(NumericLoss):
    def forward(self, numeric):
        if {when}:
            raise RuntimeError("this loss is broken on purpose")
        return numeric.logits.sum() * {factor}, numeric.target.numel()

@dataclass(frozen=True)
class Broken:
    """A loss that fails."""
    name: ClassVar[str] = "{name}"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: float = 1.0
    def bind(self, vocabulary):
        return _Term(self, vocabulary)
'''


@pytest.mark.engine
@pytest.mark.slow
def test_a_cell_that_fails_is_recorded_and_the_others_go_on(smmd_bench, tmp_path):
    plugins = []
    for name, when, factor in (("raises", "True", "0.0"), ("diverges", "False", "float('nan')")):
        plugins += ["--plugin", tmp_path / f"{name}.py"]
        plugins[-1].write_text(BROKEN.format(name=name, when=when, factor=factor))
    words = f"train-eval --task arithmetic --losses raises,diverges,ce {SMALL} --no-base"
    out = tmp_path / "run"
    result = smmd_bench(f"{words} --engine transformers --out", out, *plugins)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "this loss is broken on purpose" in result.stderr
    assert "became nan at step 1" in result.stderr
    assert "2 of 3 cells failed" in result.stderr
    stored = cells(out)
    assert "Traceback" in stored["tiny", "raises"].failure["traceback"]
    assert stored["tiny", "diverges"].failure["stage"] == "train"
    assert stored["tiny", "ce"].failure == {}
    assert stored["tiny", "ce"].metrics is not None
