"""What a manifest keeps of the commands, experiments and cells of a run."""

from dataclasses import replace

from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import write_json

from ..conftest import read_files
from .finished_cells import PLAIN, claim


def test_the_manifest_names_the_folders_of_scores_and_old_ones_are_read(run):
    run.record_folders()
    manifest = run.manifest
    for cell in manifest["cells"]:
        folders = cell["folders"]
        for stage in ("train", "decode", "measure"):
            folder = run.path / folders[stage]
            assert folder.is_dir()
            assert folder.parent.name == stage

    before = read_files(run.path)
    claim(run, PLAIN)
    run.record_folders()
    assert read_files(run.path) == before

    for cell in manifest["cells"]:
        del cell["folders"]
    write_json(run.path / "manifest.json", manifest)
    assert (read_run(run.path).cells.status == "done").all()


def test_the_manifest_keeps_the_commands_that_added_something(tmp_path, monkeypatch):
    run = RunDirectory(tmp_path / "run")
    more = replace(PLAIN, seeds=(0, 1))
    for words, experiment in [("one", PLAIN), ("again", PLAIN), ("two", more)]:
        monkeypatch.setattr("sys.argv", ["smmd-bench", words])
        with run.locked():
            run.claim([experiment])
    assert run.manifest["command"] == "smmd-bench one\nsmmd-bench two"


def test_a_folder_of_several_experiments_is_one_in_their_order(tmp_path):
    run = RunDirectory(tmp_path / "run")
    first = replace(PLAIN, losses=("ce", "gce"))
    second = replace(PLAIN, losses=("ntl", "ce"))
    with run.locked():
        for experiment in (first, second, first, second):
            run.claim([experiment], "both")

    frames = read_run(run.path)
    assert frames.manifest["name"] == "both"
    assert frames.manifest["experiment"]["losses"] == ["ce", "gce", "ntl"]
    assert frames.manifest["experiments"] == [first.to_dict(), second.to_dict()]
    assert list(frames.cells.loss) == ["base", "ce", "gce", "ntl"]
