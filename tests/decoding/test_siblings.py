"""Checkpoints of one session: rivals of one another, and which of them a canary cannot tell."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smmd_bench.contracts import Canary
from smmd_bench.decoding.siblings import decode_receipt, session_canaries, with_rivals
from smmd_bench.decoding.stage import decode_cells
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import read_json
from smmd_bench.training.stage import train_cell

pytestmark = pytest.mark.engine

IDS = ((1, 2, 3),)


def test_rivals_score_the_same_tokens_and_are_no_one_elses() -> None:
    one, two = Canary(IDS, ((-1.0, -2.0),)), Canary(IDS, ((-1.5, -2.0),))
    last = Canary(IDS, ((-2.0,),))
    other = Canary(((1, 2, 4),), ((-1.0, -2.0),), rivals=(("base", ((-3.0, -3.0),)),))
    found = with_rivals({"one": one, "two": two, "last": last, "other": other})
    assert found["one"].rivals == (("two", two.log_probabilities),)
    assert found["two"].rivals == (("one", one.log_probabilities),)
    assert found["last"].rivals == ()
    assert found["other"] == other


def test_the_receipt_names_a_few_of_many() -> None:
    rivals = tuple((f"epoch {k}", ((-1.0, -2.0),)) for k in range(6))
    said = decode_receipt(Canary(IDS, ((-1.0, -2.0),), rivals=rivals), "float32", "stamp")
    assert said["indistinguishable"] == [f"epoch {k}" for k in range(6)]
    assert said["address"] == "stamp"
    assert "from epoch 0, epoch 1, epoch 2, epoch 3 and 2 more" in said["notes"][0]
    apart = decode_receipt(Canary(IDS, ((-1.5, -2.0),), rivals=rivals), "float32", "stamp")
    assert (apart["indistinguishable"], apart["notes"]) == ([], [])


@pytest.fixture(scope="module")
def trained(
    tiny_checkpoints: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[Cell, Path]]:
    """The base, CE that learns, and SMMD that hardly does, in bfloat16."""
    root, base = tmp_path_factory.mktemp("siblings"), str(tiny_checkpoints("digit").base)
    recipe = {"dtype": "bfloat16", "train_examples": 16, "epochs": 1, "max_length": 180}
    recipe |= {"batch_size": 8, "micro_batch_size": 8, "validation_examples": 2, "test_examples": 2}
    cells: list[Cell] = []
    for loss, rate in (("ce", 3e-2), ("smmd", 1e-9)):
        settings = {**recipe, "learning_rate": rate}
        cells += Experiment(
            ("arithmetic[level=easy]",),
            (loss,),
            (base,),
            engine="transformers",
            base=not cells,
            recipe=settings,
        ).cells
    placed = [(cell, root / cell.addresses["train"]) for cell in cells]
    for cell, folder in placed:
        train_cell(cell, folder, lambda *_: None)
    return placed


def test_the_base_reads_what_the_trained_ones_do(trained: list[tuple[Cell, Path]]) -> None:
    canaries = session_canaries(trained)
    by_loss = {cell.loss: canaries[folder] for cell, folder in trained}
    base, ce = by_loss["base"][0], by_loss["ce"][1]
    assert base.token_ids == ce.token_ids
    assert len(base.rivals) == len(ce.rivals) == 2
    assert dict(ce.rivals)["base"] == base.log_probabilities
    assert base.rounded
    alone = session_canaries([pair for pair in trained if pair[0].is_base])
    ((own,),) = [canary.values() for canary in alone.values()]
    assert own.token_ids != ce.token_ids
    assert own.rivals == ()


def test_a_cell_without_a_receipt_is_left_out(
    trained: list[tuple[Cell, Path]], tmp_path: Path
) -> None:
    (cell, folder), *_ = [pair for pair in trained if pair[0].loss == "ce"]
    assert session_canaries([(cell, tmp_path / folder.name)]) == {}


def test_what_cannot_be_told_apart_is_said_of_the_cell(
    trained: list[tuple[Cell, Path]], tmp_path: Path
) -> None:
    run = RunDirectory(tmp_path)
    placed = []
    for cell, folder in trained:
        placed.append((cell, run.cell_folder(cell)))
        shutil.copytree(folder, run.cell_folder(cell))
    assert decode_cells(placed, lambda *_: None) == {}
    notes = {cell.loss: run.notes(cell) for cell, _ in placed}
    (said,) = [note for note in notes["smmd"] if "canary" in note]
    assert "In bfloat16 the canary cannot tell the decoded weights from base:" in said
    assert not any("canary" in note for note in notes["ce"])
    receipts = {cell.loss: read_json(folder / "decode.json") for cell, folder in placed}
    assert receipts["smmd"] is not None
    assert receipts["smmd"]["indistinguishable"] == ["base"]
    assert receipts["smmd"]["compared_with"] == 2
    assert 0.001 < receipts["smmd"]["resolution"] < 1
