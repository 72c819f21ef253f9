"""Which answers the error analyses compare, and what their notes say of them."""

import random

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports._error_panels import in_brief, limit_note, silent_note, subset_note
from smmd_bench.reports._errors import CommonErrors, Pair, common_errors, error_pairs, why_none
from smmd_bench.reports._panels import select_losses

from smmd_bench.results.frames import RunFrames
from tests.changed_runs import changed, with_manifest, without
from tests.runs import planted_run

ANSWERS = ["0", "10", "25", "7", "40"]


def errors_by_loss(run):
    return {common.pair.loss: common for common in common_errors(run)}


def errors_of(common, *losses):
    return {loss: list(common.of(loss)["error"]) for loss in losses}


def test_an_example_counts_for_a_pair_where_both_give_a_number(tmp_path):
    run = planted_run(
        tmp_path,
        ANSWERS,
        {
            "ce": ["0", "11", "none", "7", "4"],
            "ntl": ["1", "10", "25", "7", "none"],
            "smmd": ["0", "10", "20", "-7", "40"],
        },
    )
    common = errors_by_loss(run)
    assert list(common) == ["ntl", "smmd"]
    assert (common["ntl"].n, common["ntl"].examples) == (3, 5)
    assert errors_of(common["ntl"], "ce", "ntl") == {"ce": [0, 1, 0], "ntl": [1, 0, 0]}
    assert (common["smmd"].n, common["smmd"].examples) == (4, 5)
    assert errors_of(common["smmd"], "ce", "smmd") == {"ce": [0, 1, 0, 36], "smmd": [0, 0, 14, 0]}


def test_a_loss_that_leaves_much_unanswered_shrinks_no_other_pair(tmp_path):
    losses = {"ce": ANSWERS, "smmd": ANSWERS, "gce": ["0", *["none"] * 4]}
    common = errors_by_loss(planted_run(tmp_path, ANSWERS, losses))
    assert (common["smmd"].n, common["gce"].n) == (5, 1)


def test_a_pair_is_compared_on_the_seeds_that_both_have(tmp_path):
    losses = ["ce", "ntl", "smmd", "smmd[sigma=1]"]
    run = planted_run(tmp_path, ANSWERS, dict.fromkeys(losses, ANSWERS), seeds=(0, 1, 2))
    for loss, seed in (("smmd[sigma=1]", 0), ("smmd[sigma=1]", 2), ("ntl", 1)):
        run = without(run, tmp_path, loss=loss, seed=seed)
    common = errors_by_loss(run)
    assert {loss: (each.pair.seeds, each.n, each.examples) for loss, each in common.items()} == {
        "ntl": ((0, 2), 10, 10), "smmd": ((0, 1, 2), 15, 15), "smmd[sigma=1]": ((1,), 5, 5),
    }  # fmt: skip
    assert set(common["smmd[sigma=1]"].of("ce")["seed"]) == {1}


def test_a_pair_without_a_common_seed_is_left_out(tmp_path):
    losses = dict.fromkeys(("ce", "ntl", "smmd"), ANSWERS)
    run = planted_run(tmp_path, ANSWERS, losses, seeds=(0, 1))
    for loss, seed in (("ce", 1), ("smmd", 0)):
        run = without(run, tmp_path, loss=loss, seed=seed)
    assert [pair.loss for pair in error_pairs(run)] == ["ntl"]


def test_the_numbers_are_those_of_a_plain_loop(tmp_path):
    """Each seed has a subset of its own."""
    rng, seeds, losses = random.Random(7), (0, 1, 2), ("ce", "gce", "ntl", "smmd")
    answers = [str(rng.randint(-50, 50)) for _ in range(40)]
    texts = {
        loss: {
            seed: [
                "none" if rng.random() < share else str(int(answer) + rng.randint(0, 3))
                for answer in answers
            ]
            for seed in seeds
        }
        for loss, share in zip(losses, (0.05, 0.45, 0.1, 0), strict=True)
    }
    run = planted_run(tmp_path, answers, texts, seeds=seeds)
    run = without(run, tmp_path, loss="ntl", seed=1)
    for loss, common in errors_by_loss(run).items():
        expected = {"ce": [], loss: []}
        for seed in (0, 2) if loss == "ntl" else seeds:
            for answer, a, b in zip(answers, texts["ce"][seed], texts[loss][seed], strict=True):
                if "none" not in (a, b):
                    expected["ce"].append((seed, abs(int(a) - int(answer))))
                    expected[loss].append((seed, abs(int(b) - int(answer))))
        assert common.n == len(expected[loss])
        assert common.examples == 40 * (2 if loss == "ntl" else 3)
        for name, rows in expected.items():
            found = common.of(name)
            assert list(zip(found["seed"], found["error"], strict=True)) == rows


def test_the_scores_of_a_comparison_are_read_once(tmp_path, monkeypatch):
    losses = ["ce", "gce", "ntl", "ntil", "smmd"]
    run = planted_run(tmp_path, ANSWERS, dict.fromkeys(losses, ANSWERS))
    assert len(error_pairs(run)) == 4
    read, calls = RunFrames.read, []
    monkeypatch.setattr(RunFrames, "read", lambda *a, **k: calls.append(a) or read(*a, **k))
    common_errors(run)
    assert len([call for call in calls if "error" in call[2]]) == 1


def test_the_untuned_model_takes_no_part(run):
    pairs = error_pairs(run)
    assert [(pair.reference, pair.loss) for pair in pairs] == [("ce", "ntl"), ("ce", "smmd")]


def test_without_cross_entropy_or_with_completions_made_elsewhere_the_first_is_the_reference(
    tmp_path,
):
    run = planted_run(tmp_path / "a", ANSWERS, {"ntl": ANSWERS, "smmd": ANSWERS})
    assert error_pairs(run)[0].reference == "ntl"
    run = planted_run(tmp_path / "b", ANSWERS, {"smmd": ANSWERS, "ce": ANSWERS})
    assert error_pairs(run)[0].reference == "ce"
    elsewhere = with_manifest(run, tmp_path / "b", predictions={"losses": ["smmd", "ce"]})
    (pair,) = error_pairs(elsewhere)
    assert pair.reference == elsewhere.cells["loss"].cat.categories[0]


def test_a_task_whose_targets_hold_no_number_is_left_out(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"ce": ANSWERS, "smmd": ANSWERS})
    run = changed(run, tmp_path, "scores.parquet", lambda scores: scores.assign(answer=np.nan))
    assert why_none(run) == "no task has numbers as answers"


def test_a_subset_can_be_empty(tmp_path):
    losses = {"ce": ["1", *["none"] * 4], "smmd": ["none", *["1"] * 4]}
    assert errors_by_loss(planted_run(tmp_path, ANSWERS, losses))["smmd"].n == 0


@pytest.mark.parametrize("answers", [["none"] * 5, [""] * 5])
def test_a_loss_without_one_number_is_left_out_and_named(tmp_path, answers):
    run = planted_run(tmp_path / "a", ANSWERS, {"ce": ANSWERS, "gce": answers, "smmd": ANSWERS})
    assert {loss: each.n for loss, each in errors_by_loss(run).items()} == {"smmd": 5}
    assert silent_note(run).startswith("Left out, without one number: GCE (")
    run = planted_run(tmp_path / "b", ANSWERS, {"ce": ANSWERS, "smmd": answers})
    assert "numbers of two trained losses" in why_none(run)


@pytest.mark.parametrize(
    ("losses", "most", "drawn"),
    [
        (["ntl", "smmd"], 3, ["ntl", "smmd"]),
        (["ntl", "smmd[sigma=1]", "smmd", "smmd[sigma=2]", "gce"], 3, ["ntl", "smmd", "gce"]),
        (["a", "b", "c", "d", "smmd"], 3, ["a", "b", "smmd"]),
        (["smmd[sigma=1]", "smmd[sigma=2]", "smmd[sigma=3]", "ntl"], 3,
         ["smmd[sigma=1]", "smmd[sigma=2]", "ntl"]),
        (["ce", "ntl[lambda=1]", "ntl", "smmd"], 2, ["ce", "smmd"]),
    ],
)  # fmt: skip
def test_smmd_and_the_losses_without_parameters_are_drawn_first(losses, most, drawn):
    assert select_losses(losses, most) == drawn


def seven_of_ten(*losses, model="builtin/tiny"):
    frame = pd.DataFrame(index=range(2 * 7))
    return [
        CommonErrors(Pair(model, "gsm8k", "ce", loss, (0,), ("a", "b")), frame, 10)
        for loss in losses
    ]


def test_what_is_not_drawn_is_named():
    few, many = seven_of_ten("ntl", "smmd"), seven_of_ten(*"abcde", "smmd")
    assert limit_note(few, 1) == ""
    assert limit_note([*few, *seven_of_ten("smmd", model="m/other")], 1) == (
        "Drawn are 1 of 2 combinations of model and task; the CSV of the figure has all."
    )
    assert limit_note(many, 1) == (
        "Drawn are at most 5 losses over the reference (a, b, c, d, SMMD); the CSV of the figure "
        "has all."
    )


def test_few_counts_are_listed_and_of_many_the_smallest_and_the_largest_share():
    counts = [("NTL", 1390, 1500), ("SMMD", 1500, 1500)]
    assert in_brief(counts) == "NTL 1,390 of 1,500; SMMD 1,500 of 1,500"
    counts += [("GCE", 549, 1000), ("NTIL", 7, 10), ("A", 6, 10)]
    assert in_brief(counts) == "from 54.9 % with GCE to 100.0 % with SMMD"
    assert in_brief([("A", at, 1000 * at) for at in range(1, 7)]) == "0.1 % of each"


def test_the_sizes_of_the_subsets_are_named_with_their_models_where_there_are_several():
    one = seven_of_ten("smmd", model="m/one")
    assert "on the seeds that both have. Its share: SMMD 7 of 10." in subset_note(one)
    two = [*one, *seven_of_ten("smmd", model="m/two")]
    assert "Its share: SMMD (one, gsm8k) 7 of 10; SMMD (two, gsm8k) 7 of 10." in subset_note(two)
