"""The decode stage: a session for each setting, canaries of its own, and failures kept apart."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from smmd_bench.decoding.session_canaries import session_canaries
from smmd_bench.decoding.stage import decode_cells
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.run.comparison import measure_cells
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import read_json, write_json
from smmd_bench.training.stage import train_cell
from tests.conftest import silent

pytestmark = pytest.mark.engine
FEW = {"train_examples": 4, "validation_examples": 2, "test_examples": 3, "epochs": 1}


def cells_of(task, loss, model, *, base=True, **recipe):
    settings = {**FEW, **recipe}
    return Experiment(
        (task,),
        (loss,),
        (str(model),),
        engine="transformers",
        base=base,
        recipe=settings,
    ).cells


def train(cells, run):
    """Train the cells."""
    for cell in cells:
        train_cell(cell, run, silent)


def decode(cells, run):
    """The errors of the cells that fail."""
    return decode_cells(cells, run, silent)


@pytest.fixture(scope="module")
def siblings(tiny, tmp_path_factory):
    """The base, CE that learns, and SMMD that hardly does, in bfloat16."""
    recipe = {
        "dtype": "bfloat16",
        "train_examples": 16,
        "max_length": 180,
        "batch_size": 8,
    }
    recipe |= {"micro_batch_size": 8, "test_examples": 2}
    cells = []
    for loss, rate in (("ce", 3e-2), ("smmd", 1e-9)):
        settings = {**recipe, "learning_rate": rate}
        cells += cells_of(
            "arithmetic[level=easy]", loss, tiny.base, base=loss == "ce", **settings
        )
    run = tmp_path_factory.mktemp("siblings")
    train(cells, run)
    return cells, run


def test_the_base_reads_what_the_trained_ones_do(siblings, tmp_path):
    cells, run = siblings
    canaries = session_canaries(cells, run)
    by_loss = {cell.loss: canaries[cell.parts["train"]] for cell in cells}
    base = by_loss["base"][0]
    ce = by_loss["ce"][1]

    assert base.token_ids == ce.token_ids
    assert len(base.rivals) == len(ce.rivals) == 2
    assert dict(ce.rivals)["base"] == base.log_probabilities
    assert base.rounded

    (of_base,) = session_canaries(
        [cell for cell in cells if cell.is_base], run
    ).values()
    assert of_base[0].token_ids != ce.token_ids
    assert of_base[0].rivals == ()
    assert session_canaries(cells, tmp_path) == {}  # without receipts


def test_what_cannot_be_told_apart_is_said_of_the_cell(siblings, tmp_path):
    cells, folder = siblings
    run = RunDirectory(Path(shutil.copytree(folder, tmp_path / "run")))
    assert decode(cells, run.path) == {}

    by_loss = {cell.loss: cell for cell in cells}
    notes = "\n".join(run.notes(by_loss["smmd"]))
    assert "In bfloat16 the canary cannot tell the decoded weights from base:" in notes
    assert "canary" not in "\n".join(run.notes(by_loss["ce"]))

    receipt = run.current(by_loss["smmd"]).decoding
    assert receipt["indistinguishable"] == ["base"]
    assert receipt["compared_with"] == 2
    assert 0.001 < receipt["resolution"] < 1


def test_what_else_is_done_with_an_engine_comes_before_its_cells_and_fails_like_its_start(
    siblings,
):
    cells, run = siblings

    def refuse(session):
        assert session.generate
        raise RuntimeError("it cannot go on")

    failures = decode_cells(cells, run, silent, refuse)
    assert {str(error) for error in failures.values()} == {"it cannot go on"}
    assert failures.keys() == set(cells)


def test_cells_with_other_limits_on_pixels_and_text_are_decoded_with_their_own(
    tiny_vlm, tmp_path
):
    """Each has a canary, made with its own limits: a session with another's would not pass."""
    folder = tiny_vlm("qwen2_5_vl")
    cells = []
    for task, limit in (
        ("arithmetic[level=easy]", None),
        ("clock_time", None),
        ("clock_time", 56 * 56),
    ):
        cells += cells_of(task, "ce", folder, max_pixels=limit)[:1]
    train(cells, tmp_path)
    starts = []

    def note(what, done, _):
        if what == "start engine":
            starts.append(done)

    assert decode_cells(cells, tmp_path, note) == {}
    assert starts == [0, 1, 0, 1]

    folders = [cell.stored(tmp_path) for cell in cells]
    frames = [pd.read_parquet(stored.place("completions")) for stored in folders]
    _, plain, limited = (frame["prompt_tokens"].median() for frame in frames)
    assert plain == limited + 12  # 16 tokens of an image, and 4
    assert ["image" in frame for frame in frames] == [False, True, True]

    for cell, stored in zip(cells, folders, strict=True):
        canary = read_json(stored.trained / "canaries.json")["epochs"]["0"]
        assert canary["pictures"] == int(cell.reads_images)
        probes = pd.read_parquet(stored.place("probes"))
        assert probes["p_target"].notna().all()


def test_an_engine_that_does_not_start_fails_its_own_cells_alone(tiny_vlm, tmp_path):
    folder = tiny_vlm("qwen2_5_vl")
    limits = (None, 56 * 56, 5)  # 5: less than one token shows
    *good, bad = [
        cells_of("clock_time", "ce", folder, max_pixels=limit)[0] for limit in limits
    ]
    train(good, tmp_path)

    for order in ([bad, *good], [*good, bad]):
        assert list(decode(order, tmp_path)) == [bad]
        assert all(cell.stored(tmp_path).has("completions") for cell in good)


def test_nothing_is_decoded_where_only_the_picture_tells_that_the_weights_are_others(
    tiny_vlm, tmp_path
):
    cell, *_ = cells_of("clock_time", "ce", tiny_vlm("mistral3"))
    train([cell], tmp_path)
    file = cell.stored(tmp_path).trained / "canaries.json"
    canaries = read_json(file)
    canaries["epochs"]["0"]["log_probabilities"][-1][0] += 0.01
    write_json(file, canaries)
    failures = decode([cell], tmp_path)

    assert "does not run the weights of checkpoint 'base'" in str(failures[cell])
    assert not cell.stored(tmp_path).has("completions")


@pytest.mark.long
def test_decoders_leave_beams_of_pictures(tiny_vlm, tmp_path):
    folder = tiny_vlm("qwen2_5_vl")
    cell = replace(cells_of("clock_time", "ce", folder)[0], decoders=("median",))
    train([cell], tmp_path)

    assert decode([cell], tmp_path) == {}

    stored = cell.stored(tmp_path)
    completions = pd.read_parquet(stored.place("completions"))
    beams = pd.read_parquet(stored.place("beams"))
    assert set(beams["uid"]) <= set(completions["uid"])
    for _, log_p in beams.groupby("uid")["log_probability"]:
        assert np.exp(log_p).sum() <= 1 + 1e-6
        assert log_p.is_monotonic_decreasing
    assert measure_cells([cell], tmp_path, silent) == {}
    assert "number_mass" in pd.read_parquet(cell.stored(tmp_path).place("scores"))
