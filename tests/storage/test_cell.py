"""A path is a stamp: what each folder's name follows from."""

import dataclasses

import pytest

from smmd_bench.storage.cell import BASE, StoredCell, Weights, stored_cell
from smmd_bench.storage.files import write_json, write_text

PARTS = {
    name: f"{name} 1" for name in ("train", "validate", "select", "decode", "measure")
}


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
    assert [
        cell.validated,
        cell.selected,
        cell.tested,
        cell.decoded,
        cell.measured,
    ] == [None] * 5
    assert [*cell.folders] == [cell.trained]


def test_the_selected_epoch_is_tested_with_its_weights(cell):
    assert cell.tested == Weights(2, "w2")
    assert cell.checkpoint == cell.trained / "epochs/2"
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
    assert {
        name for name in names if getattr(cell, name) != getattr(other, name)
    } == changed


def test_other_weights_are_decoded_elsewhere_and_the_same_weights_in_one_place(cell):
    folder = cell.decoded
    other = train(again(cell, parts={**PARTS, "train": "train 2"}))
    assert other.decoded == folder  # a path to the same weights
    assert train(cell, "v").decoded != folder
    assert train(cell, "w", best=1).decoded != folder
    assert train(cell).decoded == folder


def test_metrics_count_with_scores_and_completions(cell):
    write_json(cell.measured / "metrics.json", {"n": 1})
    assert again(cell).metrics is None
    write_text(cell.decoded / "completions.parquet", "")
    assert again(cell).metrics is None
    write_text(cell.measured / "scores.parquet", "")
    assert again(cell).metrics == {"n": 1}


def test_a_failure_counts_without_metrics_and_for_the_same_parts(cell):
    write_json(cell.run / "failed" / f"{cell.key}.json", {"error": "no"})
    assert again(cell).failure == {"error": "no"}
    assert part(cell, "train").failure == {}

    for name in ("decoded/completions.parquet", "measured/scores.parquet"):
        folder, file = name.split("/")
        write_text(getattr(cell, folder) / file, "")

    write_json(cell.measured / "metrics.json", {"n": 1})
    assert again(cell).failure == {}


def test_the_base_trains_nothing(tmp_path):
    parts = {name: PARTS[name] for name in ("train", "decode", "measure")}
    base = StoredCell(tmp_path, "b", parts, is_base=True)
    assert base.tested is None
    write_json(
        base.trained / "receipt.json", {"epochs": [{"epoch": 0, "weights": BASE}]}
    )
    assert again(base).tested == Weights(0, BASE)


def test_what_was_made_elsewhere_has_no_weights(tmp_path):
    elsewhere = StoredCell(tmp_path, "e", {"decode": "d", "measure": "m"})
    assert elsewhere.tested == Weights(0, "")
    assert elsewhere.decoded is not None
    assert elsewhere.checkpoint is elsewhere.place("train_log") is None


TUNED = {name: PARTS[name] for name in ("select", "decode", "measure")}


@pytest.fixture
def trials(cell):
    trials = []
    for name in ("trial 1", "trial 2"):
        parts = {"train": name, "validate": "v", "select": "s"}
        trials.append(train(StoredCell(cell.run, name, parts), weights=name))
    return tuple(trials)


@pytest.fixture
def tuned(cell, trials):
    """A tuned cell that has chosen its second trial."""
    tuned = StoredCell(cell.run, "tuned", TUNED, trials=trials)
    assert tuned.home is tuned.tested is tuned.decoded is None
    write_json(tuned.selected / "selection.json", {"chosen": 1})
    return again(tuned)


def test_a_tuned_cell_tests_the_chosen_trial(tuned, trials):
    assert tuned.home == trials[1]
    assert tuned.tested == Weights(2, "trial 22")
    assert tuned.checkpoint == trials[1].checkpoint
    reached = {folder for cell in tuned.family for folder in cell.folders}
    assert {*trials[0].folders} < reached


def test_a_test_of_transfer_tests_what_its_source_tests(tuned):
    tests = {"decode": "other test", "measure": "m"}
    transfer = StoredCell(tuned.run, "transfer", tests, source=tuned)
    assert transfer.tested == tuned.tested
    assert transfer.decoded != tuned.decoded


def test_a_choice_is_of_the_weights_of_its_trials(tuned, trials):
    records = [{"address": trial.address, "parts": trial.parts} for trial in trials]
    record = {"address": "tuned", "parts": TUNED, "trials": records}
    assert stored_cell(tuned.run, record).choice == {"chosen": 1}
    train(trials[0], "otherwise")
    assert stored_cell(tuned.run, record).choice is None
