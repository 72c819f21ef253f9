"""Which files of a cell count: those whose stamp is that of what the cell is asked for now."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from smmd_bench.errors import UserError
from smmd_bench.storage.cell import (
    BASE,
    StoredCell,
    Weights,
    comparison_stamp,
    current_cell,
    training_stamp,
)
from smmd_bench.storage.files import write_json, write_parquet

ADDRESSES = {name: f"{name} 1" for name in ("train", "validate", "select", "decode", "measure")}
PARQUET = ("completions", "probes", "scores", "train_log")
FRAME = pd.DataFrame({"uid": ["a"]})
SELECTION: dict[str, Any] = {"metric": "m", "best_epoch": 2, "epochs": []}
MEASURED: dict[str, Any] = {"metrics": {"m": {"value": 1.0, "low": None, "high": 2}}}


def write_cell(folder, addresses: Mapping[str, str] = ADDRESSES, loss: str = "ce") -> StoredCell:
    """Write all files of a finished cell of two epochs; returns it as it is then."""
    content = {"address": "a", "addresses": addresses, "model": "m", "task": "t", "loss": loss,
               "seed": 0}  # fmt: skip
    write_json(folder / "cell.json", content)
    lines = [{"epoch": epoch, "weights": f"w{epoch}", "canary": [0.5]} for epoch in (1, 2)]
    receipt = {"address": addresses["train"], "base": [0.5], "epochs": lines, "notes": ["slow"]}
    write_json(folder / "train.json", receipt)
    for place, epoch in (("checkpoint", 2), ("epochs/1", 1), ("epochs/2", 2)):
        write_json(folder / place / "canary.json", {"epoch": epoch, "weights": f"w{epoch}"})
    cell = current_cell(folder, content)
    if not cell.is_base:
        write_json(folder / "selection.json", {"address": cell.selection_stamp, **SELECTION})
    write_parquet(folder / "validation.parquet", FRAME, cell.validation_stamp)
    log = training_stamp(addresses["train"], cell.weights)
    stamps = (cell.decode_stamp, cell.decode_stamp, cell.measure_stamp, log)
    for name, stamp in zip(PARQUET, stamps, strict=True):
        write_parquet(folder / f"{name}.parquet", FRAME, stamp)
    write_json(folder / "decode.json", {"address": cell.decode_stamp, "resolution": 0.1})
    write_json(folder / "metrics.json", {"address": cell.measure_stamp, **MEASURED})
    return current_cell(folder, content)


def again(cell: StoredCell, **changes: str) -> StoredCell:
    """The cell as it is on disk now, with other addresses of some stages."""
    return dataclasses.replace(cell, addresses={**cell.addresses, **changes})


@pytest.fixture
def cell(tmp_path):
    return write_cell(tmp_path / "cells" / "1")


def test_every_file_of_a_finished_cell_counts(cell):
    assert all(cell.has(name) for name in PARQUET)
    assert cell.has_validation
    assert cell.is_decoded
    assert cell.tested == Weights(2, "w2") == (2, "w2")
    assert cell.selection == {"address": cell.selection_stamp, **SELECTION}
    assert cell.metrics == {"address": cell.measure_stamp, **MEASURED}
    assert cell.decoding == {"address": cell.decode_stamp, "resolution": 0.1}
    assert cell.failure == {}
    assert cell.checkpoint == cell.folder / "checkpoint"
    assert cell.has_every_epoch


def test_a_receipt_is_without_the_canaries_which_are_most_of_it(cell):
    assert cell.weights == {1: "w1", 2: "w2"}
    lines = [{"epoch": 1, "weights": "w1"}, {"epoch": 2, "weights": "w2"}]
    assert cell.receipt == {"address": "train 1", "epochs": lines, "notes": ["slow"]}


@pytest.mark.parametrize(
    ("stage", "stays"),
    [
        ("train", set()),
        ("validate", {"train_log", "weights"}),
        ("select", {"train_log", "weights", "validation"}),
        ("decode", {"train_log", "weights", "validation", "tested"}),
        ("measure", {"train_log", "weights", "validation", "tested", "completions", "probes"}),
        ("other", {"train_log", "weights", "validation", "tested", *PARQUET, "metrics"}),
    ],
)
def test_another_address_of_a_stage_leaves_what_comes_before_it(cell, stage, stays):
    now = again(cell, **{stage: "2"})
    found = {name for name in PARQUET if now.has(name)}
    found |= {"weights"} if now.weights else set()
    found |= {"validation"} if now.has_validation else set()
    found |= {"tested"} if now.tested is not None else set()
    found |= {"metrics"} if now.metrics is not None else set()
    assert found == stays
    assert (now.checkpoint is None) == ("tested" not in stays)
    assert (now.decoding is None) == ("completions" not in stays)


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("train.json", {"train_log", "completions", "probes", "scores", "metrics"}),
        ("selection.json", {"completions", "probes", "scores", "metrics"}),
        ("train_log.parquet", {"train_log"}),
        ("completions.parquet", {"completions", "metrics"}),
        ("probes.parquet", {"probes", "metrics"}),
        ("scores.parquet", {"scores", "metrics"}),
        ("metrics.json", {"metrics"}),
    ],
)
def test_without_a_file_what_it_was_made_into_does_not_count(cell, name, absent):
    (cell.folder / name).unlink()
    now = again(cell)
    found = {name for name in PARQUET if not now.has(name)}
    assert found | ({"metrics"} if now.metrics is None else set()) == absent


def test_beams_that_are_asked_for_are_part_of_what_is_decoded_and_measured(cell):
    ruled = again(cell, beams="beams 1")
    assert cell.beams_stamp is None
    assert ruled.decode_stamp == cell.decode_stamp
    assert ruled.measure_stamp != cell.measure_stamp
    assert ruled.has("completions")
    assert not ruled.is_decoded
    write_parquet(cell.folder / "beams.parquet", FRAME, ruled.beams_stamp)
    write_parquet(cell.folder / "scores.parquet", FRAME, ruled.measure_stamp)
    write_json(cell.folder / "metrics.json", {"address": ruled.measure_stamp, **MEASURED})
    assert again(ruled).is_decoded
    assert again(ruled).metrics is not None
    assert again(ruled, beams="beams 2").metrics is None
    assert again(cell).metrics is None
    (cell.folder / "beams.parquet").unlink()
    assert again(ruled).metrics is None


def test_a_selected_epoch_that_training_does_not_have_is_not_tested(cell):
    other = {"address": cell.selection_stamp, **SELECTION, "best_epoch": 3}
    write_json(cell.folder / "selection.json", other)
    assert again(cell).tested is None
    assert again(cell).decode_stamp is None
    assert again(cell).measure_stamp is None
    assert not again(cell).has("completions")


def test_weights_of_another_training_or_epoch_are_not_those_that_are_kept(cell):
    for place in ("checkpoint", "epochs/2"):
        for other in ({"epoch": 2, "weights": "w3"}, {"epoch": 1, "weights": "w2"}):
            write_json(cell.folder / place / "canary.json", other)
            now = again(cell)
            assert (now.checkpoint is None) == (place == "checkpoint")
            assert [now.has_epoch(1), now.has_epoch(2)] == [True, place == "checkpoint"]
            assert now.has_every_epoch == (place == "checkpoint")
        write_json(cell.folder / place / "canary.json", {"epoch": 2, "weights": "w2"})


def test_nothing_that_other_weights_gave_counts_once_a_training_has_made_new_ones(cell):
    receipt = {
        **cell.receipt,
        "epochs": [{"epoch": 1, "weights": "w1"}, {"epoch": 2, "weights": "w3"}],
    }
    write_json(cell.folder / "train.json", receipt)
    now = again(cell)
    assert not now.has_validation
    assert not now.has("train_log")
    assert now.selection is None
    assert now.metrics is None


def test_a_base_is_tested_as_it_is_once_its_canary_is_there(tmp_path):
    cell = write_cell(tmp_path / "base", loss=BASE)
    assert cell.tested == Weights(0, BASE)
    (cell.folder / "train.json").unlink()
    assert again(cell).tested is None
    assert not again(cell).has_every_epoch


def test_completions_made_elsewhere_need_no_training_and_no_probes(tmp_path):
    addresses = {name: ADDRESSES[name] for name in ("train", "decode", "measure")}
    cell = StoredCell(tmp_path, addresses, is_base=False)
    assert cell.tested == Weights(0, "")
    assert cell.selection is None
    assert not cell.is_decoded
    write_parquet(tmp_path / "completions.parquet", FRAME, cell.decode_stamp)
    assert again(cell).is_decoded


def test_a_failure_counts_until_there_are_results_or_another_address(cell):
    failure = {"address": "measure 1", "stage": "decode", "error": "why"}
    write_json(cell.folder / "FAILED.json", failure)
    assert again(cell).failure == {}
    (cell.folder / "metrics.json").unlink()
    assert again(cell).failure == failure
    assert again(cell, measure="2").failure == {}


def test_a_comparison_is_of_what_both_cells_are_now(cell, tmp_path):
    other = write_cell(tmp_path / "cells" / "2", {**ADDRESSES, "train": "train 2"})
    stamp = comparison_stamp(cell, other)
    assert stamp == f"{cell.measure_stamp}-{other.measure_stamp}"
    content = {"address": stamp, "metrics": {}}
    write_json(cell.folder / "comparison.json", content)
    assert cell.comparison(other) == content
    assert cell.comparison(again(other, measure="2")) is None
    assert again(cell, measure="2").comparison(other) is None
    assert other.comparison(cell) is None


def test_the_stamp_of_a_log_follows_from_the_training_and_from_every_epoch(cell):
    stamp = training_stamp("train 1", {1: "w1", 2: "w2"})
    assert stamp == training_stamp("train 1", {2: "w2", 1: "w1"})
    others = [
        ("train 2", {1: "w1", 2: "w2"}),
        ("train 1", {1: "w1"}),
        ("train 1", {1: "w2", 2: "w1"}),
    ]
    assert len({stamp, *(training_stamp(*other) for other in others)}) == 4


def transfer(cell: StoredCell, source: str = "1", **changes: str) -> StoredCell:
    """A test of transfer of the weights of another cell, as its cell.json describes it."""
    addresses = {**ADDRESSES, "train": "train t", "decode": "decode t", **changes}
    content = {"addresses": addresses, "loss": "ce", "source": source}
    return current_cell(cell.folder.parent / "t", content)


def test_a_test_of_transfer_tests_the_weights_of_its_source(cell):
    assert transfer(cell).source == cell
    assert transfer(cell).tested == Weights(2, "w2")
    assert transfer(cell).decode_stamp not in (None, cell.decode_stamp)
    assert transfer(cell, select="2").tested is None
    (cell.folder / "selection.json").unlink()
    assert transfer(cell).tested is None


def test_without_its_source_a_test_of_transfer_has_no_weights(cell, caplog):
    assert transfer(cell, source="gone").tested is None
    write_json(cell.folder / "cell.json", {"loss": "ce"})
    assert transfer(cell).tested is None
    assert "cell.json is not what this package writes (see address)" in caplog.text
    assert not (cell.folder / "cell.json").exists()


def test_a_source_outside_of_the_run_is_refused_with_the_file_that_names_it(cell):
    file = cell.folder.parent / "t" / "cell.json"
    with pytest.raises(UserError) as error:
        transfer(cell, source="../../elsewhere")
    assert str(error.value).startswith(f"{file} names '../../elsewhere', which is outside")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.json", {"address": "train 1", "epochs": [{"epoch": "1", "weights": "w1"}]}),
        ("selection.json", {**SELECTION, "best_epoch": None}),
        ("metrics.json", {"metrics": {"m": {"value": "1", "low": 1, "high": 1}}}),
        ("checkpoint/canary.json", {"epoch": 2}),
    ],
)
def test_a_file_that_says_other_things_than_we_write_counts_as_absent(cell, name, content, caplog):
    stamps = {"selection.json": cell.selection_stamp, "metrics.json": cell.measure_stamp}
    write_json(cell.folder / name, {"address": stamps.get(name), **content})
    now = again(cell)
    found = {
        "train.json": now.receipt, "selection.json": now.selection, "metrics.json": now.metrics,
        "checkpoint/canary.json": now.checkpoint,
    }  # fmt: skip
    assert found[name] is None
    assert f"{cell.folder / name} is not what this package writes" in caplog.text
    assert not (cell.folder / name).exists()
