"""The verdict: does it say what independent tests say, and no more?"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from smmd_bench.reports._gains import gains, seed_gains
from smmd_bench.reports._significance import p_of_seeds
from smmd_bench.reports._verdicts import judged_metrics, smallest_difference, verdicts
from smmd_bench.reports.forest_plot import ForestPlot
from smmd_bench.reports.verdict import Verdict
from statsmodels.stats.power import NormalIndPower, TTestPower

from tests.reports.golden import words
from tests.runs import planted_run, quick_run

ANSWERS = [str(at) for at in range(40)]
HALF = [*ANSWERS[:20], *["77"] * 20]


@pytest.fixture(scope="module")
def three_seeds(tmp_path_factory):
    return quick_run(tmp_path_factory.mktemp("three"), seeds=(0, 1, 2), n=80)


def test_a_loss_is_better_worse_or_neither(tmp_path):
    one_off = [*HALF[:19], *HALF[20:21], *HALF[20:]]
    completions = {"base": HALF, "ce": HALF, "ntl": ANSWERS, "smmd": ["77"] * 40, "gce": one_off}
    run = planted_run(tmp_path, ANSWERS, completions)
    table = Verdict().build(run).table
    exact = table[table["Metric"] == "Acc (%)"].set_index("Loss")["Verdict"]
    assert exact[["NTL", "SMMD"]].tolist() == ["better", "worse"]
    assert exact["GCE"].startswith("cannot tell (below ±")


def test_p_is_mcnemars_of_one_seed_and_the_t_tests_of_several(three_seeds, tmp_path):
    data = verdicts(three_seeds)
    exact = data[data["metric"] == "exact_match"]
    for row in exact.to_dict("records"):
        found = three_seeds.comparisons
        found = found[(found["loss"] == row["loss"]) & (found["metric"] == "exact_match")]
        expected = stats.ttest_1samp(found["difference"].astype(float), 0).pvalue
        assert row["p"] == pytest.approx(expected)
    one = quick_run(tmp_path, n=80)
    row = verdicts(one).query("metric == 'exact_match' and loss == 'smmd'").iloc[0]
    (mcnemar,) = one.comparisons.query("metric == 'exact_match' and loss == 'smmd'")["p"]
    assert row["p"] == mcnemar


def test_differences_that_do_not_vary_have_no_p_and_no_smallest_difference():
    assert np.isnan(p_of_seeds(pd.Series([1.0, 1.0]), None))
    assert np.isnan(smallest_difference({"error": 0.0, "seeds": 2}, 0.05))


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("level", [0.05, 0.0125])
def test_the_smallest_difference_of_several_seeds_has_the_power_of_the_t_test(seeds, level):
    deviation = 2.0
    found = smallest_difference({"error": deviation / np.sqrt(seeds), "seeds": seeds}, level)
    power = TTestPower().power(found / deviation, seeds, level, alternative="larger")
    two_sided = TTestPower().power(found / deviation, seeds, level)
    assert two_sided == pytest.approx(0.8, abs=0.01)
    assert power >= two_sided


def test_the_smallest_difference_of_one_seed_has_the_power_of_the_z_test():
    found = smallest_difference({"error": 0.5, "seeds": 1, "discordant": np.nan}, 0.05)
    assert NormalIndPower(ddof=0).power(found / 0.5, 1, 0.05, ratio=0) == pytest.approx(
        0.8, abs=0.01
    )


def test_the_verdict_and_the_forest_plot_name_the_same_differences(three_seeds):
    plotted = ForestPlot().build(three_seeds).table.set_index("Loss")
    table = Verdict().build(three_seeds).table
    exact = table[table["Metric"] == "Acc (%)"].set_index("Loss")["Δ to CE [95 %]"]
    for loss, text in exact.items():
        mean = float(text.split()[0].replace("−", "-"))
        assert mean == pytest.approx(
            float(plotted.loc[loss, "Δ to CE"].split()[0].replace("−", "-")), abs=0.05
        )


def test_the_metrics_are_the_first_and_the_error():
    assert [m.name for m in judged_metrics("arithmetic")] == ["exact_match", "mean_absolute_error"]
    assert [m.name for m in judged_metrics("clock_time")] == ["exact_match", "time_gap"]
    assert [m.name for m in judged_metrics("samsum")] == ["rougeL"]


def test_a_run_without_cross_entropy_says_so(tmp_path):
    run = quick_run(tmp_path, losses=("ntl", "smmd"), n=20)
    artefact = Verdict().build(run)
    assert set(artefact.table["Verdict"]) == {"no CE to compare with"}
    assert "add it to --losses" in words(artefact)


def test_a_run_of_cross_entropy_alone_has_no_verdict(tmp_path):
    assert "no loss besides" in Verdict().skip(quick_run(tmp_path, losses=("ce",), n=20))


def test_gains_of_the_first_metric_are_those_of_the_verdict(three_seeds):
    first = gains(seed_gains(three_seeds))
    judged = verdicts(three_seeds)
    same = judged[judged["metric"] == "exact_match"]
    assert same["p"].tolist() == first["p"].tolist()


@pytest.mark.parametrize(("discordant", "n"), [(10, 2000), (60, 2000), (12, 40)])
def test_the_smallest_difference_of_exact_match_has_the_power_of_mcnemars_test(discordant, n):
    found = smallest_difference({"seeds": 1, "discordant": discordant, "n": n}, 0.05)
    for_one = (1 + found * n / 100 / discordant) / 2
    wins = stats.binom(discordant, for_one)
    power = sum(
        wins.pmf(k) for k in range(discordant + 1) if stats.binomtest(k, discordant).pvalue < 0.05
    )
    assert power == pytest.approx(0.8, abs=0.02)


def test_too_few_discordant_examples_show_no_difference_below_what_the_test_needs():
    found = smallest_difference({"seeds": 1, "discordant": 1, "n": 2000}, 0.05)
    assert found == pytest.approx(100 * 6 / 2000)
    assert stats.binomtest(6, 6).pvalue < 0.05 < stats.binomtest(5, 5).pvalue


def test_two_recipes_are_not_two_seeds(tmp_path):
    seeds = seed_gains(quick_run(tmp_path, losses=("ce", "smmd"), n=40))
    other = seeds.assign(difference=seeds["difference"] + 1)
    (gain,) = gains(pd.concat([seeds, other], ignore_index=True)).to_dict("records")
    assert gain["seeds"] == 1
    assert np.isnan([gain["low"], gain["high"], gain["error"], gain["p"]]).all()


def test_the_value_of_the_reference_is_that_of_the_seeds_that_are_paired(tmp_path):
    quick_run(tmp_path, losses=("ce",), seeds=(0, 1, 2), n=40)
    run = quick_run(tmp_path, losses=("smmd",), seeds=(0,), n=40, base=False)
    table = Verdict().build(run).table
    exact = table[table["Metric"] == "Acc (%)"].iloc[0]
    cells = run.metrics.query("metric == 'exact_match' and loss == 'ce' and seed == 0")
    assert exact["CE"] == f"{cells['value'].iloc[0]:.1f}"


def test_a_loss_that_gives_no_number_has_no_error_to_compare_and_the_caption_says_so(tmp_path):
    completions = {"base": HALF, "ce": HALF, "ntl": ["none"] * 40}
    artefact = Verdict().build(planted_run(tmp_path, ANSWERS, completions))
    rows = artefact.table.set_index("Metric")["Verdict"]
    assert (rows["Acc (%)"], rows["MAE"]) == ("worse", "no answers to compare")
    assert "100.0 % (NTL)" in artefact.caption
