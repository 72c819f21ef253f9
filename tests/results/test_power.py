"""What a pilot says of the next run, against what a run of that size then shows."""

import numpy as np
import pytest

from smmd_bench.results.power import LARGER, SEEDS, planned_power
from smmd_bench.scoring.crossed import fit_cells
from smmd_bench.scoring.gain import smallest_by_t
from tests.conftest import expect_user_error
from tests.runs import planted_run, quick_run


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    return quick_run(tmp_path_factory.mktemp("pilot"), seeds=(0, 1, 2), n=100)


def test_more_seeds_and_more_examples_show_smaller_differences(pilot):
    table = planned_power(pilot, difference=5.0)
    sizes = [100 * larger for larger in LARGER]
    assert [*table["n"]] == sizes * 2
    assert [*table["loss"]] == ["ntl"] * 4 + ["smmd"] * 4
    assert set(table["level"]) == {0.025}

    few, *columns = [f"seeds_{seeds}" for seeds in SEEDS]
    assert table[few].isna().all()  # one degree of freedom
    by_seeds = table[columns].fillna(np.inf)
    falls = np.diff(by_seeds)
    assert (falls < 0).all()

    for _, rows in table.groupby("loss", observed=True):
        falls = np.diff(rows["seeds_10"])
        assert (falls < 0).all()
        assert rows["needed"].is_monotonic_decreasing


def test_the_seeds_of_a_difference_are_the_fewest_that_show_it(pilot):
    compared = pilot.paired.query("metric == 'exact_match'")
    by_loss = dict(list(compared.groupby("loss", observed=True)))

    for row in planned_power(pilot, difference=6.0).itertuples():
        model = fit_cells(by_loss[row.loss])
        needed = int(row.needed)
        for seeds in (needed, needed - 1):
            if seeds >= 2:
                planned = model.planned(seeds, row.n / 100)
                smallest = smallest_by_t(planned.error, planned.df, 0.025)
                assert (smallest <= 6.0) == (seeds == needed), row


def test_a_pilot_of_one_seed_says_the_least_number_of_seeds(pilot, tmp_path):
    one_seed = planned_power(quick_run(tmp_path, n=100), difference=20.0)
    assert (one_seed["needed"] == 2).all()  # as it knows no spread over seeds
    assert (one_seed["least"] == 3).all()
    assert planned_power(pilot)["least"].isna().all()


def test_a_metric_without_a_spread_names_one_that_has_it(tmp_path):
    predictions = {"ce": ["5", "6", "7"], "ntl": ["6", "8", "7"]}
    run = planted_run(tmp_path, [1, 2, 3], predictions)
    with expect_user_error("--metric mean_absolute_error or"):
        planned_power(run)


def test_the_size_of_the_pilot_shows_what_the_pilot_shows(tmp_path):
    run = quick_run(tmp_path, seeds=range(10), losses=("ce", "smmd"), n=60)
    compared = run.paired.query("metric == 'exact_match' and loss == 'smmd'")
    model = fit_cells(compared)
    expected = smallest_by_t(model.error, model.df, 0.05)
    assert planned_power(run).iloc[0]["seeds_10"] == pytest.approx(expected, rel=0.25)


def test_a_run_without_a_comparison_is_no_pilot(pilot, tmp_path):
    with expect_user_error("needs both"):
        planned_power(quick_run(tmp_path, losses=("ce",)))
    with expect_user_error("did you mean mean_absolute_error"):
        planned_power(pilot, "mean_absolute_eror")
