import json
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.errors import UserError
from smmd_bench.results.frames import RunFrames
from smmd_bench.storage.files import read_json, write_json
from tests.runs import rewrite, write_failure, write_run

FRAMES = [
    "cells", "metrics", "comparisons", "selection", "completions", "probes", "train_log",
]  # fmt: skip


@pytest.fixture
def copy(run_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


def address(run: RunFrames, loss: str, seed: int = 0) -> str:
    cells = run.cells
    return str(cells[(cells["loss"] == loss) & (cells["seed"] == seed)]["address"].iloc[0])


def change(path: Path, **values: object) -> None:
    write_json(path, {**(read_json(path) or {}), **values})


@pytest.mark.parametrize("name", FRAMES)
def test_every_frame_says_which_cell_a_row_is_of(run_folder, name):
    frame = getattr(sb.read_run(run_folder), name)
    assert {"address", "model", "task", "loss", "seed"} <= set(frame.columns)
    assert len(frame) > 0


def test_cells_stand_in_the_order_of_the_experiment(run_folder):
    cells = sb.read_run(run_folder).cells
    assert list(zip(cells["loss"], cells["seed"], strict=True)) == [
        ("base", 0), ("ce", 0), ("ce", 1), ("ntl", 0), ("ntl", 1), ("smmd", 0), ("smmd", 1),
    ]  # fmt: skip


def test_the_experiments_order_of_models_tasks_and_losses_is_kept(tmp_path):
    write_run(
        tmp_path, models=("z/b", "a/a"), tasks=("arithmetic", "arithmetic[level=hard]"),
        losses=("smmd", "ntl", "ce"), seeds=(0,), n=20, resamples=20,
    )  # fmt: skip
    cells = sb.read_run(tmp_path).cells
    assert list(cells["model"].unique()) == ["z/b", "a/a"]
    assert list(cells["task"].unique()) == ["arithmetic", "arithmetic[level=hard]"]
    assert list(cells["loss"].unique()) == ["base", "ce", "smmd", "ntl"]
    assert list(sb.read_run(tmp_path).metrics.groupby("loss", observed=True).groups) == [
        "base", "ce", "smmd", "ntl",
    ]  # fmt: skip


def test_a_cards_level_of_a_task_stands_where_the_experiment_lists_the_task(tmp_path):
    write_run(tmp_path, tasks=("gsm8k", "arithmetic[level=hard]"), losses=("ce",), n=20, steps=5)
    file = tmp_path / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["experiment"]["tasks"] = ["arithmetic", "gsm8k"]
    file.write_text(json.dumps(manifest))
    tasks = list(sb.read_run(tmp_path).cells["task"].unique())
    assert tasks == ["arithmetic[level=hard]", "gsm8k"]


def test_metrics_are_those_of_the_files(run_folder):
    run = sb.read_run(run_folder)
    row = run.metrics[(run.metrics["metric"] == "exact_match") & (run.metrics["loss"] == "base")]
    (found,) = row.to_dict("records")
    stored = read_json(run_folder / "cells" / found["address"] / "metrics.json")
    assert stored is not None
    expected = stored["metrics"]["exact_match"]
    assert {key: found[key] for key in expected} == expected


def test_losses_are_compared_with_ce_and_ce_with_the_base(run_folder):
    comparisons = sb.read_run(run_folder).comparisons
    pairs = comparisons[["loss", "against_loss"]].astype("str").drop_duplicates()
    assert set(pairs.itertuples(index=False, name=None)) == {
        ("ce", "base"), ("ntl", "ce"), ("smmd", "ce"),
    }  # fmt: skip


def test_a_selection_has_one_selected_epoch_a_cell(run_folder):
    selection = sb.read_run(run_folder).selection
    chosen = selection[selection["selected"]]
    assert sorted(chosen["address"]) == sorted(selection["address"].unique())
    assert (chosen["epoch"] == 4).all()


def test_the_training_loss_does_not_hide_the_name_of_the_loss(run_folder):
    log = sb.read_run(run_folder).train_log
    assert set(log["loss"].unique()) == {"ce", "ntl", "smmd"}
    assert log["loss_value"].dtype == "float64"


def test_completions_carry_their_scores(run_folder):
    completions = sb.read_run(run_folder).completions
    assert len(completions) == 7 * 200
    right = completions[completions["exact"]]
    assert (right["parsed"] == right["answer"]).all()
    assert {"prompt", "completion", "operations", "category"} <= set(completions.columns)


def test_completions_and_scores_are_joined_by_uid(copy):
    run = sb.read_run(copy)
    file = copy / "cells" / address(run, "smmd") / "scores.parquet"
    rewrite(file, pd.read_parquet(file).sample(frac=1, random_state=0))
    pd.testing.assert_frame_equal(sb.read_run(copy).completions, run.completions)


def test_only_the_columns_and_cells_that_are_asked_for_are_read(run_folder):
    run = sb.read_run(run_folder)
    frame = run.read("scores", ["exact"], [address(run, "smmd")])
    assert list(frame.columns) == ["address", "model", "task", "loss", "seed", "exact"]
    assert len(frame) == 200


def test_probe_vectors_are_read_only_by_name(run_folder):
    run = sb.read_run(run_folder)
    assert "vector" not in run.probes
    vectors = run.read("probes", ["vector"], [address(run, "ce")])["vector"].dropna()
    assert len(vectors) == 50


def test_tasks_with_other_attributes_share_a_frame(copy):
    run = sb.read_run(copy)
    for name in ("completions", "scores"):
        file = copy / "cells" / address(run, "base") / f"{name}.parquet"
        rewrite(file, pd.read_parquet(file).drop(columns="operations"))
    completions = sb.read_run(copy).completions
    assert completions["operations"].isna().sum() == 200


def test_a_failed_cell_is_listed_with_its_stage_and_error(copy):
    folder = copy / "cells" / address(sb.read_run(copy), "smmd", 1)
    (folder / "metrics.json").unlink()
    write_failure(folder, {"stage": "train", "error": "NaN loss", "traceback": "..."})
    run = sb.read_run(copy)
    (cell,) = run.cells[run.cells["status"] != "done"].to_dict("records")
    assert (cell["status"], cell["stage"], cell["error"]) == ("failed", "train", "NaN loss")
    assert folder.name not in set(run.metrics["address"])
    assert folder.name not in set(run.completions["address"])


def test_a_skipped_cell_is_no_failure(copy):
    folder = copy / "cells" / address(sb.read_run(copy), "smmd", 1)
    (folder / "metrics.json").unlink()
    write_failure(folder, {"stage": "train", "error": "no", "skipped": True})
    assert sb.read_run(copy).cells["status"].value_counts()["skipped"] == 1


def test_an_unfinished_cell_is_pending(copy):
    folder = copy / "cells" / address(sb.read_run(copy), "ntl")
    (folder / "metrics.json").unlink()
    run = sb.read_run(copy)
    assert run.cells.set_index("address").loc[folder.name, "status"] == "pending"


def test_metrics_of_an_older_address_do_not_count(copy):
    folder = copy / "cells" / address(sb.read_run(copy), "ntl")
    change(folder / "metrics.json", address="measured-by-an-older-parser")
    run = sb.read_run(copy)
    assert run.cells.set_index("address").loc[folder.name, "status"] == "pending"
    assert folder.name not in set(run.metrics["address"])


def test_a_cell_that_another_has_replaced_is_not_shown(copy):
    run = sb.read_run(copy)
    old = copy / "cells" / address(run, "ntl")
    shutil.copytree(old, copy / "cells" / "0new")
    change(copy / "cells" / "0new" / "cell.json", address="0new")
    listed = [a for a in run.cells["address"] if a != old.name]
    change(copy / "manifest.json", cells=[*listed, "0new"])
    addresses = set(sb.read_run(copy).cells["address"])
    assert "0new" in addresses
    assert old.name not in addresses


def test_a_run_without_any_result_has_empty_frames(copy):
    shutil.rmtree(copy / "cells")
    run = sb.read_run(copy)
    assert [len(getattr(run, name)) for name in FRAMES] == [0] * len(FRAMES)


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_is_no_run_is_refused(tmp_path, there):
    folder = tmp_path if there else tmp_path / "absent"
    with pytest.raises(UserError, match=r"is not a run folder: it .* Give the folder"):
        sb.read_run(folder)


def test_importing_it_brings_in_no_heavy_library():
    code = (
        "import sys, smmd_bench.results.frames; "
        "print(*({'pandas', 'pyarrow', 'scipy', 'matplotlib', 'torch'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""
