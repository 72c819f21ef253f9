"""Several runs in one folder, against one run that has all cells itself."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.conformance.stamped_cell import write_trained
from smmd_bench.errors import UserError
from smmd_bench.run.comparison import write_comparisons
from smmd_bench.run.merge import merge_runs
from smmd_bench.storage.files import read_json, write_json
from tests.runs import quick_run, write_run
from tests.tuned_runs import tuned_run


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A run, and the same in two: base and ce with a checkpoint here, the other losses there."""
    root = tmp_path_factory.mktemp("runs")
    whole, first, second = root / "whole", root / "first", root / "second"
    write_run(whole, seeds=(0, 1), losses=("ce", "smmd"))
    run = sb.read_run(whole)
    for half, losses in ((first, {"base", "ce"}), (second, {"smmd"})):
        shutil.copytree(whole, half)
        kept = set(run.cells[run.cells["loss"].isin(losses)]["address"])
        for folder in (half / "cells").iterdir():
            if folder.name not in kept:
                shutil.rmtree(folder)
        manifest = read_json(half / "manifest.json")
        assert manifest is not None
        listed = [address for address in run.cells["address"] if address in kept]
        write_json(half / "manifest.json", {**manifest, "cells": listed})
    for folder in (first / "cells").iterdir():
        for place in ("checkpoint", "epochs/1", ".being-written"):
            (folder / place).mkdir(parents=True)
            (folder / place / "model.safetensors").write_bytes(b"weights")
    for file in second.glob("cells/*/comparison.json"):
        file.unlink()
    return whole, first, second


@pytest.fixture
def out(tmp_path):
    return tmp_path / "merged"


def test_the_merged_run_reads_like_the_whole(halves, out):
    whole, first, second = halves
    merge_runs([first, second], out)
    merged, expected = sb.read_run(out), sb.read_run(whole)
    for frame in ("cells", "metrics", "completions", "selection"):
        pd.testing.assert_frame_equal(
            getattr(merged, frame).reset_index(drop=True),
            getattr(expected, frame).reset_index(drop=True),
            check_categorical=False,
        )
    assert not list(out.rglob("*.safetensors"))
    assert list(first.rglob("*.safetensors"))


def test_the_manifest_is_the_firsts_with_what_all_runs_say(halves, out, tmp_path):
    runs = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    said = [
        {"command": "one", "flags": ["--seeds 0"], "experiments": [{"name": "x"}],
         "versions": {"torch": "1"}, "models": {"m": {"label": "of a"}, "elsewhere": {}}},
        {"command": "two", "flags": ["--seeds 1"], "experiments": [{"name": "y"}],
         "versions": {"torch": "2"}, "generation": {"far": {"greedy": True}}},
        {"command": "one", "experiments": [{"name": "x"}], "data": {"gsm8k": {"licence": "MIT"}}},
    ]  # fmt: skip
    for run, half, more in zip(runs, (*halves[1:], halves[2]), said, strict=True):
        shutil.copytree(half, run)
        manifest = read_json(run / "manifest.json") or {}
        write_json(run / "manifest.json", {**manifest, **more})
    merged = read_json(merge_runs(runs, out) / "manifest.json") or {}
    assert merged["command"] == "one; two"
    assert merged["flags"] == ["--seeds 0", "--seeds 1"]
    assert merged["experiments"] == [{"name": "x"}, {"name": "y"}]
    assert merged["versions"] == {"torch": "1"}
    assert merged["name"] == out.name
    assert merged["merged"] == [str(run) for run in runs]
    assert merged["models"].keys() >= {"elsewhere"}
    assert merged["generation"]["far"] == {"greedy": True}
    assert merged["data"]["gsm8k"] == {"licence": "MIT"}


def test_what_no_run_could_compare_is_compared(halves, out):
    whole, first, second = halves
    assert sb.read_run(second).comparisons.empty
    merged, expected = (
        run.comparisons[run.comparisons["loss"] == "smmd"].set_index(["seed", "metric"])
        for run in (sb.read_run(merge_runs([first, second], out)), sb.read_run(whole))
    )
    wanted = expected["difference"][merged.index]
    pd.testing.assert_series_equal(merged["difference"], wanted)
    assert set(merged["against_loss"]) == {"ce"}
    assert not list(second.rglob("comparison.json"))  # its files are only read


def test_again_it_is_brought_up_to_date_and_another_folder_is_left_alone(halves, out):
    _, first, second = halves
    merge_runs([first, second], out)
    before = {file: file.read_bytes() for file in out.rglob("*.json")}
    assert merge_runs([first, second], out) == out
    assert {file: file.read_bytes() for file in out.rglob("*.json")} == before
    with pytest.raises(UserError, match="not made from these runs"):
        merge_runs([first], out)


def train_ce_at_another_address(run: Path) -> None:
    folder = next(
        f for f in (run / "cells").iterdir() if (read_json(f / "cell.json") or {})["loss"] == "ce"
    )
    folder = folder.rename(folder.with_name("0123456789abcdef"))
    content = read_json(folder / "cell.json") or {}
    addresses = {**content["addresses"], "train": folder.name}
    write_json(folder / "cell.json", {**content, "address": folder.name, "addresses": addresses})
    list_cells(run, [folder.name])


def decode_otherwise(run: Path) -> None:
    for file in run.glob("cells/*/cell.json"):
        content = read_json(file) or {}
        write_json(file, {**content, "addresses": {**content["addresses"], "decode": "d1"}})


def train_elsewhere(run: Path) -> None:
    write_run(run, losses=("ce",), seeds=(0, 1), weights="of another machine")


def list_cells(run: Path, cells: list[str]) -> None:
    """Say in the manifest that these are the cells."""
    manifest = read_json(run / "manifest.json") or {}
    write_json(run / "manifest.json", {**manifest, "cells": cells})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (train_ce_at_another_address, "have different cells of builtin/tiny"),
        (decode_otherwise, "differ from the stage decode on"),
        (train_elsewhere, "they test other weights"),
        (lambda run: list_cells(run, []), "has no cells"),
    ],
)
def test_two_results_for_one_cell_and_a_run_without_cells_are_refused(
    halves, out, tmp_path, change, said
):
    other = Path(shutil.copytree(halves[1], tmp_path / "other"))
    change(other)
    with pytest.raises(UserError, match=said):
        merge_runs([halves[1], other], out)
    assert not out.exists()


def test_a_cell_is_taken_from_the_run_that_has_its_results(halves, out, tmp_path):
    _, first, second = halves
    begun = Path(shutil.copytree(first, tmp_path / "begun"))
    for file in begun.glob("cells/*/metrics.json"):
        file.unlink()
    merge_runs([begun, first, second], out)
    assert (sb.read_run(out).cells["status"] == "done").all()


def test_what_a_run_does_not_hold_any_more_goes_from_the_merged_one(halves, out, tmp_path):
    _, first, second = halves
    shrinking = Path(shutil.copytree(second, tmp_path / "second"))
    merge_runs([first, shrinking], out)
    gone, *kept = sb.read_run(shrinking).cells["address"]
    list_cells(shrinking, kept)
    merge_runs([first, shrinking], out)
    assert not (out / "cells" / gone).exists()
    assert gone not in set(sb.read_run(out).cells["address"])


def test_a_killed_merge_goes_on(halves, out):
    _, first, second = halves
    write_json(out / "manifest.json", {"merged": [str(r.resolve()) for r in (first, second)]})
    (out / "cells" / "half").mkdir(parents=True)
    assert len(sb.read_run(merge_runs([first, second], out)).cells) == 5


def test_comparisons_between_the_runs_are_made_once(halves, out, monkeypatch):
    _, first, second = halves
    wrote = []
    monkeypatch.setattr(
        "smmd_bench.run.merge.write_comparisons", lambda run: wrote.append(write_comparisons(run))
    )
    for _ in range(2):
        merge_runs([first, second], out)
    assert wrote == [True, False]
    own = {file: file.read_bytes() for file in first.rglob("comparison.json")}
    merge_runs([first, second], out)
    assert own == {file: file.read_bytes() for file in first.rglob("comparison.json")}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    return tuned_run(tmp_path_factory.mktemp("tuned") / "run").path


def test_a_tuned_loss_brings_its_trials_and_its_choice(tuned, out, tmp_path):
    other = quick_run(tmp_path / "other", losses=("ntl",), seeds=(0, 1), base=False).path
    merge_runs([tuned, other], out)
    merged, before = sb.read_run(out), sb.read_run(tuned)
    pd.testing.assert_frame_equal(merged.tuning.astype("str"), before.tuning.astype("str"))
    assert merged.manifest["trials"] == before.manifest["trials"]
    status = merged.cells.set_index("loss")["status"]
    assert {*status[["ce[tuned]", "smmd[tuned]", "ntl"]]} == {"done"}


def test_a_trial_with_other_weights_elsewhere_is_refused(tuned, out, tmp_path):
    """There it is a row, of which the choice here does not hold."""
    other = tmp_path / "other"
    shutil.copytree(tuned, other)
    manifest = read_json(other / "manifest.json") or {}
    row = manifest["trials"][0]
    folder = other / "cells" / row
    content, selection = (read_json(folder / f"{n}.json") or {} for n in ("cell", "selection"))
    log = pd.read_parquet(folder / "train_log.parquet")
    del selection["address"]
    write_trained(folder, content, log, selection, weights="other")
    write_json(other / "manifest.json", {**manifest, "cells": [row], "trials": []})
    with pytest.raises(
        UserError, match=r"different cells of the trial \w+ \(they test other weights\)"
    ):
        merge_runs([other, tuned], out)
