import random
from pathlib import Path

import pandas as pd
import pytest
from smmd_bench.reports._error_panels import silent_note
from smmd_bench.reports._errors import common_errors, error_pairs, why_none
from smmd_bench.reports._panels import select_losses

import smmd_bench as sb
from smmd_bench.storage.files import write_json
from tests.runs import Planted, rewrite, write_run

ANSWERS = ["0", "10", "25", "7", "40"]


def planted(path: Path, predictions, answers=ANSWERS, **names):
    write_run(
        path, tasks=("gsm8k",), planted=Planted(answers, predictions), n=5, steps=5, resamples=20,
        **{"seeds": (0,), **names},
    )  # fmt: skip
    return sb.read_run(path)


def without(path: Path, loss: str, *seeds: int):
    """The run in which a loss has no results on those seeds."""
    cells = sb.read_run(path).cells
    for address in cells.loc[(cells["loss"] == loss) & cells["seed"].isin(seeds), "address"]:
        (path / "cells" / address / "metrics.json").unlink()
    return sb.read_run(path)


def errors_by_loss(run):
    return {common.pair.loss: common for common in common_errors(run)}


def errors_of(common, *losses):
    return {loss: list(common.of(loss)["error"]) for loss in losses}


def test_an_example_counts_for_a_pair_where_both_give_a_number(tmp_path):
    run = planted(
        tmp_path,
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
    losses = {"ce": ANSWERS, "smmd": ANSWERS}
    silent = {**losses, "gce": ["0", "none", "none", "none", "none"]}
    runs = [planted(tmp_path / "two", losses), planted(tmp_path / "three", silent)]
    found = [errors_by_loss(run) for run in runs]
    assert [common["smmd"].n for common in found] == [5, 5]
    assert found[1]["gce"].n == 1


def test_each_seed_has_a_subset_of_its_own(tmp_path):
    run = planted(
        tmp_path,
        {
            "ce": {0: ["none", "1", "1", "1", "1"], 1: ["1"] * 5},
            "smmd": {0: ["1"] * 5, 1: ["none", "none", "1", "1", "1"]},
        },
        seeds=(0, 1),
    )
    common = errors_by_loss(run)
    sizes = common["smmd"].frame.groupby(["loss", "seed"], observed=True).size()
    assert sizes.to_dict() == {("ce", 0): 4, ("ce", 1): 3, ("smmd", 0): 4, ("smmd", 1): 3}


def test_a_pair_is_compared_on_the_seeds_that_both_have(tmp_path):
    losses = ["ce", "ntl", "smmd", "smmd[sigma=1]"]
    planted(tmp_path, dict.fromkeys(losses, ANSWERS), seeds=(0, 1, 2))
    without(tmp_path, "smmd[sigma=1]", 0, 2)
    run = without(tmp_path, "ntl", 1)
    common = errors_by_loss(run)
    seeds = {loss: each.pair.seeds for loss, each in common.items()}
    assert seeds == {"ntl": (0, 2), "smmd": (0, 1, 2), "smmd[sigma=1]": (1,)}
    assert {loss: each.n for loss, each in common.items()} == {
        "ntl": 10, "smmd": 15, "smmd[sigma=1]": 5
    }  # fmt: skip
    assert {loss: each.examples for loss, each in common.items()} == {
        "ntl": 10, "smmd": 15, "smmd[sigma=1]": 5
    }  # fmt: skip
    assert set(common["smmd[sigma=1]"].of("ce")["seed"]) == {1}


def test_a_pair_without_a_common_seed_is_left_out(tmp_path):
    planted(tmp_path, {"ce": ANSWERS, "ntl": ANSWERS, "smmd": ANSWERS}, seeds=(0, 1))
    without(tmp_path, "ce", 1)
    run = without(tmp_path, "smmd", 0)
    assert [pair.loss for pair in error_pairs(run)] == ["ntl"]


def test_the_numbers_are_those_of_a_plain_loop(tmp_path):
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
    planted(tmp_path, texts, answers, seeds=seeds)
    run = without(tmp_path, "ntl", 1)
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
    run = planted(tmp_path, dict.fromkeys(losses, ANSWERS))
    assert len(error_pairs(run)) == 4
    read, calls = type(run).read, []
    monkeypatch.setattr(type(run), "read", lambda *a, **k: calls.append(a) or read(*a, **k))
    common_errors(run)
    assert len([call for call in calls if "error" in call[2]]) == 1


def test_the_untuned_model_takes_no_part(run_folder):
    pairs = error_pairs(sb.read_run(run_folder))
    assert [(pair.reference, pair.loss) for pair in pairs] == [("ce", "ntl"), ("ce", "smmd")]


def test_without_cross_entropy_the_first_loss_is_the_reference(tmp_path):
    run = planted(tmp_path, {"ntl": ANSWERS, "smmd": ANSWERS})
    assert error_pairs(run)[0].reference == "ntl"


def test_of_completions_made_elsewhere_the_first_is_the_reference(tmp_path):
    run = planted(tmp_path, {"smmd": ANSWERS, "ce": ANSWERS})
    assert error_pairs(run)[0].reference == "ce"
    manifest = {**run.manifest, "predictions": {"losses": ["smmd", "ce"]}}
    write_json(tmp_path / "manifest.json", manifest)
    (pair,) = error_pairs(sb.read_run(tmp_path))
    assert pair.reference == sb.read_run(tmp_path).cells["loss"].cat.categories[0]


def test_a_run_without_results_has_nothing_to_compare(tmp_path):
    write_json(tmp_path / "manifest.json", {"name": "empty", "experiment": {}})
    assert why_none(sb.read_run(tmp_path)) == "no cell has results"


def test_one_loss_alone_is_compared_with_nothing(tmp_path):
    run = planted(tmp_path, {"smmd": ANSWERS})
    reason = "no model and task has numbers of two trained losses on a common seed"
    assert why_none(run) == reason


def test_a_run_without_scores_has_nothing_to_compare(tmp_path):
    planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS})
    for file in tmp_path.glob("cells/*/scores.parquet"):
        file.unlink()
    assert why_none(sb.read_run(tmp_path)) == "no cell has results"


def test_a_task_whose_targets_hold_no_number_is_left_out(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS})
    for file in tmp_path.glob("cells/*/scores.parquet"):
        rewrite(file, pd.read_parquet(file).assign(answer=float("nan")))
    assert why_none(run) == "no task has numbers as answers"


def test_a_subset_can_be_empty(tmp_path):
    run = planted(tmp_path, {"ce": ["1", *["none"] * 4], "smmd": ["none", *["1"] * 4]})
    assert errors_by_loss(run)["smmd"].n == 0


@pytest.mark.parametrize("answers", [["none"] * 5, ["", "", "", "", ""]])
def test_a_loss_without_one_number_is_left_out_and_named(tmp_path, answers):
    run = planted(tmp_path, {"ce": ANSWERS, "gce": answers, "smmd": ANSWERS})
    assert {loss: each.n for loss, each in errors_by_loss(run).items()} == {"smmd": 5}
    assert silent_note(run).startswith("Left out, without one number: GCE (")


def test_two_losses_of_which_one_is_silent_cannot_be_compared(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ["none"] * 5})
    assert "numbers of two trained losses" in why_none(run)


@pytest.mark.parametrize(
    ("losses", "drawn"),
    [
        (["ntl", "smmd"], ["ntl", "smmd"]),
        (["ntl", "smmd[sigma=1]", "smmd", "smmd[sigma=2]", "gce"], ["ntl", "smmd", "gce"]),
        (["a", "b", "c", "d", "smmd"], ["a", "b", "smmd"]),
        (["smmd[sigma=1]", "smmd[sigma=2]", "smmd[sigma=3]", "ntl"],
         ["smmd[sigma=1]", "smmd[sigma=2]", "ntl"]),
    ],
)  # fmt: skip
def test_smmd_and_the_losses_without_parameters_are_drawn_first(losses, drawn):
    assert select_losses(losses, 3) == drawn
