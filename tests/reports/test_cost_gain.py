import numpy as np
import pytest
from smmd_bench.reports.cost_gain import WARM_UP, CostGain, step_costs

from tests.changed_runs import NO_MEMORY, changed, without
from tests.reports.golden import words

STEPS = 240


@pytest.fixture(scope="module")
def timed(run, tmp_path_factory):
    """The synthetic run with step times that a machine with other work would give."""
    folder, rng = tmp_path_factory.mktemp("timed"), np.random.default_rng(0)
    for loss, cost in {"ce": 1, "ntl": 1.1, "smmd": 1.5}.items():

        def time(log, cost=cost):
            seconds = 0.2 * cost * rng.normal(1, 0.05, STEPS)
            seconds[:3] = 9  # warming up
            return log.assign(seconds=seconds)

        run = changed(run, folder, "train_log.parquet", time, loss=loss)
    return run


@pytest.fixture(scope="module")
def artefact(timed):
    return CostGain().build(timed)


def test_the_cost_is_the_median_of_paired_steps(timed):
    log = timed.train_log.pivot(index=["seed", "step"], columns="loss", values="seconds")
    kept = log[log.index.get_level_values("step") > WARM_UP * STEPS]
    ratios = kept["smmd"] / kept["ce"]
    row = step_costs(timed).set_index("loss").loc["smmd"]
    assert row["ratio"] == pytest.approx(np.median(ratios))
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx(np.percentile(ratios, [25, 75]))
    assert row["steps"] == len(ratios) == 456


def test_the_gain_is_that_of_the_comparisons(artefact, timed):
    found = artefact.data.set_index("loss")["difference"]
    known = timed.comparisons
    known = known[(known["metric"] == "exact_match") & (known["against_loss"] == "ce")]
    expected = known.groupby("loss", observed=True)["difference"].mean()
    assert found.to_dict() == pytest.approx(expected.to_dict())


def test_each_loss_is_a_point_and_cross_entropy_the_origin(artefact):
    (axis,) = artefact.figure.axes
    points = [line for line in axis.lines if line.get_linestyle() == "None"]
    assert [line.get_label() for line in points] == ["CE", "NTL", "SMMD"]
    assert (points[0].get_xdata()[0], points[0].get_ydata()[0]) == (1, 0)
    row = artefact.data.set_index("loss").loc["smmd"]
    assert points[2].get_xdata()[0] == row["ratio"]
    assert points[2].get_ydata()[0] == row["difference"]


def test_the_caption_warns_of_a_shared_machine(artefact):
    assert "where a machine does other work as well" in words(artefact)
    assert set(artefact.table["Steps"]) == {"456"}
    assert artefact.table["Loss"].tolist() == ["NTL", "SMMD"]


def test_a_seed_without_cross_entropy_does_not_count(timed, tmp_path):
    run = without(timed, tmp_path, "train_log.parquet", loss="ce", seed=1)
    assert set(step_costs(run)["steps"]) == {228}


def test_a_failed_loss_has_a_row_that_says_so(timed, tmp_path):
    table = CostGain().build(without(timed, tmp_path, failure=NO_MEMORY, loss="ntl")).table
    assert table["Loss"].tolist() == ["NTL", "SMMD"]
    assert table["Step time : CE"].iloc[0] == "failed in train"
    assert set(table.iloc[0, 2:]) == {"–"}
