import json
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from smmd_bench.results.frames import read_run
from tests.changed_runs import NO_MEMORY, changed, without
from tests.conftest import expect_user_error
from tests.in_process import call
from tests.runs import parts_of, quick_run

FRAMES = [
    "cells", "metrics", "comparisons", "selection", "completions", "probes", "train_log",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(run_folder):
    return read_run(run_folder)


def address(run, loss, seed=0):
    cells = run.cells
    return str(
        cells[(cells["loss"] == loss) & (cells["seed"] == seed)]["address"].iloc[0]
    )


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_says_which_cell_a_row_is_of(run, name):
    frame = getattr(run, name)
    assert {"address", "model", "task", "loss", "seed"} <= set(frame.columns)
    assert len(frame) > 0


def test_the_experiments_order_of_models_tasks_and_losses_is_kept(tmp_path):
    tasks = ("arithmetic", "arithmetic[level=hard]")
    losses = ["base", "ce", "smmd", "ntl"]
    run = quick_run(
        tmp_path, models=("z/b", "a/a"), tasks=tasks, losses=("smmd", "ntl", "ce")
    )
    cells = run.cells

    assert list(cells["model"].unique()) == ["z/b", "a/a"]
    assert tuple(cells["task"].unique()) == tasks
    assert list(cells["loss"].unique()) == losses
    assert list(run.metrics.groupby("loss", observed=True).groups) == losses


def test_cross_entropy_of_other_seeds_is_the_noise(tmp_path):
    run = quick_run(tmp_path, losses=("ce", "smmd"), seeds=(0, 1, 2))
    (pair,) = run.noise[run.noise["metric"] == "exact_match"].to_dict("records")
    assert pair["loss"] == "ce"
    assert pair["against_loss"] == "ce"
    assert pair["seed"] == 1
    assert (
        pair["against"]
        == run.cells.query("loss == 'ce' and seed == 0")["address"].item()
    )
    assert "jackknife" not in run.noise
    assert [len(values) for values in run.paired["jackknife"]] == [20] * len(run.paired)
    assert quick_run(tmp_path / "one").noise.empty


def test_losses_are_compared_with_ce_and_ce_with_the_base(run):
    pairs = run.comparisons[["loss", "against_loss"]].astype("str").drop_duplicates()
    assert set(pairs.itertuples(index=False, name=None)) == {
        ("ce", "base"), ("ntl", "ce"), ("smmd", "ce"),
    }  # fmt: skip


def test_parameters_and_changed_settings_are_columns_of_the_cells(tmp_path):
    """A pivot over a parameter is one line; the plain loss has its default."""
    losses = ("ce", "ntl", "smmd", "smmd[lambda=5]", "smmd[lambda=1,sigma=1+2]")
    quick_run(tmp_path, losses=losses)
    recipe = {"epochs": 2, "save_minutes": 1.0}
    run = quick_run(
        tmp_path, losses=("smmd[lambda=5]",), seeds=(1,), recipe=recipe, base=False
    )
    cells = run.cells.set_index(["loss", "seed"])
    assert cells.loc[("base", 0), ["lambda", "sigma", "epochs"]].isna().all()
    assert cells["lambda"].dropna().tolist() == [3, 5, 5, 1]
    assert cells.loc["smmd", "sigma"].item() == "2"
    assert cells.loc[("smmd[lambda=1,sigma=1+2]", 0), "sigma"] == "1+2"

    epochs = cells["epochs"].dropna()
    assert epochs[epochs == 2].index.tolist() == [("smmd[lambda=5]", 1)]
    assert len(epochs) == 6
    assert "save_minutes" not in cells

    table = run.cells.merge(run.metrics).pivot_table("value", "lambda", "metric")
    metrics = run.metrics.query("loss == 'smmd' and metric == 'exact_match'")[
        "value"
    ].item()
    assert table.loc[3, "exact_match"] == metrics


def test_the_cells_of_verdict_and_comparisons_are_plain_values(run):
    for frame in (run.verdict.astype("object"), run.comparisons):
        assert not any(isinstance(cell, list | tuple) for cell in frame.to_numpy().flat)


def test_the_verdict_is_a_frame_of_differences_and_of_flips_of_exact_match(run):
    verdict = run.verdict
    assert set(verdict["verdict"]) <= {"better", "worse", "cannot tell", "seeds differ"}
    exact = verdict.query("metric == 'exact_match'").set_index("loss")
    difference = exact["value"] - exact["against_value"]
    assert [*exact["difference"]] == pytest.approx([*difference])

    smmd = exact.loc["smmd"]
    metrics = run.metrics.query("metric == 'exact_match'")
    by_loss = metrics.groupby("loss", observed=True)
    means = by_loss["value"].mean()
    assert smmd["value"] == pytest.approx(means["smmd"])
    assert smmd["against_value"] == pytest.approx(means["ce"])

    wide = run.completions.pivot_table("exact", ["seed", "uid"], "loss", observed=True)
    gained = wide["smmd"] > wide["ce"]
    lost = wide["smmd"] < wide["ce"]
    assert smmd["gained"] == gained.sum()
    assert smmd["lost"] == lost.sum()

    of_errors = verdict.query("metric != 'exact_match'")
    assert of_errors[["gained", "lost"]].isna().all(axis=None)


def test_the_verdict_is_in_the_json_of_report(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "run")
    command = "report run --only verdict --format csv --json"
    content = json.loads(call(command, tmp_path).stdout)
    in_json = pd.DataFrame(content["verdict"])
    columns = ["verdict", "gained", "lost"]
    assert [*in_json["verdict"]] == [*run.verdict["verdict"]]
    assert [*in_json.loc[0, columns]] == [*run.verdict.loc[0, columns]]


def test_a_selection_has_one_selected_epoch_a_cell(run):
    selection = run.selection
    chosen = selection[selection["selected"]]
    assert sorted(chosen["address"]) == sorted(selection["address"].unique())
    assert (chosen["epoch"] == 4).all()


def test_completions_carry_their_scores(run):
    completions = run.completions
    assert len(completions) == 7 * 200
    right = completions[completions["exact"]]
    assert (right["parsed"] == right["answer"]).all()
    assert {"prompt", "completion", "operations", "category"} <= set(
        completions.columns
    )


def test_only_the_columns_and_cells_that_are_asked_for_are_read(run):
    frame = run.read("scores", ["exact"], [address(run, "smmd")])
    assert list(frame.columns) == ["address", "model", "task", "loss", "seed", "exact"]
    assert len(frame) == 200
    # the training's is loss_value
    assert {*run.train_log["loss"]} == {"ce", "ntl", "smmd"}
    assert "vector" not in run.probes
    vectors = run.read("probes", ["vector"], [address(run, "ce")])["vector"].dropna()
    assert len(vectors) == 50


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (NO_MEMORY, ("failed", "train", "no memory")),
        ({"error": "no digits", "skipped": True}, ("skipped", None, "no digits")),
        (None, ("pending", None, None)),
    ],
)
def test_a_cell_without_results_says_why(failure, expected, run, tmp_path):
    lost = without(run, tmp_path, failure=failure, loss="smmd", seed=1)
    (cell,) = lost.cells[lost.cells["status"] != "done"].to_dict("records")
    facts = [cell[name] for name in ("status", "stage", "error")]
    assert tuple(None if pd.isna(value) else value for value in facts) == expected
    assert cell["address"] == address(run, "smmd", 1)
    assert cell["address"] not in {
        *lost.metrics["address"],
        *lost.completions["address"],
    }


def test_a_cell_that_another_has_replaced_is_not_shown(run, tmp_path):
    old = address(run, "ntl")

    def replaced(cell):
        return {**cell, "address": "0new", "parts": parts_of("0new")}

    again = changed(run, tmp_path, "cell", replaced, loss="ntl", seed=0)
    assert again.cells.set_index("address")["status"]["0new"] == "pending"
    assert old not in {*again.cells["address"]}
    assert old not in {*again.metrics["address"]}


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with expect_user_error(r"is not a run folder: it .* Give the folder"):
        read_run(tmp_path)


def test_importing_it_brings_in_no_heavy_library():
    code = (
        "import sys, smmd_bench.results.frames; "
        "print(*({'pandas', 'pyarrow', 'scipy', 'matplotlib', 'torch'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""
