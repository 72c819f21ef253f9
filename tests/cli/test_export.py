"""`smmd-bench export`: which cells, and where to."""

import json
from pathlib import Path

import pytest

from smmd_bench.errors import UserError
from smmd_bench.storage.files import read_json, write_json
from tests.in_process import call
from tests.publishing.export.conftest import export_all
from tests.runs import quick_run


@pytest.fixture
def run(tmp_path):
    quick_run(tmp_path / "run", losses=("ce", "smmd"), seeds=(0, 1))
    return tmp_path / "run"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_every_trained_cell_has_a_folder_and_the_run_stays_as_it_is(run, tmp_path):
    before = contents(run)
    folders = export_all(run, tmp_path / "out")
    assert [folder.name for folder in folders] == [
        f"tiny-arithmetic-{loss}-seed{seed}" for loss in ("ce", "smmd") for seed in (0, 1)
    ]
    assert sorted((tmp_path / "out").iterdir()) == sorted(folders)
    assert contents(run) == before


def test_options_choose_cells_and_formats(run, tmp_path):
    (folder,) = export_all(
        run, tmp_path / "out", "--loss=smmd", "--seed=1", "--task=arithmetic", "--format=card"
    )
    assert [file.name for file in folder.iterdir()] == ["README.md"]
    (base,) = export_all(run, tmp_path / "base", "--loss=base")
    assert base.name == "tiny-arithmetic-base-seed0"


def test_the_beginning_of_an_address_chooses_a_cell(run, tmp_path):
    (folder,) = export_all(run, tmp_path / "one", "--loss=smmd", "--seed=1")
    record = next(folder.rglob("every_eval_ever/**/*.json"))
    assert json.loads(record.read_text())["model_info"]["name"] == folder.name
    address = (folder / "README.md").read_text().rpartition("cell `")[2].partition("`")[0]
    (same,) = export_all(run, tmp_path / "two", f"--cell={address[:12]}")
    assert same.name == folder.name
    with pytest.raises(UserError, match=r"'' begins 4 addresses: give more of one"):
        export_all(run, tmp_path / "all", "--cell=")


def test_a_folder_that_is_there_is_refused_before_anything_is_written(run, tmp_path):
    export_all(run, tmp_path / "out", "--loss=smmd", "--seed=1")
    before = contents(tmp_path / "out")
    with pytest.raises(UserError, match=r"tiny-arithmetic-smmd-seed1 is there already: delete it"):
        export_all(run, tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_the_run_itself_is_no_place_for_it(run):
    with pytest.raises(UserError, match=r"is inside the run .*: choose another with --out"):
        export_all(run, run / "exported")


def test_a_cell_without_current_results_is_refused(run, tmp_path):
    for file in run.glob("cells/*/metrics.json"):
        content = read_json(file)
        write_json(file, {**content, "address": "another"})
    with pytest.raises(UserError, match=r"No cell of .* is finished: the command"):
        export_all(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_mistyped_format_is_answered(run, tmp_path):
    with pytest.raises(UserError, match=r"Unknown format 'lm-eval'.*lm_eval"):
        export_all(run, tmp_path / "out", "--format=lm-eval")


def test_names_of_a_manifest_stay_in_their_folder(run, tmp_path):
    for file in run.glob("cells/*/cell.json"):
        content = read_json(file)
        write_json(file, {**content, "model_label": "../../x/..", "loss_name": "../y"})
    out = tmp_path / "deep" / "out"
    folders = export_all(run, out)
    assert all(folder.parent == out for folder in folders)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_json_says_folders_and_notes(run, tmp_path):
    said = call(["export", str(run), "--out=out", "--loss=smmd", "--seed=1", "--json"], tmp_path)
    content = json.loads(said.stdout)
    assert content["folders"] == ["out/tiny-arithmetic-smmd-seed1"]
    assert "has no weights" in content["notes"][0]
