"""Training curves: smoothing, seeds, and what is thinned."""

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.training_curves import POINTS, SPAN, TrainingCurves

from tests.changed_runs import changed
from tests.runs import quick_run


@pytest.fixture(scope="module")
def artefact(run):
    return TrainingCurves().build(run)


def labels(axis):
    return set(axis.get_legend_handles_labels()[1])


def test_curves_keep_the_raw_value_beside_the_smoothed_one(artefact, run):
    data = artefact.data
    assert "base" not in set(data["loss"])
    log = run.train_log.set_index(["address", "step"])["cross_entropy"]
    kept = data.set_index(["address", "step"])["cross_entropy"]
    pd.testing.assert_series_equal(kept, log.loc[kept.index], check_index=False)


def test_curves_are_smoothed_by_their_span(tmp_path):
    run = quick_run(tmp_path, losses=("ce",), steps=60)
    data = TrainingCurves().build(run).data
    expected = data["cross_entropy"].ewm(span=60 / SPAN).mean()
    np.testing.assert_allclose(data["cross_entropy_smoothed"], expected)


def test_seeds_are_a_line_of_their_mean_and_a_band_of_their_ends(artefact):
    ce = artefact.data.query("loss == 'ce'").pivot(
        index="step", columns="seed", values="cross_entropy_smoothed"
    )
    axis = artefact.figure.axes[0]
    assert len(axis.lines) == len(axis.collections) == 3
    np.testing.assert_allclose(axis.lines[0].get_ydata(), ce.mean(axis=1))
    heights = axis.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (ce.min(axis=None), ce.max(axis=None))


def test_a_loss_without_auxiliary_has_no_auxiliary_curve(artefact):
    ce, auxiliary, validation = artefact.figure.axes
    assert labels(ce) == {"CE", "NTL", "SMMD"} == labels(validation)
    assert labels(auxiliary) == {"NTL", "SMMD"}


def test_long_logs_are_thinned_after_smoothing(run, tmp_path):
    def longer(log):
        log = pd.concat([log] * 100, ignore_index=True)
        return log.assign(step=np.arange(1, len(log) + 1))

    run = changed(run, tmp_path, "train_log.parquet", longer, loss="ntl", seed=1)
    data = TrainingCurves().build(run).data
    steps = data[(data["loss"] == "ntl") & (data["seed"] == 1)]["step"]
    assert (len(steps), steps.min(), steps.max()) == (POINTS, 1, 24_000)
