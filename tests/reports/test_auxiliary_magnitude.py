import math

import numpy as np
import pytest
from smmd_bench.reports.auxiliary_magnitude import STRETCHES, AuxiliaryMagnitude, magnitudes

from tests.changed_runs import NO_MEMORY, changed, without
from tests.reports.golden import words
from tests.runs import quick_run


@pytest.fixture(scope="module")
def artefact(run):
    return AuxiliaryMagnitude().build(run)


def test_a_stretch_is_the_median_of_its_steps(run):
    data = magnitudes(run)
    log = run.train_log[(run.train_log["loss"] == "ntl") & (run.train_log["seed"] == 1)]
    here = data[(data["loss"] == "ntl") & (data["seed"] == 1)]
    assert len(here) == STRETCHES
    width = len(log) // STRETCHES
    for at, row in enumerate(here.itertuples()):
        steps = log[(log["step"] > at * width) & (log["step"] <= (at + 1) * width)]
        expected = np.median(3 * steps["auxiliary"] / steps["cross_entropy"])
        assert (row.ratio, row.step) == (pytest.approx(expected), (at + 1) * width)


def test_a_short_training_of_one_seed_has_a_stretch_a_step_and_no_band(tmp_path):
    run = quick_run(tmp_path, losses=("ce", "smmd"), steps=7)
    assert magnitudes(run)["step"].tolist() == list(range(1, 8))
    (axis,) = AuxiliaryMagnitude().build(run).figure.axes
    assert not axis.collections


def test_the_line_is_the_mean_of_the_seeds_and_the_band_their_range(artefact, run):
    (axis,) = artefact.figure.axes
    assert axis.get_legend_handles_labels()[1] == ["NTL", "SMMD"]
    line = next(line for line in axis.lines if line.get_label() == "SMMD")
    data = magnitudes(run)
    by_step = data[data["loss"] == "smmd"].pivot(index="step", columns="seed", values="ratio")
    assert list(line.get_ydata()) == pytest.approx(by_step.mean(axis=1).tolist())
    corners = axis.collections[1].get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(by_step.min(axis=1).min())
    assert corners.max() == pytest.approx(by_step.max(axis=1).max())
    assert axis.get_yscale() == "log"
    assert list(axis.lines[0].get_ydata()) == [1, 1]


def test_the_table_has_the_beginning_and_the_caption_seeds_and_steps(artefact, run):
    table = artefact.table.set_index("Loss")
    data = magnitudes(run)
    first = data[(data["loss"] == "ntl") & (data["step"] <= 24)]  # of 240 steps
    expected = math.fsum(first.groupby("seed")["ratio"].median()) / 2
    assert table.loc["NTL", "First tenth"] == f"{expected:.3f}"
    assert table.loc["NTL", "Seeds"] == "2"
    assert "Seeds 0, 1; optimiser steps: 240." in words(artefact)


def test_what_is_not_positive_is_not_drawn_and_said(run, tmp_path):
    found = changed(
        run, tmp_path, "train_log.parquet", lambda log: log.assign(relative_auxiliary=-0.5),
        loss="ntl",
    )  # fmt: skip
    artefact = AuxiliaryMagnitude().build(found)
    assert "at or below 0, where the auxiliary of NTL is at times" in words(artefact)
    assert artefact.table["Whole training"].tolist()[0] == "−0.500"


def test_a_loss_without_a_log_is_named(run, tmp_path):
    lost = without(run, tmp_path, "train_log.parquet", loss="smmd")
    lost = without(lost, tmp_path, failure=NO_MEMORY, loss="smmd")
    assert (
        "Without an auxiliary in a training log: SMMD (builtin/tiny on "
        "arithmetic[operations=1..2], failed)."
    ) in words(AuxiliaryMagnitude().build(lost))


def test_a_log_of_an_older_version_without_the_ratio_is_left_out(run, tmp_path):
    older = changed(
        run, tmp_path, "train_log.parquet", lambda log: log.drop(columns="relative_auxiliary"),
        loss="smmd",
    )  # fmt: skip
    artefact = AuxiliaryMagnitude().build(older)
    assert artefact.table["Loss"].tolist() == ["NTL"]
    assert "Without an auxiliary in a training log: SMMD" in words(artefact)
    reason = AuxiliaryMagnitude().skip(without(older, tmp_path, "train_log.parquet", loss="ntl"))
    assert reason == "no training log has an auxiliary beside cross-entropy"
