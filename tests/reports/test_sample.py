"""What captions say of n, seeds and parse failures."""

from smmd_bench.reports._caption import sample_note

from tests.changed_runs import changed, with_manifest
from tests.runs import planted_run, quick_run

ANSWERS = ["1", "2", "3", "4"]


def planted(path, predictions, seeds=(0, 1), **names):
    return planted_run(path, ANSWERS, predictions, seeds=seeds, **names)


def test_n_seeds_and_the_worst_loss(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": {0: ANSWERS, 1: ["no", "2", "3", "4"]}})
    note = sample_note(run, run.cells)
    assert note.startswith("n = 4 test examples; seeds 0, 1; at most 25.0 % (SMMD) of ")


def test_the_untuned_model_stands_apart(tmp_path):
    run = planted(tmp_path, {"base": ["no"] * 4, "ce": ANSWERS}, seeds=(0,))
    assert "seed 0; at most 100.0 % (untuned) of" in sample_note(run, run.cells)  # and none of CE


def test_a_single_failure_among_thousands_is_not_shown_as_none(tmp_path):
    def one_of_many(content):
        content["metrics"]["parse_failure_rate"]["value"] = 100 * (1 / 3000)
        return content

    run = planted(tmp_path, {"ce": ANSWERS}, seeds=(0,))
    run = changed(run, tmp_path, "metrics.json", one_of_many)
    assert "at most 0.03 %" in sample_note(run, run.cells)


def test_a_loss_with_fewer_seeds_is_named(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "ntl": ANSWERS, "smmd": ANSWERS})
    cells = run.cells[(run.cells["loss"] != "smmd") | (run.cells["seed"] == 0)]
    assert "; seeds 0, 1 (SMMD: seed 0)." in sample_note(run, cells)


def test_seeds_of_a_task_with_others_are_named(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS}, tasks=("gsm8k", "svamp"))
    cells = run.cells[(run.cells["task"] == "gsm8k") | (run.cells["seed"] == 0)]
    note = sample_note(run, cells)
    assert "; seeds 0, 1 (CE on svamp, SMMD on svamp: seed 0)." in note
    assert "at most" not in note  # every completion has a number


def test_other_sizes_of_a_task_are_named(tmp_path):
    planted(tmp_path, {"ce": ANSWERS}, seeds=(0,))
    run = quick_run(tmp_path, tasks=("svamp",), losses=("ce",), n=7)
    assert sample_note(run, run.cells).startswith("n = 4 (gsm8k), 7 (svamp) test examples; seed 0")


def test_seeds_that_are_not_shared_are_named(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS})
    shown = run.cells[run.cells["seed"] == 0]
    assert "; seed 0 (seed 1 of CE, SMMD left out" in sample_note(run, shown, run.cells)


def test_completions_made_elsewhere_have_no_seeds(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS}, seeds=(0,))
    assert "seed 0" in sample_note(run, run.cells)
    run = with_manifest(run, tmp_path, predictions={})
    assert "seed 0" not in sample_note(run, run.cells)


def test_other_recipes_software_and_devices_are_named(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS}, seeds=(0,))
    assert "different" not in sample_note(run, run.cells)
    for loss, rate, device in (("ce", 1, "CPU"), ("smmd", 2, "GPU")):
        recipe, made_with = {"learning_rate": rate}, {"torch": "2.13.0", "device": device}
        for name, said in (
            ("cell.json", {"recipe": recipe}),
            ("train.json", {"made_with": made_with}),
        ):
            run = changed(run, tmp_path, name, lambda old, said=said: {**old, **said}, loss=loss)
    note = sample_note(run, run.cells)
    assert " The cells were trained with different learning_rate (1 or 2)." in note
    assert note.endswith(" The cells were made with different device in training (CPU or GPU).")
