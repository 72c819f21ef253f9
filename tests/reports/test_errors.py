import shutil
from pathlib import Path

import pandas as pd
import pytest
from smmd_bench.reports._errors import (
    common_errors,
    comparisons,
    silent_note,
    subset_note,
    why_none,
)

import smmd_bench as sb
from smmd_bench.results.files import write_json, write_parquet
from tests.runs import Planted, write_run

ANSWERS = ["0", "10", "25", "7", "40"]


def planted(path: Path, predictions, **names):
    write_run(
        path, tasks=("gsm8k",), planted=Planted(ANSWERS, predictions), n=5, steps=5, resamples=20,
        **{"seeds": (0,), **names},
    )  # fmt: skip
    return sb.read_run(path)


def test_an_example_counts_where_every_loss_gives_a_number(tmp_path):
    run = planted(
        tmp_path,
        {
            "ce": ["0", "11", "none", "7", "4"],
            "ntl": ["1", "10", "25", "7", "none"],
            "smmd": ["0", "10", "20", "-7", "40"],
        },
    )
    (comparison,) = comparisons(run)
    common = common_errors(run, comparison)
    assert comparison.losses == ("ce", "ntl", "smmd")
    assert (common.n, common.examples) == (3, 5)
    errors = {loss: list(common.of(loss)["error"]) for loss in comparison.losses}
    assert errors == {"ce": [0, 1, 0], "ntl": [1, 0, 0], "smmd": [0, 0, 14]}


def test_each_seed_has_a_subset_of_its_own(tmp_path):
    run = planted(
        tmp_path,
        {
            "ce": {0: ["none", "1", "1", "1", "1"], 1: ["1"] * 5},
            "smmd": {0: ["1"] * 5, 1: ["none", "none", "1", "1", "1"]},
        },
        seeds=(0, 1),
    )
    ((comparison, common),) = [(c, common_errors(run, c)) for c in comparisons(run)]
    sizes = common.frame.groupby(["loss", "seed"], observed=True).size()
    assert sizes.to_dict() == {("ce", 0): 4, ("ce", 1): 3, ("smmd", 0): 4, ("smmd", 1): 3}
    assert "(n tiny, gsm8k: 7 of 10 over 2 seeds)" in subset_note([(comparison, common)]).replace(
        "builtin/", ""
    )


def test_a_seed_that_a_loss_lacks_is_left_out(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    cells = sb.read_run(folder).cells
    lost = cells[(cells["loss"] == "smmd") & (cells["seed"] == 1)]["address"].iloc[0]
    (folder / "cells" / lost / "metrics.json").unlink()
    (comparison,) = comparisons(sb.read_run(folder))
    assert (comparison.losses, comparison.seeds) == (("ce", "ntl", "smmd"), (0,))
    assert len(comparison.addresses) == 3


def test_the_untuned_model_takes_no_part(run_folder):
    (comparison,) = comparisons(sb.read_run(run_folder))
    assert "base" not in comparison.losses
    assert (comparison.reference, comparison.others) == ("ce", ("ntl", "smmd"))


def test_without_cross_entropy_the_first_loss_is_the_reference(tmp_path):
    run = planted(tmp_path, {"ntl": ANSWERS, "smmd": ANSWERS})
    assert comparisons(run)[0].reference == "ntl"


def test_of_completions_made_elsewhere_the_first_is_the_reference(tmp_path):
    run = planted(tmp_path, {"smmd": ANSWERS, "ce": ANSWERS})
    assert comparisons(run)[0].reference == "ce"
    manifest = {**run.manifest, "predictions": {"losses": ["smmd", "ce"]}}
    write_json(tmp_path / "manifest.json", manifest)
    (comparison,) = comparisons(sb.read_run(tmp_path))
    assert comparison.reference == comparison.losses[0]


def test_a_run_without_results_has_nothing_to_compare(tmp_path):
    write_json(tmp_path / "manifest.json", {"name": "empty", "experiment": {}})
    assert why_none(sb.read_run(tmp_path)) == "no cell has results"


def test_one_loss_alone_is_compared_with_nothing(tmp_path):
    run = planted(tmp_path, {"smmd": ANSWERS})
    reason = "no model and task has numbers of two trained losses on a common seed"
    assert why_none(run) == reason


def test_a_run_without_scores_has_nothing_to_compare(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS})
    for file in tmp_path.glob("cells/*/scores.parquet"):
        file.unlink()
    assert why_none(run) == "no cell has scores"


def test_a_task_whose_targets_hold_no_number_is_left_out(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ANSWERS})
    for file in tmp_path.glob("cells/*/scores.parquet"):
        write_parquet(file, pd.read_parquet(file).assign(answer=float("nan")))
    assert why_none(run) == "no task has numbers as answers"


def test_a_subset_can_be_empty(tmp_path):
    run = planted(tmp_path, {"ce": ["1", *["none"] * 4], "smmd": ["none", *["1"] * 4]})
    (comparison,) = comparisons(run)
    assert common_errors(run, comparison).n == 0


@pytest.mark.parametrize("answers", [["none"] * 5, ["", "", "", "", ""]])
def test_a_loss_without_one_number_is_left_out_and_named(tmp_path, answers):
    run = planted(tmp_path, {"ce": ANSWERS, "gce": answers, "smmd": ANSWERS})
    (comparison,) = comparisons(run)
    assert comparison.losses == ("ce", "smmd")
    assert common_errors(run, comparison).n == 5
    assert silent_note(run).startswith(" Left out, without one number: GCE (")


def test_two_losses_of_which_one_is_silent_cannot_be_compared(tmp_path):
    run = planted(tmp_path, {"ce": ANSWERS, "smmd": ["none"] * 5})
    assert "numbers of two trained losses" in why_none(run)
