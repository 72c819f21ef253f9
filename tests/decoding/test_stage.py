"""The decode stage: a session for each setting, canaries of its own, and failures kept apart."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from smmd_bench.decoding.siblings import session_canaries
from smmd_bench.decoding.stage import decode_cells
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.run.comparison import measure_cells
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import parquet_address, read_json, write_json
from smmd_bench.training.stage import train_cell

pytestmark = pytest.mark.engine
FEW = {"train_examples": 4, "validation_examples": 2, "test_examples": 3, "epochs": 1}


def cells_of(task, loss, model, *, base=True, **recipe):
    settings = {**FEW, **recipe}
    return Experiment(
        (task,), (loss,), (str(model),), engine="transformers", base=base, recipe=settings
    ).cells


def trained(cells, root):
    """The cells with their folders, trained."""
    placed = [(cell, root / "cells" / cell.addresses["train"]) for cell in cells]
    for cell, folder in placed:
        train_cell(cell, folder, lambda *_: None)
    return placed


@pytest.fixture(scope="module")
def siblings(tiny, tmp_path_factory):
    """The base, CE that learns, and SMMD that hardly does, in bfloat16."""
    recipe = {"dtype": "bfloat16", "train_examples": 16, "max_length": 180, "batch_size": 8}
    recipe |= {"micro_batch_size": 8, "test_examples": 2}
    task, cells = "arithmetic[level=easy]", []
    for loss, rate in (("ce", 3e-2), ("smmd", 1e-9)):
        settings = {**recipe, "learning_rate": rate}
        cells += cells_of(task, loss, tiny.base, base=loss == "ce", **settings)
    return trained(cells, tmp_path_factory.mktemp("siblings"))


def test_the_base_reads_what_the_trained_ones_do(siblings, tmp_path):
    canaries = session_canaries(siblings)
    by_loss = {cell.loss: canaries[folder] for cell, folder in siblings}
    base, ce = by_loss["base"][0], by_loss["ce"][1]
    assert base.token_ids == ce.token_ids
    assert len(base.rivals) == len(ce.rivals) == 2
    assert dict(ce.rivals)["base"] == base.log_probabilities
    assert base.rounded
    alone = session_canaries([pair for pair in siblings if pair[0].is_base])
    ((own,),) = [canary.values() for canary in alone.values()]
    assert own.token_ids != ce.token_ids
    assert own.rivals == ()
    (cell,) = [cell for cell, _ in siblings if cell.loss == "ce"]
    assert session_canaries([(cell, tmp_path / "without a receipt")]) == {}


def test_what_cannot_be_told_apart_is_said_of_the_cell(siblings, tmp_path):
    run = RunDirectory(tmp_path)
    placed = [(cell, run.cell_folder(cell)) for cell, _ in siblings]
    for cell, folder in siblings:
        shutil.copytree(folder, run.cell_folder(cell))
    assert decode_cells(placed, lambda *_: None) == {}
    notes = {cell.loss: run.notes(cell) for cell, _ in placed}
    (said,) = [note for note in notes["smmd"] if "canary" in note]
    assert "In bfloat16 the canary cannot tell the decoded weights from base:" in said
    assert not any("canary" in note for note in notes["ce"])
    (receipt,) = [read_json(folder / "decode.json") for c, folder in placed if c.loss == "smmd"]
    assert (receipt["indistinguishable"], receipt["compared_with"]) == (["base"], 2)
    assert 0.001 < receipt["resolution"] < 1


def test_cells_with_other_limits_on_pixels_and_text_are_decoded_with_their_own(tiny_vlm, tmp_path):
    """Each has a canary, made with its own limits: a session with another's would not pass."""
    folder = tiny_vlm("qwen2_5_vl")
    limits = [("arithmetic[level=easy]", None), ("clock_time", None), ("clock_time", 56 * 56)]
    cells = [cells_of(task, "ce", folder, max_pixels=limit)[0] for task, limit in limits]
    placed, starts = trained(cells, tmp_path), []
    failures = decode_cells(
        placed, lambda what, done, _: starts.append(done) if what == "start engine" else None
    )
    assert failures == {}
    assert starts == [0, 1, 0, 1]
    frames = [pd.read_parquet(place / "completions.parquet") for _, place in placed]
    tokens = [frame["prompt_tokens"].median() for frame in frames[1:]]
    assert tokens[0] == tokens[1] + 12  # 16 tokens of an image, and 4
    assert ["image" in frame for frame in frames] == [False, True, True]
    for cell, place in placed:
        canary = read_json(place / "train.json")["epochs"][0]["canary"]
        assert canary["pictures"] == int(cell.reads_images)
        assert pd.read_parquet(place / "probes.parquet")["p_target"].notna().all()


def test_an_engine_that_does_not_start_fails_its_own_cells_alone(tiny_vlm, tmp_path):
    folder = tiny_vlm("qwen2_5_vl")
    limits = (None, 56 * 56, 5)  # 5: less than one token shows
    *good, bad = [cells_of("clock_time", "ce", folder, max_pixels=limit)[0] for limit in limits]
    placed = trained(good, tmp_path)
    broken = (bad, tmp_path / "cells" / bad.addresses["train"])
    for order in ([broken, *placed], [*placed, broken]):
        failures = decode_cells(order, lambda *_: None)
        assert list(failures) == [broken[1]]
        assert all((place / "completions.parquet").is_file() for _, place in placed)


def test_nothing_is_decoded_where_only_the_picture_tells_that_the_weights_are_others(
    tiny_vlm, tmp_path
):
    ((cell, place),) = trained(cells_of("clock_time", "ce", tiny_vlm("mistral3"))[:1], tmp_path)
    receipt = read_json(place / "train.json")
    receipt["epochs"][0]["canary"]["log_probabilities"][-1][0] += 0.01
    write_json(place / "train.json", receipt)
    failures = decode_cells([(cell, place)], lambda *_: None)
    assert "does not run the weights of checkpoint 'base'" in str(failures[place])
    assert not (place / "completions.parquet").exists()


def test_decoders_leave_beams_of_text_and_of_pictures(tiny_vlm, tmp_path):
    folder = tiny_vlm("qwen2_5_vl")
    cells = [cells_of(t, "ce", folder)[0] for t in ("arithmetic[level=easy]", "clock_time")]
    placed = trained([replace(cell, decoders=("median",)) for cell in cells], tmp_path)
    assert decode_cells(placed, lambda *_: None) == {}
    for cell, place in placed:
        now = cell.files(tmp_path)
        assert now.is_decoded
        beams = pd.read_parquet(place / "beams.parquet")
        assert parquet_address(place / "beams.parquet") == now.beams_stamp
        completions = pd.read_parquet(place / "completions.parquet").set_index("uid")
        for uid, found in beams.groupby("uid"):
            p = np.exp(found["log_probability"])
            assert p.sum() <= 1 + 1e-6
            assert found["log_probability"].is_monotonic_decreasing
            assert uid in completions.index
        measure_cells(placed, lambda *_: None)
        assert "number_mass" in pd.read_parquet(place / "scores.parquet")
