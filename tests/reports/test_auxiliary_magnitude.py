import math
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.auxiliary_magnitude import STRETCHES, AuxiliaryMagnitude, magnitudes

import smmd_bench as sb
from smmd_bench.storage.files import read_json
from tests.publishing.published import publish
from tests.runs import rewrite, write_failure, write_run


@pytest.fixture(scope="module")
def run(run_folder):
    return sb.read_run(run_folder)


def copied(run_folder, tmp_path):
    return Path(shutil.copytree(run_folder, tmp_path / "run"))


def logs_of(folder, loss):
    for file in sorted(folder.glob("cells/*/train_log.parquet")):
        if read_json(file.parent / "cell.json")["loss"] == loss:
            yield file


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


def test_the_caption_names_the_seeds_and_steps(run):
    assert "Seeds 0, 1; optimiser steps: 240." in AuxiliaryMagnitude().build(run).caption


def test_a_short_training_has_a_stretch_a_step(tmp_path):
    write_run(tmp_path, losses=("ce", "smmd"), seeds=(0,), n=5, steps=7, resamples=5)
    data = magnitudes(sb.read_run(tmp_path))
    assert data["step"].tolist() == list(range(1, 8))


def test_the_line_is_the_mean_of_the_seeds_and_the_band_their_range(run):
    (axis,) = AuxiliaryMagnitude().build(run).figure.axes
    assert axis.get_legend_handles_labels()[1] == ["NTL", "SMMD"]
    line = next(line for line in axis.lines if line.get_label() == "SMMD")
    data = magnitudes(run)
    by_step = data[data["loss"] == "smmd"].pivot(index="step", columns="seed", values="ratio")
    assert list(line.get_ydata()) == pytest.approx(by_step.mean(axis=1).tolist())
    corners = axis.collections[1].get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(by_step.min(axis=1).min())
    assert corners.max() == pytest.approx(by_step.max(axis=1).max())


def test_the_axis_is_logarithmic_and_has_a_line_at_1(run):
    (axis,) = AuxiliaryMagnitude().build(run).figure.axes
    assert axis.get_yscale() == "log"
    assert list(axis.lines[0].get_ydata()) == [1, 1]


def test_one_seed_has_no_band(tmp_path):
    write_run(tmp_path, losses=("ce", "smmd"), seeds=(0,), n=5, steps=80, resamples=5)
    (axis,) = AuxiliaryMagnitude().build(sb.read_run(tmp_path)).figure.axes
    assert not axis.collections


def test_the_table_has_the_beginning_and_the_end(run):
    table = AuxiliaryMagnitude().build(run).table.set_index("Loss")
    data = magnitudes(run)
    first = data[(data["loss"] == "ntl") & (data["step"] <= 24)]  # of 240 steps
    expected = math.fsum(first.groupby("seed")["ratio"].median()) / 2
    assert table.loc["NTL", "First tenth"] == f"{expected:.3f}"
    assert table.loc["NTL", "Seeds"] == "2"


def test_what_is_not_positive_is_not_drawn_and_said(run_folder, tmp_path):
    folder = copied(run_folder, tmp_path)
    for file in logs_of(folder, "ntl"):
        log = pd.read_parquet(file)
        rewrite(file, log.assign(relative_auxiliary=-0.5))
    artefact = AuxiliaryMagnitude().build(sb.read_run(folder))
    assert "at or below 0, where the auxiliary of NTL is at times" in artefact.caption
    assert artefact.table["Whole training"].tolist()[0] == "−0.500"


def test_a_loss_without_a_log_is_named(run_folder, tmp_path):
    folder = copied(run_folder, tmp_path)
    for file in logs_of(folder, "smmd"):
        file.unlink()
        (file.parent / "metrics.json").unlink()
        write_failure(file.parent, {"stage": "train", "error": "no memory"})
    caption = AuxiliaryMagnitude().build(sb.read_run(folder)).caption
    assert (
        "Without an auxiliary in a training log: SMMD (builtin/tiny on "
        "arithmetic[operations=1..2], failed)."
    ) in caption


def test_a_log_of_an_older_version_without_the_ratio_is_left_out(run_folder, tmp_path):
    folder = copied(run_folder, tmp_path)
    for file in logs_of(folder, "smmd"):
        rewrite(file, pd.read_parquet(file).drop(columns="relative_auxiliary"))
    artefact = AuxiliaryMagnitude().build(sb.read_run(folder))
    assert artefact.table["Loss"].tolist() == ["NTL"]
    assert "Without an auxiliary in a training log: SMMD" in artefact.caption
    for file in logs_of(folder, "ntl"):
        file.unlink()
    reason = AuxiliaryMagnitude().skip(sb.read_run(folder))
    assert reason == "no training log has an auxiliary beside cross-entropy"


def test_losses_that_would_look_the_same_are_left_out_and_named(tmp_path):
    losses = ("ce", "smmd", *(f"smmd[lambda={at}]" for at in range(4, 12)))
    write_run(tmp_path, losses=losses, seeds=(0,), n=5, steps=5, resamples=5)
    artefact = AuxiliaryMagnitude().build(sb.read_run(tmp_path))
    drawn = [line for line in artefact.figure.axes[0].lines if line.get_label()[0] == "S"]
    assert len(drawn) == 7
    assert len({(line.get_color(), line.get_marker()) for line in drawn}) == 7
    assert "in the table: SMMD[lambda=10], SMMD[lambda=11] (builtin/tiny on" in artefact.caption
    assert len(artefact.table) == 9


def test_a_run_without_an_auxiliary_is_skipped(run_folder, tmp_path):
    write_run(tmp_path / "ce", losses=("ce",), seeds=(0,), n=5, steps=5, resamples=5)
    reason = AuxiliaryMagnitude().skip(sb.read_run(tmp_path / "ce"))
    assert reason == "no training log has an auxiliary beside cross-entropy"
    folder = copied(run_folder, tmp_path)
    for file in folder.glob("cells/*/train_log.parquet"):
        file.unlink()
    assert AuxiliaryMagnitude().skip(sb.read_run(folder)) == "no cell has a training log"


def test_publishing_again_gives_the_same_bytes(run_folder, tmp_path):
    folder = copied(run_folder, tmp_path)

    def published():
        files = publish(sb.read_run(folder), [AuxiliaryMagnitude()])
        return [file.read_bytes() for file in files if file.name != "index.html"]

    assert published() == published()
