"""What captions say of n, seeds and parse failures."""

import pytest
from smmd_bench.reports._caption import sample_note

import smmd_bench as sb
from smmd_bench.storage.files import read_json, write_json
from tests.runs import Planted, add_cells, write_run

ANSWERS = ["1", "2", "3", "4"]


def planted(path, predictions, tasks=("gsm8k",), seeds=(0, 1)):
    write_run(
        path, tasks=tasks, planted=Planted(ANSWERS, predictions), seeds=seeds, steps=3, resamples=2
    )
    return sb.read_run(path)


def test_n_seeds_and_the_worst_loss(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": {0: ANSWERS, 1: ["no", "2", "3", "4"]}})
    note = sample_note(run, run.cells)
    assert note.startswith("n = 4 test examples; seeds 0, 1; at most 25.0 % (SMMD) of ")


def test_the_untuned_model_stands_apart(tmp_path):
    run = planted(tmp_path, {"base": ["no"] * 4, "ce": ANSWERS}, seeds=(0,))
    assert "at most 0.0 % (CE), 100.0 % (untuned) of" in sample_note(run, run.cells)


def test_a_single_failure_among_thousands_is_not_shown_as_none(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS}, seeds=(0,))
    for file in run.path.glob("cells/*/metrics.json"):
        content = read_json(file)
        content["metrics"]["parse_failure_rate"]["value"] = 100 * (1 / 3000)
        write_json(file, content)
    again = sb.read_run(run.path)
    assert "at most 0.03 %" in sample_note(again, again.cells)


def test_a_loss_with_fewer_seeds_is_named(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "ntl": ANSWERS, "smmd": ANSWERS})
    cells = run.cells[(run.cells["loss"] != "smmd") | (run.cells["seed"] == 0)]
    assert "; seeds 0, 1 (SMMD: seed 0); " in sample_note(run, cells)


def test_seeds_of_a_task_with_others_are_named(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS}, tasks=("gsm8k", "svamp"))
    cells = run.cells[(run.cells["task"] == "gsm8k") | (run.cells["seed"] == 0)]
    note = sample_note(run, cells)
    assert "; seeds 0, 1 (CE on svamp, SMMD on svamp: seed 0); " in note
    assert "at most 0.0 % (CE on gsm8k) of" in note


def test_other_sizes_of_a_task_are_named(tmp_path):
    planted(tmp_path, {"ce": ANSWERS}, seeds=(0,))
    write_run(tmp_path / "b", tasks=("svamp",), losses=("ce",), seeds=(0,), n=7, steps=3)
    add_cells(tmp_path / "b", tmp_path)
    run = sb.read_run(tmp_path)
    assert sample_note(run, run.cells).startswith("n = 4 (gsm8k), 7 (svamp) test examples; seed 0")


def test_seeds_that_are_not_shared_are_named(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS})
    shown = run.cells[run.cells["seed"] == 0]
    assert "; seed 0 (seed 1 of CE, SMMD left out" in sample_note(run, shown, run.cells)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_completions_made_elsewhere_have_no_seeds(elsewhere, tmp_path):
    planted(tmp_path, {"ce": ANSWERS}, seeds=(0,))
    manifest = read_json(tmp_path / "manifest.json")
    write_json(
        tmp_path / "manifest.json", {**manifest, **({"predictions": {}} if elsewhere else {})}
    )
    run = sb.read_run(tmp_path)
    assert ("seed 0" in sample_note(run, run.cells)) is not elsewhere


def test_other_recipes_software_and_devices_are_named(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS}, seeds=(0,))
    assert "different" not in sample_note(run, run.cells)
    for file in tmp_path.glob("cells/*/cell.json"):
        cell = read_json(file)
        rate, device = (1, "CPU") if cell["loss"] == "ce" else (2, "GPU")
        write_json(file, {**cell, "recipe": {**cell["recipe"], "learning_rate": rate}})
        receipt = read_json(file.with_name("train.json"))
        made_with = {"torch": "2.13.0", "device": device}
        write_json(file.with_name("train.json"), {**receipt, "made_with": made_with})
    again = sb.read_run(tmp_path)
    note = sample_note(again, again.cells)
    assert " The cells were trained with different learning_rate (1 or 2)." in note
    assert note.endswith(" The cells were made with different device in training (CPU or GPU).")
