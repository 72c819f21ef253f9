"""Several runs in one folder, against one run that has all cells itself."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.maintenance.merge import merge_runs
from smmd_bench.run.comparison import write_comparisons
from smmd_bench.storage.files import read_json
from tests.changed_runs import changed, with_manifest, without
from tests.conftest import expect_user_error, read_files
from tests.runs import parts_of, write_run


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A run, and the same in two: base and ce with weights here, the other losses there."""
    root = tmp_path_factory.mktemp("runs")
    complete = write_run(root / "whole", seeds=(0, 1), losses=("ce", "smmd"))
    parts = []
    for name, losses in (("first", {"base", "ce"}), ("second", {"smmd"})):
        cells = [cell for cell in complete.rows if cell["loss"] in losses]
        half = with_manifest(complete, root / name, cells=cells)
        shutil.rmtree(half.path / "compare")
        parts.append(half.path)

    weights = next((parts[0] / "train").iterdir()) / "epochs/4"
    weights.mkdir(parents=True)
    (weights / "model.safetensors").write_bytes(b"weights")
    return [complete.path, *parts]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "merged"


def test_the_merged_run_reads_like_the_whole(halves, out):
    complete, first, second = halves
    merge_runs([first, second], out)
    merged = sb.read_run(out)
    expected = sb.read_run(complete)

    for frame in ("cells", "metrics", "completions", "selection"):
        pd.testing.assert_frame_equal(
            getattr(merged, frame).reset_index(drop=True),
            getattr(expected, frame).reset_index(drop=True),
            check_categorical=False,
        )

    assert not list(out.rglob("*.safetensors"))
    assert list(first.rglob("*.safetensors"))

    compared = merged.comparisons[merged.comparisons["loss"] == "smmd"]
    assert set(compared["against_loss"]) == {"ce"}
    assert not list(second.rglob("comparison.json"))  # its files are only read


def test_the_manifest_is_the_firsts_with_what_all_runs_say(halves, out, tmp_path):
    changes = {
        "0": {"command": "one", "experiments": [{"name": "x"}]},
        "1": {"command": "two", "experiments": [{"name": "y"}]},
    }
    runs = []
    for half, (name, change) in zip(halves[1:], changes.items(), strict=True):
        runs.append(with_manifest(sb.read_run(half), tmp_path / name, **change).path)

    merged = read_json(merge_runs(runs, out) / "manifest.json") or {}
    assert merged["command"] == "one\ntwo"
    assert merged["experiments"] == [{"name": "x"}, {"name": "y"}]
    assert merged["name"] == out.name
    assert merged["merged"] == [str(run) for run in runs]


def test_again_it_is_brought_up_to_date_and_another_folder_is_left_alone(
    halves, out, monkeypatch
):
    _, first, second = halves
    wrote = []
    monkeypatch.setattr(
        "smmd_bench.maintenance.merge.write_comparisons",
        lambda run: wrote.append(write_comparisons(run)),
    )
    merge_runs([first, second], out)
    files = read_files(out)

    assert merge_runs([first, second], out) == out
    assert read_files(out) == files
    assert wrote == [True, False]
    with expect_user_error("not made from these runs"):
        merge_runs([first], out)


def test_scored_predictions_are_not_merged_with_trained_losses(halves, tmp_path):
    _, first, second = halves
    scored = with_manifest(sb.read_run(second), tmp_path / "scored", predictions=[])
    with expect_user_error("share no table"):
        merge_runs([first, scored.path], tmp_path / "mixed")


def test_a_cell_that_its_run_has_no_more_goes(halves, tmp_path):
    _, first, second = halves
    shrinking = Path(shutil.copytree(second, tmp_path / "second"))
    merge_runs([first, shrinking], tmp_path / "other")
    gone, *kept = sb.read_run(shrinking).rows
    with_manifest(sb.read_run(shrinking), shrinking, cells=kept)
    merge_runs([first, shrinking], tmp_path / "other")
    assert gone["address"] not in set(sb.read_run(tmp_path / "other").cells["address"])


def other_address(cell):
    address = cell["address"][::-1]
    return {**cell, "address": address, "parts": parts_of(address)}


def other_test(cell):
    return {**cell, "parts": {**cell["parts"], "decode": "d1"}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_address, "have different cells of"),
        (other_test, "differ from the stage decode on"),
    ],
)
def test_two_results_for_one_cell_are_refused(halves, out, tmp_path, change, said):
    other = changed(
        sb.read_run(halves[1]), tmp_path / "other", "cell", change, loss="ce"
    )
    with expect_user_error(said):
        merge_runs([halves[1], other.path], out)
    assert not out.exists()


def test_other_weights_and_a_run_without_cells_are_refused(halves, out, tmp_path):
    other = write_run(
        tmp_path / "b", losses=("ce",), seeds=(0, 1), weights="of another machine"
    )
    with expect_user_error("they test other weights"):
        merge_runs([halves[1], other.path], out)
    empty = with_manifest(other, tmp_path / "empty", cells=[])
    with expect_user_error("has no cells"):
        merge_runs([halves[1], empty.path], out)
    assert not out.exists()


def test_a_cell_is_taken_from_the_run_that_has_its_results(halves, out, tmp_path):
    _, first, second = halves
    begun = without(sb.read_run(first), tmp_path / "begun")
    merge_runs([begun.path, first, second], out)
    assert (sb.read_run(out).cells["status"] == "done").all()
