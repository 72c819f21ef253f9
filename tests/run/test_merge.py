"""Several runs in one folder, against one run that has all cells itself."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.errors import UserError
from smmd_bench.run.merge import merge_runs
from smmd_bench.storage.files import read_json, write_json
from tests.runs import write_run


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
        (folder / "checkpoint").mkdir()
        (folder / "checkpoint" / "model.safetensors").write_bytes(b"weights")
    for file in second.glob("cells/*/comparison.json"):
        file.unlink()
    return whole, first, second


def test_the_merged_run_reads_like_the_whole(halves, tmp_path):
    whole, first, second = halves
    out = merge_runs([first, second], tmp_path / "merged")
    merged, expected = sb.read_run(out), sb.read_run(whole)
    for frame in ("cells", "metrics", "completions", "selection"):
        pd.testing.assert_frame_equal(
            getattr(merged, frame).reset_index(drop=True),
            getattr(expected, frame).reset_index(drop=True),
            check_categorical=False,
        )
    assert not list(out.rglob("*.safetensors"))
    assert list(first.rglob("*.safetensors"))


def test_what_no_run_could_compare_is_compared(halves, tmp_path):
    whole, first, second = halves
    assert sb.read_run(second).comparisons.empty
    merged = sb.read_run(merge_runs([first, second], tmp_path / "merged")).comparisons
    expected = sb.read_run(whole).comparisons
    found = merged[merged["loss"] == "smmd"].set_index(["seed", "metric"])["difference"]
    wanted = expected[expected["loss"] == "smmd"].set_index(["seed", "metric"])["difference"]
    pd.testing.assert_series_equal(found, wanted[found.index])
    assert set(merged[merged["loss"] == "smmd"]["against_loss"]) == {"ce"}
    assert not list(second.rglob("comparison.json"))  # its files are only read


def test_again_it_is_brought_up_to_date_and_another_folder_is_left_alone(halves, tmp_path):
    _, first, second = halves
    out = merge_runs([first, second], tmp_path / "merged")
    before = {file: file.read_bytes() for file in out.rglob("*.json")}
    assert merge_runs([first, second], out) == out
    assert {file: file.read_bytes() for file in out.rglob("*.json")} == before
    with pytest.raises(UserError, match="not made from these runs"):
        merge_runs([first], out)


def test_two_results_for_one_cell_are_refused(halves, tmp_path):
    _, first, _ = halves
    other = Path(shutil.copytree(first, tmp_path / "other"))
    folder = next(
        f for f in (other / "cells").iterdir() if (read_json(f / "cell.json") or {})["loss"] == "ce"
    )
    folder = folder.rename(folder.with_name("0123456789abcdef"))
    content = read_json(folder / "cell.json") or {}
    addresses = {**content["addresses"], "train": folder.name}
    write_json(folder / "cell.json", {**content, "address": folder.name, "addresses": addresses})
    manifest = read_json(other / "manifest.json") or {}
    write_json(other / "manifest.json", {**manifest, "cells": ["0123456789abcdef"]})
    with pytest.raises(UserError, match="have different cells of builtin/tiny"):
        merge_runs([first, other], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_the_same_training_with_another_test_is_refused(halves, tmp_path):
    _, first, _ = halves
    other = Path(shutil.copytree(first, tmp_path / "other"))
    for file in other.glob("cells/*/cell.json"):
        content = read_json(file) or {}
        write_json(file, {**content, "addresses": {**content["addresses"], "decode": "d1"}})
    with pytest.raises(UserError, match="differ from the stage decode on"):
        merge_runs([first, other], tmp_path / "merged")


def test_the_same_training_with_other_weights_is_refused(halves, tmp_path):
    _, first, _ = halves
    other = Path(shutil.copytree(first, tmp_path / "other"))
    write_run(other, losses=("ce",), seeds=(0, 1), weights="of another machine")
    with pytest.raises(UserError, match="they test other weights"):
        merge_runs([first, other], tmp_path / "merged")


def test_a_cell_is_taken_from_the_run_that_has_its_results(halves, tmp_path):
    _, first, second = halves
    begun = Path(shutil.copytree(first, tmp_path / "begun"))
    for file in begun.glob("cells/*/metrics.json"):
        file.unlink()
    out = merge_runs([begun, first, second], tmp_path / "merged")
    assert (sb.read_run(out).cells["status"] == "done").all()


def test_what_a_run_does_not_hold_any_more_goes_from_the_merged_one(halves, tmp_path):
    _, first, second = halves
    shrinking = Path(shutil.copytree(second, tmp_path / "second"))
    out = merge_runs([first, shrinking], tmp_path / "merged")
    gone, *kept = sb.read_run(shrinking).cells["address"]
    manifest = read_json(shrinking / "manifest.json") or {}
    write_json(shrinking / "manifest.json", {**manifest, "cells": kept})
    merge_runs([first, shrinking], out)
    assert not (out / "cells" / gone).exists()
    assert gone not in set(sb.read_run(out).cells["address"])


def test_a_run_without_cells_is_refused_and_a_killed_merge_goes_on(halves, tmp_path):
    _, first, second = halves
    (tmp_path / "empty").mkdir()
    write_json(tmp_path / "empty" / "manifest.json", {"format": 2, "cells": []})
    with pytest.raises(UserError, match="has no cells"):
        merge_runs([first, tmp_path / "empty"], tmp_path / "merged")
    out = tmp_path / "killed"
    write_json(out / "manifest.json", {"merged": [str(r.resolve()) for r in (first, second)]})
    (out / "cells" / "half").mkdir(parents=True)
    assert len(sb.read_run(merge_runs([first, second], out)).cells) == 5
