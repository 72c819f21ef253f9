"""From which state a killed training goes on."""

from pathlib import Path

import pytest

from smmd_bench.results.files import write_json
from smmd_bench.training.stage import _Epochs


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    """Two whole epochs, a third whose weights were being written, and a fourth's Trainer state."""
    for epoch in (1, 2):
        write_json(
            tmp_path / "epochs" / str(epoch) / "canary.json", {"epoch": epoch, "step": 10 * epoch}
        )
    write_json(tmp_path / "epochs" / ".3.part" / "canary.json", {"epoch": 3, "step": 30})
    for step in (10, 20, 30, 40):
        (tmp_path / "training" / f"checkpoint-{step}").mkdir(parents=True)
    return tmp_path


def test_it_goes_on_after_the_last_whole_epoch(cell: Path) -> None:
    assert _Epochs(cell, None).last_complete() == str(cell / "training" / "checkpoint-20")


def test_states_without_their_weights_are_removed(cell: Path) -> None:
    _Epochs(cell, None).last_complete()
    left = {p.name for p in (cell / "training").iterdir()}
    assert left == {"checkpoint-10", "checkpoint-20"}


def test_receipts_are_of_whole_epochs_in_order(cell: Path) -> None:
    assert [r["epoch"] for r in _Epochs(cell, None).receipts()] == [1, 2]


def test_weights_without_a_state_start_anew(tmp_path: Path) -> None:
    write_json(tmp_path / "epochs" / "1" / "canary.json", {"epoch": 1, "step": 10})
    assert _Epochs(tmp_path, None).last_complete() is None
    assert not (tmp_path / "epochs").exists()
