"""Calibration against a loop, scikit-learn and a plain bootstrap."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve
from smmd_bench.reports.calibration import FEWEST, Calibration, binned, corrected_error

from tests.runs import quick_run


@pytest.fixture(scope="module")
def artefact(run):
    return Calibration().build(run)


def of(run, loss, seed):
    probes = run.probes
    return probes[(probes["loss"] == loss) & (probes["seed"] == seed)]


def looped_error(probes, bins):
    """The definition, one bin after another."""
    inside = np.minimum(np.ceil(probes["maximum"] * bins).clip(1), bins)
    right = probes["argmax_value"] == probes["target_value"]
    parts = [(right[inside == at], probes["maximum"][inside == at]) for at in inside.unique()]
    return sum(abs(hits.mean() - sure.mean()) * len(hits) for hits, sure in parts) / len(probes)


@pytest.mark.parametrize("bins", [10, 15])
def test_the_error_is_that_of_a_loop_over_positions(run, bins):
    for loss in ("ce", "smmd"):
        probes = of(run, loss, 0)
        assert binned(probes, bins).error == pytest.approx(looped_error(probes, bins))


def test_the_curve_is_scikit_learns(artefact, run):
    probes = of(run, "ntl", 1)
    right = probes["argmax_value"] == probes["target_value"]
    accuracy, confidence = calibration_curve(right, probes["maximum"], n_bins=15)
    data = artefact.data
    found = data[(data["loss"] == "ntl") & (data["seed"] == 1)]
    assert found["accuracy"].tolist() == pytest.approx(accuracy.tolist())
    assert found["confidence"].tolist() == pytest.approx(confidence.tolist())
    assert found["n"].sum() == len(probes)


def test_estimate_and_interval_are_twice_the_plain_error_less_quantiles_of_whole_examples(run):
    cells = [binned(of(run, "smmd", seed), 15) for seed in (0, 1)]
    corrected = corrected_error(cells)
    rng = np.random.default_rng(5)
    n = len(cells[0].size)
    resampled = []
    for _ in range(400):
        drawn = rng.integers(0, n, n)
        each = [np.abs(c.gap[drawn].sum(0)).sum() / c.size[drawn].sum() for c in cells]
        resampled.append(np.mean(each))
    value = np.mean([cell.error for cell in cells])
    expected = 2 * value - np.quantile(resampled, [0.5, 0.975, 0.025])
    assert corrected == pytest.approx(expected, abs=0.004)
    assert corrected[1] < corrected[0] < corrected[2]


def probes_of(confidences, rights, starts):
    """Probes of positions; `starts` says which are the first of an example."""
    return pd.DataFrame(
        {"digit": [int(not start) for start in starts], "target_value": 3.0,
         "argmax_value": [3.0 if right else 4.0 for right in rights], "maximum": confidences}
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_of_a_calibrated_model_the_estimate_is_nearer_to_0_than_the_plain_error(seed):
    rng = np.random.default_rng(seed)
    confidences = rng.uniform(0.2, 1, 2000)
    rights = rng.uniform(size=2000) < confidences
    cell = binned(probes_of(confidences, rights, np.ones(2000, bool)), 15)
    corrected = corrected_error([cell])
    assert corrected[1] <= corrected[0] <= corrected[2]
    assert corrected[0] < cell.error


def test_a_single_example_has_a_plain_error_alone(tmp_path):
    cell = binned(probes_of([0.5, 0.5], [True, True], [True, False]), 10)
    assert (cell.gap.shape, cell.error) == ((1, 10), 0.5)
    assert np.isnan(corrected_error([cell])).all()
    table = Calibration().build(quick_run(tmp_path, losses=("ce",), n=1)).table
    assert set(table["ECE (%)"]) == {"–"}
    assert "–" not in set(table["Plain ECE (%)"])


def test_the_table_has_the_mean_over_seeds_in_percent(artefact, run):
    table = artefact.table.set_index("Loss")
    assert list(table.index) == ["untuned", "CE", "NTL", "SMMD"]
    mean = np.mean([looped_error(of(run, "ce", seed), 15) for seed in (0, 1)])
    assert table.loc["CE", "Plain ECE (%)"] == f"{100 * mean:.2f}"
    value, low, high = map(float, re.findall(r"[\d.]+", table.loc["CE", "ECE (%)"]))
    assert low < value < min(high, 100 * mean)
    assert table.loc["CE", "Seeds"] == "2"
    assert table.loc["CE", "Positions"] == f"{len(of(run, 'ce', 0)):,}"


def test_curves_pool_the_seeds_and_leave_out_bins_of_few_positions(artefact, run):
    (above,) = artefact.figure.axes
    labels = ["untuned", "CE", "NTL", "SMMD"]
    assert above.get_legend_handles_labels()[1] == labels
    line = next(line for line in above.lines if line.get_label() == "SMMD")
    probes = run.probes[run.probes["loss"] == "smmd"]
    counts = np.histogram(probes["maximum"], np.linspace(0, 1, 16))[0]
    right = (probes["argmax_value"] == probes["target_value"]).to_numpy()
    accuracy, _ = calibration_curve(right, probes["maximum"], n_bins=15)
    enough = counts[counts > 0] >= FEWEST
    assert list(line.get_ydata()) == pytest.approx(accuracy[enough].tolist())
