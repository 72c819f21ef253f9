"""Which cells are compared with which."""

import pytest

from smmd_bench.results.baselines import (
    CellKey,
    cell_key,
    find_baselines,
    find_noise_pairs,
)


def key(loss, seed=0, recipe="r", test="all", reference=None):
    followed = "" if loss == "base" or reference else recipe
    return CellKey("m", "t", None, test, followed, loss, seed, reference)


def test_ce_of_the_same_seed_and_ce_with_the_base():
    keys = [key("base"), key("ce"), key("ce", 1), key("smmd"), key("smmd", 1)]
    assert find_baselines(keys) == {
        key("ce"): key("base"),
        key("ce", 1): key("base"),
        key("smmd"): key("ce"),
        key("smmd", 1): key("ce", 1),
    }


def test_a_seed_that_ce_lacks_is_not_compared_with_something_else():
    keys = [key("base"), key("ce"), key("smmd"), key("smmd", 1)]
    assert find_baselines(keys) == {key("ce"): key("base"), key("smmd"): key("ce")}


def test_without_any_ce_the_base_stands_in():
    other = key("ce", recipe="another")
    keys = [key("base"), key("smmd"), key("smmd", 1), other]
    assert find_baselines(keys) == {
        key("smmd"): key("base"),
        key("smmd", 1): key("base"),
        other: key("base"),
    }


def test_cells_that_answer_other_examples_are_not_paired():
    keys = [key("base"), key("ce"), key("smmd", test="half"), key("ntl")]
    assert find_baselines(keys) == {key("ce"): key("base"), key("ntl"): key("ce")}


def test_a_tuned_loss_with_tuned_ce_of_as_many_settings():
    ce = key("ce[tuned]")._replace(budget=5)
    smmd = key("smmd[tuned]")._replace(budget=5)
    plain = [key("base"), key("ce"), key("smmd")]
    baselines = {
        key("ce"): key("base"),
        key("smmd"): key("ce"),
        ce: key("ce"),
    }
    assert find_baselines([*plain, ce, smmd]) == {**baselines, smmd: ce}
    assert find_baselines([key("base"), smmd]) == {smmd: key("base")}

    # With another budget, untuned cross-entropy is the baseline.
    more = smmd._replace(budget=9)
    assert find_baselines([*plain, ce, more]) == {**baselines, more: key("ce")}

    of_other_seed = find_baselines([*plain, ce._replace(seed=1), smmd])
    assert of_other_seed[key("smmd")] == key("ce")
    assert smmd not in of_other_seed


def test_files_of_completions_are_compared_with_the_first_of_them():
    first_file, base, ce = (
        key(label, reference="mine") for label in ("mine", "base", "ce")
    )
    assert find_baselines([first_file, base, ce]) == {base: first_file, ce: first_file}
    assert find_baselines([first_file, ce, key("ce"), key("smmd")]) == {
        ce: first_file,
        key("smmd"): key("ce"),
    }


@pytest.mark.parametrize(
    ("seeds", "pairs"),
    [((0,), {}), ((0, 1), {1: 0}), ((5, 1, 3), {3: 1}), ((0, 1, 2, 3), {2: 0, 3: 1})],
)
def test_the_noise_floor_pairs_cross_entropy_with_itself_and_no_seed_twice(
    seeds, pairs
):
    alternatives = [
        key("base"),
        key("smmd"),
        key("smmd", 1),
        key("ce", reference="mine"),
    ]
    noise = find_noise_pairs([*(key("ce", seed) for seed in seeds), *alternatives])
    assert noise == {key("ce", mine): key("ce", other) for mine, other in pairs.items()}


CELL = {
    "model": "m", "task": "t", "trained_on": None, "loss": "ce", "seed": 0, "data_seed": 0,
    "recipe": {"learning_rate": 1, "test_examples": 9, "keep_epochs": False},
    "data": {"identity": {"train": {"digest": "a"}, "test": {"digest": "b"}}},
    "plugins": {"task t": "source", "loss ce": "source"},
}  # fmt: skip


def test_cells_of_other_recipes_test_data_or_parsers_are_not_compared():
    def key_with(part, **changes):
        return cell_key({**CELL, part: {**CELL[part], **changes}})

    unchanged = [
        key_with("recipe", keep_epochs=True),
        key_with("plugins", **{"loss ce": "another"}),
    ]
    alternatives = [
        key_with("recipe", learning_rate=2),
        key_with("recipe", test_examples=5),
        key_with("data", identity={"test": {"digest": "c"}}),
        key_with("plugins", **{"task t": "another"}),
        cell_key({**CELL, "data_seed": 1}),
    ]
    assert {*unchanged} == {cell_key(CELL)}
    assert cell_key(CELL) not in alternatives
