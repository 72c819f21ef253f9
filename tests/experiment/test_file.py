"""Files of one experiment and of several parts, and the presets in experiments/."""

from pathlib import Path

import pytest

from smmd_bench.experiment.file import experiment_file
from smmd_bench.models.card_content import backbones
from smmd_bench.plugin_system.registry import load_loss, load_task
from tests.conftest import expect_user_error

PRESETS = Path(__file__).parents[2] / "experiments"
PARTS = """
name: both
seeds: [0, 1]
parts:
  - {tasks: [arithmetic], losses: [ce, smmd]}
  - tasks: [clock_time]
    losses: [ce]
    seeds: [2]
"""


def test_a_file_has_one_experiment_or_parts_that_take_what_stands_above_them():
    read = experiment_file("tasks: [arithmetic]\nlosses: [ce]\n", "x.yaml")
    (experiment,) = read.experiments
    assert read.name is None
    assert read.folder_name == experiment.name
    assert read.cells == experiment.cells

    read = experiment_file(PARTS, "x.yaml")
    assert read.folder_name == "both"
    first, second = read.experiments
    assert first.tasks == ("arithmetic",)
    assert second.tasks[0].partition("[")[0] == "clock_time"
    assert first.seeds == (0, 1)
    assert second.seeds == (2,)
    cells = [len(experiment.cells) for experiment in read.experiments]
    assert cells == [1 + 2 * 2, 1 + 1]
    assert len(read.cells) == sum(cells)


def test_an_optional_part_is_left_out_where_its_data_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path))
    optional = "{tasks: ['gsm8k[source=corpus]'], losses: [ce], optional: true}"
    arithmetic = "{tasks: [arithmetic], losses: [ce]}"
    read = experiment_file(f"name: n\nparts: [{arithmetic}, {optional}]", "x.yaml")
    assert {cell.task for cell in read.cells} > {"gsm8k"}

    plan, reasons = read.drop_missing()
    assert plan.experiments == read.experiments[:1]
    assert reasons["gsm8k[source=corpus]"].startswith(
        f"The data folder {tmp_path} has no gsm8k/"
    )

    with expect_user_error("has no gsm8k/"):
        experiment_file(f"name: n\nparts: [{optional}]", "x.yaml").drop_missing()
    with expect_user_error("has no gsm8k/"):
        experiment_file(
            "tasks: ['gsm8k[source=corpus]']\nlosses: [ce]", "x.yaml"
        ).drop_missing()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "tasks: [arithmetic]\nparts: [{losses: [ce]}, {losses: [gce]}]",
            "has parts and no name",
        ),
        ("name: a/b\ntasks: [arithmetic]\nlosses: [ce]", "name must match pattern"),
        ("name: 1.10\ntasks: [arithmetic]\nlosses: [ce]", "name must be text, not 1.1"),
        ("name: n\nparts: []", "experiments must have at least 1 item"),
        *[
            (f"name: n\nparts: {x}", "must be a list of experiments")
            for x in ("{a: 1}", "[a]")
        ],
        (
            "name: n\nparts: [{tasks: [arithmetic]}]",
            "part 1: The experiment key losses is missing",
        ),
        (
            f"{PARTS}    optional: 1",
            "part 2: The experiment key optional must be true or false",
        ),
    ],
)
def test_mistakes_are_one_sentence(text, words):
    with expect_user_error(words):
        experiment_file(text, "x.yaml")


@pytest.mark.parametrize("name", ["no", "010", "2026", "2026-01-02", "1e3.a"])
def test_a_name_is_read_as_it_is_written(name):
    read = experiment_file(f"name: {name}\ntasks: [arithmetic]\nlosses: [ce]", "x.yaml")
    assert read.folder_name == name


@pytest.mark.parametrize(
    "file", sorted(PRESETS.glob("**/*.yaml")), ids=lambda f: str(f.relative_to(PRESETS))
)
def test_the_presets_name_tasks_losses_and_models_that_are_here(file):
    for experiment in experiment_file(
        file.read_text(encoding="utf-8"), str(file)
    ).experiments:
        assert all(load_task(task) for task in experiment.tasks)
        assert all(load_loss(loss) for loss in experiment.losses)
        if file.parent.name == "paper":
            assert set(experiment.models) <= set(backbones())
        elif ".cache/smollm2" not in experiment.models:  # which is fetched first
            assert experiment.cells


def test_one_training_is_not_tested_in_two_ways_in_one_folder():
    text = "name: n\nparts:\n  - {tasks: [arithmetic], losses: [ce]}\n"
    text += (
        "  - {tasks: [arithmetic], losses: [ce, ntl], recipe: {test_examples: 50}}\n"
    )
    with expect_user_error(r" base is asked for twice, .* folders of their own"):
        experiment_file(text.replace("ce, ntl", "ce"), "x.yaml").drop_missing()
    two_epochs = text.replace("test_examples: 50", "epochs: 9")
    assert len(experiment_file(two_epochs, "x.yaml").drop_missing()[0].cells) == 4
