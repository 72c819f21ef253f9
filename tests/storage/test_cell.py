"""A path is a stamp: what each folder's name follows from."""

import dataclasses

import pytest

from smmd_bench.storage.cell import BASE, StoredCell, Weights, stored_cell
from smmd_bench.storage.files import write_json, write_text

PARTS = {name: f"{name} 1" for name in ("train", "validate", "select", "decode", "measure")}


@pytest.fixture
def cell(tmp_path):
    return train(StoredCell(tmp_path, "train 1", PARTS))


def train(cell, weights="w", best=2):
    """Write what training and selection leave."""
    epochs = [{"epoch": epoch, "weights": f"{weights}{epoch}"} for epoch in (1, 2)]
    write_json(cell.trained / "receipt.json", {"epochs": epochs})
    for epoch in (1, 2):
        write_text(cell.epoch(epoch) / "model.safetensors", "")
    write_json(again(cell).selected / "selection.json", {"best_epoch": best})
    return again(cell)


def again(cell, **changes):
    """The cell as its files are now."""
    return dataclasses.replace(cell, **changes)


def part(cell, stage):
    """The cell with another part."""
    return again(cell, parts={**cell.parts, stage: "other"})


def test_nothing_is_known_of_a_cell_that_is_not_trained(tmp_path):
    cell = StoredCell(tmp_path, "train 1", PARTS)
    assert cell.receipt is None
    assert [cell.validated, cell.selected, cell.tested, cell.decoded, cell.measured] == [None] * 5
    assert [*cell.folders] == [cell.trained]


def test_the_selected_epoch_is_tested_with_its_weights(cell):
    assert cell.tested == Weights(2, "w2")
    assert cell.checkpoint == cell.trained / "epochs" / "2"
    (cell.checkpoint / "model.safetensors").unlink()
    assert again(cell).checkpoint is None
    assert again(cell).tested == Weights(2, "w2")  # which its results are still of


@pytest.mark.parametrize(
    ("stage", "changed"),
    [
        ("validate", {"validated", "selected"}),
        ("select", {"selected"}),
        ("decode", {"decoded", "measured"}),
        ("measure", {"measured"}),
    ],
)
def test_a_folder_has_another_name_where_its_part_or_what_came_before_is_another(
    cell, stage, changed
):
    names = ("validated", "selected", "decoded", "measured")
    other = part(cell, stage)
    if stage in ("validate", "select"):
        other = train(other)
    assert {name for name in names if getattr(cell, name) != getattr(other, name)} == changed


def test_other_weights_are_decoded_elsewhere_and_the_same_weights_in_one_place(cell):
    folder = cell.decoded
    other = train(again(cell, parts={**PARTS, "train": "train 2"}))
    assert other.decoded == folder  # a path to the same weights
    assert train(cell, "v").decoded != folder
    assert train(cell, "w", best=1).decoded != folder
    assert train(cell).decoded == folder


def test_metrics_count_with_their_completions_and_a_failure_without_them(cell):
    write_json(cell.measured / "metrics.json", {"n": 1})
    write_json(cell.run / "failed" / f"{cell.key}.json", {"error": "no"})
    assert again(cell).metrics is None
    assert again(cell).failure == {"error": "no"}

    write_text(cell.decoded / "completions.parquet", "")
    assert again(cell).metrics is None

    write_text(cell.measured / "scores.parquet", "")
    assert again(cell).metrics == {"n": 1}
    assert again(cell).failure == {}
    assert part(cell, "train").failure == {}


def test_the_base_trains_nothing_and_what_was_made_elsewhere_neither(tmp_path):
    parts = {name: PARTS[name] for name in ("train", "decode", "measure")}
    base = StoredCell(tmp_path, "b", parts, is_base=True)
    assert base.tested is None

    write_json(base.trained / "receipt.json", {"epochs": [{"epoch": 0, "weights": BASE}]})
    assert again(base).tested == Weights(0, BASE)

    elsewhere = StoredCell(tmp_path, "e", {"decode": "d", "measure": "m"})
    assert elsewhere.tested == Weights(0, "")
    assert elsewhere.decoded is not None
    assert elsewhere.checkpoint is elsewhere.place("train_log") is None


def test_a_tuned_cell_tests_the_chosen_trial_and_a_transfer_what_its_source_tests(cell):
    trials = []
    for name in ("trial 1", "trial 2"):
        parts = {"train": name, "validate": "v", "select": "s"}
        trials.append(train(StoredCell(cell.run, name, parts), weights=name))

    parts = {name: PARTS[name] for name in ("select", "decode", "measure")}
    tuned = StoredCell(cell.run, "tuned", parts, trials=tuple(trials))
    assert tuned.home is tuned.tested is tuned.decoded is None

    write_json(tuned.selected / "selection.json", {"chosen": 1})
    tuned = again(tuned)
    assert tuned.home == trials[1]
    assert tuned.tested == Weights(2, "trial 22")
    assert tuned.checkpoint == trials[1].checkpoint
    assert {*trials[0].folders} < {*tuned.folders}

    tests = {"decode": "other test", "measure": "m"}
    transfer = StoredCell(cell.run, "transfer", tests, source=tuned)
    assert transfer.tested == tuned.tested
    assert transfer.decoded != tuned.decoded

    train(trials[0], "otherwise")
    records = [{"address": trial.address, "parts": trial.parts} for trial in trials]
    retrained = stored_cell(cell.run, {"address": "tuned", "parts": parts, "trials": records})
    assert retrained.choice is None  # it was of other weights
