"""What each loss is tuned over: as many settings, on which no test example has any influence."""

import dataclasses
import re

import pytest

from smmd_bench.experiment import cell as cells_module
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import experiment_file
from smmd_bench.experiment.tuning import read_axes, tuning_grids
from smmd_bench.plugin_system.checked_task import take_identity
from tests.conftest import expect_user_error

RATES = "ce: learning_rate=1e-4,3e-4,1e-3"
TUNED = Experiment(("arithmetic",), ("ce", "smmd"), tune=("smmd: lambda=1,3,10", RATES))


def points(tune, losses=("ce", "smmd"), trials=None, seed=0):
    grids = tuning_grids(tune, losses, trials, seed)
    return {loss: [point.text for point in grid] for loss, grid in grids.items()}


@pytest.mark.parametrize(
    ("tune", "found"),
    [
        (
            ["lambda=1,10", "ce: epochs=2,4"],  # where a loss has the parameter
            {"ce": ["epochs=2", "epochs=4"], "ntl": ["lambda=1", "lambda=10"]},
        ),
        (
            ["lambda=1,10", "ntl: lambda=0.1,0.2"],  # one loss in place of all
            {"ntl": ["lambda=0.1", "lambda=0.2"], "smmd": ["lambda=1", "lambda=10"]},
        ),
        (
            ["lambda=1,10", "ntl: squash=4,9"],  # whatever is tuned for all
            {"ntl": ["squash=4", "squash=9"], "smmd": ["lambda=1", "lambda=10"]},
        ),
        (
            ["smmd: term=mmd,both", "smmd[sigma=1]: lambda=1,5"],  # one variant
            {
                "smmd": ["term=mmd", "term=both"],
                "smmd[sigma=1]": ["lambda=1", "lambda=5"],
            },
        ),
        (
            ["lambda=1,10", "lambda=3"],  # the same twice
            {"smmd": ["lambda=1", "lambda=10", "lambda=3"]},
        ),
        (
            ["lambda=1,10", "sigma=1,1+2"],  # a grid, in the order of the values
            {
                "smmd": [
                    "lambda=1,sigma=1", "lambda=1,sigma=1+2", "lambda=10,sigma=1",
                    "lambda=10,sigma=1+2",
                ]
            },
        ),
    ],
)  # fmt: skip
def test_values_hold_for_all_losses_or_for_one(tune, found):
    assert points(tune, [*found]) == found


def test_a_recipe_setting_is_tuned_for_every_loss_and_a_name_means_all_its_variants():
    by_loss = points(["learning_rate=1e-4,1e-3"], ("ce", "smmd"))
    assert by_loss["ce"] == by_loss["smmd"]

    variants = ("smmd", "smmd[sigma=1]")
    only = tuning_grids(
        ["smmd[sigma=1.0]: lambda=1,5", "smmd: lambda=2,4"], variants, None, 0
    )
    assert {p.loss for p in only["smmd"]} == {"smmd[lambda=2]", "smmd[lambda=4]"}

    sigma = {"smmd[lambda=1,sigma=1]", "smmd[lambda=5,sigma=1]"}
    assert {
        p.loss for p in only["smmd[sigma=1]"]
    } == sigma  # whatever the order of the axes


def test_so_many_are_drawn_of_each_grid_by_the_seed():
    tune = [
        "lambda=1,2,4,5,6,7,8,9",
        "ce: learning_rate=1e-4,2e-4,3e-4,4e-4,5e-4,6e-4,7e-4,8e-4",
    ]
    full, drawn = points(tune), points(tune, trials=3)
    assert {*drawn} == {"ce", "smmd"}
    for loss, grid in drawn.items():
        # The same places in each grid, in its order.
        places = [full[loss].index(text) for text in grid]
        assert places == sorted({*places})
        assert len(places) == 3
        assert places == [full["ce"].index(text) for text in drawn["ce"]]

    again, *by_seed = [points(tune, trials=3, seed=seed) for seed in range(9)]
    assert again == drawn
    assert any(grids != drawn for grids in by_seed)


@pytest.mark.parametrize(
    ("tune", "trials", "said"),
    [
        (["lambda"], None, "--tune 'lambda' is not of the form NAME=VALUE,VALUE"),
        (
            ["lambda=1,2"],
            None,
            "unequal numbers of configurations (ce 1, smmd 2): give ce 2",
        ),
        (["lambda=1"], None, "one configuration: give at least two values"),
        (
            ["lambdaa=1,2"],
            None,
            "'lambdaa' is not a parameter of the losses: did you mean lambda",
        ),
        (["ce: lambda=1,2"], None, "'lambda' is not a parameter of ce"),
        (["ntl: lambda=1,2"], None, "names 'ntl', which is not in the losses"),
        (
            ["test_examples=1,2"],
            None,
            "'test_examples' is not a parameter of the losses",
        ),
        (["smmd: lambda=1,3,3.0", RATES], None, "(ce 3, smmd 2)"),
        (["smmd: sigma=-1,2", RATES], None, "sigma must be"),
        (
            ["smmd: lambda=1,3", RATES],
            3,
            "unequal numbers of configurations (ce 3, smmd 2)",
        ),
    ],
)
def test_a_mistake_is_one_sentence(tune, trials, said):
    with expect_user_error(re.escape(said)):
        points(tune, trials=trials)


def test_variants_that_tuning_makes_one_are_refused():
    losses = ("ntl", "ntl[lambda=0.69]")
    with expect_user_error(r"ntl and ntl\[lambda=0.69\] the same configurations"):
        tuning_grids(["lambda=0.3,1,3"], losses, None, 0)
    assert tuning_grids(
        ["lambda=0.3,1", "ntl: squash=4,9"], ("ntl", "ntl[reweigh=true]"), None, 0
    )


def test_an_experiment_without_values_is_refused():
    with expect_user_error("give these, too"):
        Experiment(("arithmetic",), ("ce",), tune_trials=3)


def test_a_trial_of_a_smaller_batch_has_smaller_micro_batches():
    tuned = dataclasses.replace(TUNED, tune=("batch_size=30,96",), recipe={})
    sizes = {c.trial: c.recipe.micro_batch_size for c in tuned.cells if c.trial}
    assert sizes == {"batch_size=30": 30, "batch_size=96": 48}


def test_yaml_may_leave_out_the_quotes_of_a_loss_and_its_values():
    text = f"tasks: arithmetic\nlosses: [ce, smmd]\ntune:\n  - {RATES}\n  - lambda=1,3"
    (read,) = experiment_file(text, "x.yaml").experiments
    assert read.tune == (RATES, "lambda=1,3")
    drawn = dataclasses.replace(TUNED, tune_trials=2)
    (again,) = experiment_file(drawn.to_yaml(), "x.yaml").experiments
    assert again == drawn


def rows(experiment):
    return [(c.loss, c.seed, c.trial) for c in experiment.cells]


def test_each_loss_has_its_published_row_its_trials_and_its_tuned_row():
    two = dataclasses.replace(TUNED, seeds=(0, 1), recipe={"learning_rate": 3e-4})
    cells = rows(two)
    assert cells[:9] == [
        ("base", 0, None), ("ce", 0, None), ("ce", 1, None),
        ("ce", 0, "learning_rate=0.0001"), ("ce", 0, "learning_rate=0.001"),
        ("ce", 1, "learning_rate=0.0001"), ("ce", 1, "learning_rate=0.001"),
        ("ce[tuned]", 0, None), ("ce[tuned]", 1, None),
    ]  # fmt: skip
    assert [loss for loss, seed, _ in cells if seed == 0][5:] == [
        "smmd", "smmd[lambda=1]", "smmd[lambda=10]", "smmd[tuned]"
    ]  # fmt: skip


def test_the_published_setting_is_trained_once_as_a_row_and_as_a_trial():
    (tuned,) = [c for c in TUNED.cells if c.loss == "smmd[tuned]"]
    (published,) = [c for c in TUNED.cells if c.loss == "smmd"]
    trial = tuned.trials[1].parts
    assert trial == {
        stage: published.parts[stage] for stage in ("train", "validate", "select")
    }
    trained = [c.address for c in TUNED.cells if not c.grid]
    assert len(trained) == len({*trained})


def test_a_trial_has_no_test_split_and_a_tuned_cell_no_other():
    splits = {c.loss: c.splits for c in TUNED.cells if c.trial is not None or c.grid}
    assert splits["smmd[lambda=10]"] == ("train", "validation")
    assert splits["smmd[tuned]"] == ("test",)


def test_other_test_data_change_no_address_that_a_choice_follows_from(monkeypatch):
    """The identity of the data is all that an address sees of it."""

    def addresses(name):
        def identity(task, split, seed):
            of_split = take_identity(task, split, seed)
            return {**of_split, "edited": name} if split == name else of_split

        monkeypatch.setattr(cells_module, "take_identity", identity)
        return {c.label: c.parts for c in dataclasses.replace(TUNED).cells}

    original, tested, validated = (
        addresses("none"),
        addresses("test"),
        addresses("validation"),
    )
    for label, parts in original.items():
        changed = {stage for stage in parts if parts[stage] != tested[label][stage]}
        assert changed <= {"decode"}, label
    tuned = "builtin/tiny arithmetic[level=medium,operations=1..2] smmd[tuned] seed 0"
    assert original[tuned] == validated[tuned]  # its trials are validated otherwise


def test_the_engine_of_a_tuned_cell_takes_the_largest_adapter_of_its_trials():
    tune = ("lora_rank=4,32",)
    tuned = dataclasses.replace(TUNED, tune=tune, recipe={"method": "lora"})
    assert {c.engine_settings.max_lora_rank for c in tuned.cells if c.grid} == {32}


def test_the_values_of_a_name_add_up_and_the_commas_in_brackets_are_kept():
    axes = read_axes(
        ["smmd[sigma=1,lambda=5]: term=mmd", "smmd[lambda=5,sigma=1.0]: term=both"]
    )
    assert axes == {("smmd[lambda=5,sigma=1]", "term"): ["mmd", "both"]}
