"""What a change redoes, on a folder that holds what a finished run leaves (weights are empty)."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from smmd_bench.tasks.arithmetic import Arithmetic

from smmd_bench.errors import UserError
from smmd_bench.experiment import Cell, Experiment
from smmd_bench.results.files import write_json, write_parquet
from smmd_bench.results.run import read_run
from smmd_bench.run_directory import RunDirectory
from smmd_bench.scoring import statistics
from smmd_bench.scoring.measure import measure
from smmd_bench.scoring.metrics import ExactMatch

PLAIN = Experiment(
    tasks=("arithmetic",),
    losses=("ce",),
    recipe={"epochs": 2, "validation_examples": 4, "test_examples": 4},
)
ALL = ["train", "decode", "measure"]


def completions(right: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "uid": [f"{i}" for i in range(4)],
            "prompt": "?",
            "target": ["1", "2", "3", "4"],
            "completion": [str(i + 1) if i < right else "no number" for i in range(4)],
            "finish_reason": "stop",
            "completion_tokens": 2,
            "prompt_tokens": 1,
            "operations": 1,
        }
    )


def finish(run: RunDirectory, cell: Cell, *, best: int = 2) -> None:
    """Write the files of a finished cell."""
    folder, wanted = run.cell_folder(cell), cell.addresses
    epochs = [{"epoch": 0}] if cell.is_base else [{"epoch": 1}, {"epoch": 2}]
    kind = "base" if cell.is_base else "full"
    write_json(folder / "train.json", {"address": wanted["train"], "kind": kind, "epochs": epochs})
    if not cell.is_base:
        frames = [completions(0 if epoch != best else 3).assign(epoch=epoch) for epoch in (1, 2)]
        write_parquet(folder / "validation.parquet", pd.concat(frames), wanted["validate"])
        write_json(folder / "selection.json", {"address": "stale"})
        run.select_again(cell)
        write_json(folder / "checkpoint" / "canary.json", {"epoch": best})
    stamp = cell.decode_stamp(0 if cell.is_base else best)
    write_parquet(folder / "completions.parquet", completions(2), stamp)
    write_parquet(folder / "probes.parquet", completions(2)[["uid"]], stamp)
    scores, metrics = measure(cell.task_plugin, completions(2))
    write_parquet(folder / "scores.parquet", scores, wanted["measure"])
    write_json(folder / "metrics.json", {"address": wanted["measure"], **metrics})


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    with run.locked():
        run.claim(PLAIN, extend=False)
    for cell in PLAIN.cells:
        finish(run, cell)
    return run


def missing(run: RunDirectory, **changes: Any) -> list[str]:
    """What is missing of the CE cell after a change, once selections are brought up to date."""
    changes["recipe"] = {**PLAIN.recipe, **changes.get("recipe", {})}
    (cell,) = [c for c in dataclasses.replace(PLAIN, **changes).cells if not c.is_base]
    run.select_again(cell)
    return list(run.missing(cell))


def test_a_finished_run_misses_nothing(run: RunDirectory) -> None:
    assert missing(run) == []
    assert (read_run(run.path).cells.status == "done").all()


def test_the_epoch_with_the_best_validation_is_selected_though_none_of_the_others_parses(
    run: RunDirectory,
) -> None:
    (cell,) = [c for c in PLAIN.cells if not c.is_base]
    selection = json.loads((run.cell_folder(cell) / "selection.json").read_text())
    assert selection["best_epoch"] == 2
    assert selection["epochs"][0]["mean_absolute_error"] is None
    assert selection["epochs"][1]["exact_match"] == 75.0


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [(Arithmetic, "version"), (ExactMatch, "version"), (statistics, "VERSION")],
)
def test_a_new_parser_metric_or_statistic_only_measures_again(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, owner: Any, attribute: str
) -> None:
    monkeypatch.setattr(owner, attribute, 99)
    assert missing(run) == ["measure"]
    experiment = dataclasses.replace(PLAIN)
    with run.locked():
        run.claim(experiment, extend=False)
    for cell in experiment.cells:
        scores, metrics = measure(cell.task_plugin, completions(2))
        folder = run.cell_folder(cell)
        write_json(folder / "metrics.json", {"address": cell.addresses["measure"], **metrics})
        write_parquet(folder / "scores.parquet", scores)
    assert (read_run(run.path).cells.status == "done").all()


def test_other_test_examples_only_decode_again(run: RunDirectory) -> None:
    assert missing(run, recipe={"test_examples": 3}) == ["decode", "measure"]


def test_another_engine_only_decodes_again(run: RunDirectory) -> None:
    assert missing(run, engine="transformers") == ["decode", "measure"]


def test_other_validation_examples_train_again_unless_every_epoch_was_kept(
    run: RunDirectory,
) -> None:
    assert missing(run, recipe={"validation_examples": 3}) == ALL
    (cell,) = [c for c in PLAIN.cells if not c.is_base]
    for epoch in (1, 2):
        (run.cell_folder(cell) / "epochs" / str(epoch)).mkdir(parents=True)
    assert missing(run, recipe={"validation_examples": 3}) == ["decode", "measure"]


def test_another_learning_rate_trains_again(run: RunDirectory) -> None:
    assert missing(run, recipe={"learning_rate": 0.5}) == ALL


def test_a_claim_that_was_killed_half_way_is_completed(run: RunDirectory) -> None:
    for cell in PLAIN.cells:
        (run.cell_folder(cell) / "cell.json").unlink()
    with run.locked():
        run.claim(PLAIN, extend=False)
    assert len(read_run(run.path).cells) == 2


def test_an_extension_keeps_the_earlier_cells_and_the_earlier_command(run: RunDirectory) -> None:
    more = dataclasses.replace(PLAIN, losses=("ntl",), base=False)
    with run.locked():
        run.claim(more, extend=True)
        run.claim(PLAIN, extend=False)
        run.claim(more, extend=False)
    assert list(read_run(run.path).cells.loss) == ["base", "ce", "ntl"]


def test_a_folder_of_several_experiments_is_one_in_their_order(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    parts = [dataclasses.replace(PLAIN, losses=losses) for losses in (("ce", "gce"), ("ntl", "ce"))]
    with run.locked():
        for part in (*parts, *parts):
            run.claim(part, extend=True, name="both")
            manifest = json.loads((run.path / "manifest.json").read_text())
    assert manifest["name"] == "both"
    assert manifest["experiment"]["losses"] == ["ce", "gce", "ntl"]
    assert manifest["experiments"] == [part.to_dict() for part in parts]
    assert manifest["flags"] == [part.to_flags() for part in parts]
    assert list(read_run(run.path).cells.loss) == ["base", "ce", "gce", "ntl"]


def test_a_test_of_transfer_waits_for_its_source_and_never_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMMD_BENCH_DATA", str(Path(__file__).parent / "data"))
    words = Experiment(tasks=("gsm8k",), losses=("ce",), base=False, recipe={"epochs": 2})
    trained, tested = words.cells
    run = RunDirectory(tmp_path / "run")
    with run.locked():
        run.claim(words, extend=False)
    assert run.missing(trained) == ALL
    assert run.missing(tested) == ["decode", "measure"]
    finish(run, trained)
    assert run.missing(trained) == []
    assert run.missing(tested) == ["decode", "measure"]
    folder, stamp = run.cell_folder(tested), tested.decode_stamp(2)
    write_parquet(folder / "completions.parquet", completions(2), stamp)
    write_parquet(folder / "probes.parquet", completions(2)[["uid"]], stamp)
    assert run.missing(tested) == ["measure"]
    frame = read_run(run.path).cells
    assert frame[["task", "trained_on"]].astype("object").fillna("").to_numpy().tolist() == [
        ["gsm8k", ""],
        ["svamp", "gsm8k"],
    ]


def test_an_extension_that_would_mix_two_trainings_in_one_test_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMMD_BENCH_DATA", str(Path(__file__).parent / "data"))
    words = Experiment(tasks=("gsm8k",), losses=("ce", "ntl"), recipe={"epochs": 1})
    kept = dataclasses.replace(words, tasks=("gsm8k[calculator=keep]",), losses=("ce",))
    run = RunDirectory(tmp_path / "run")
    with run.locked():
        run.claim(words, extend=False)
        before = (run.path / "manifest.json").read_bytes()
        with pytest.raises(UserError, match="has svamp as the test of gsm8k, and this experiment"):
            run.claim(kept, extend=True)
        assert (run.path / "manifest.json").read_bytes() == before
        run.claim(dataclasses.replace(kept, transfers=False), extend=True)
    data = read_run(run.path).manifest["data"]
    assert set(data) == {"gsm8k", "svamp", "gsm8k[calculator=keep]"}
    assert data["svamp"]["sizes"] == {"test": 11}
    assert set(data["gsm8k"]["identity"]) == {"train", "validation", "test"}
    assert data["svamp"]["identity"]["test"]["digest"]
