"""The verdict: does it say what independent tests say, and no more?"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from smmd_bench.reports._gains import gains, seed_gains
from smmd_bench.reports._verdicts import judged_metrics, verdicts
from smmd_bench.reports.arithmetic_table import ArithmeticTable
from smmd_bench.reports.forest_plot import ForestPlot
from smmd_bench.reports.verdict import Verdict
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from smmd_bench.publishing.tables import with_interval
from smmd_bench.scoring.gain import holm
from tests.changed_runs import made_elsewhere
from tests.reports.golden import printed, words
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


def test_p_is_that_of_the_mixed_model_over_several_seeds(three_seeds):
    """A reference in long form: two-way analysis of variance of the seeds' differences."""
    judged = verdicts(three_seeds)
    row = judged.query("metric == 'exact_match' and loss == 'smmd'").iloc[0]
    wide = three_seeds.completions.pivot_table("exact", ["seed", "uid"], "loss", observed=True)
    difference = 100 * (wide["smmd"] - wide["ce"])
    long = difference.rename("y").reset_index().astype({"seed": "str"})
    squares = anova_lm(ols("y ~ C(seed) + C(uid)", long).fit())["mean_sq"]
    seeds, examples, rest = squares["C(seed)"], squares["C(uid)"], squares["Residual"]
    if rest > seeds:  # the variance of seeds is estimated as none
        total, df = examples, 79
    else:
        total = seeds + examples - rest
        df = total**2 / (seeds**2 / 2 + examples**2 / 79 + rest**2 / 158)
    assert total >= max(seeds, examples)
    error = np.sqrt(total / (3 * 80))
    assert row["error"] == pytest.approx(error, rel=1e-3)
    assert row["p"] == pytest.approx(2 * stats.t.sf(row["difference"] / error, df), rel=1e-2)


def test_p_is_mcnemars_of_one_seed(tmp_path):
    one = quick_run(tmp_path, n=80)
    row = verdicts(one).query("metric == 'exact_match' and loss == 'smmd'").iloc[0]
    comparison = one.comparisons.query("metric == 'exact_match' and loss == 'smmd'").iloc[0]
    b, c = int(comparison["b"]), int(comparison["c"])
    assert row["p"] == pytest.approx(stats.binomtest(b, b + c).pvalue)
    assert row["discordant"] == b + c


def test_the_noise_floor_is_the_last_row_of_a_run_with_several_seeds(three_seeds):
    table = Verdict().build(three_seeds).table
    assert table["Loss"].tolist()[-2:] == ["CE, other seeds"] * 2
    assert table["Seeds"].tolist()[-2:] == ["1", "1"]
    pair = [three_seeds.metrics.query(f"loss == 'ce' and seed == {seed}") for seed in (0, 1)]
    values = [p.set_index("metric")["value"]["exact_match"] for p in pair]
    shown = float(table["Δ to CE [95 %]"].iloc[-2].split()[0].replace("−", "-"))
    assert shown == pytest.approx(values[1] - values[0], abs=0.051)


def test_the_noise_floor_is_neither_better_nor_worse(tmp_path):
    better = {0: HALF, 1: ANSWERS}
    run = planted_run(tmp_path, ANSWERS, {"ce": better, "smmd": better}, seeds=(0, 1))
    table = Verdict().build(run).table
    floor = table[table["Loss"] == "CE, other seeds"]
    assert (floor["p (Holm)"].iloc[0], floor["Verdict"].iloc[0]) == ("<0.001", "seeds differ")


def test_a_noise_floor_without_a_difference_says_what_it_could_have_shown(three_seeds):
    floor = verdicts(three_seeds).query("loss == 'ce' and p_holm > 0.05")
    assert len(floor)
    assert floor["verdict"].str.startswith("cannot tell (below ±").all()


def test_the_losses_of_several_seeds_are_one_table_on_a_terminal(three_seeds):
    lines = printed(Verdict().build(three_seeds).table, "", 80, of=80)
    assert sum(line.startswith("Loss ") for line in lines) == 1
    assert max(map(len, lines)) <= 80


def test_the_tables_and_the_forest_plot_show_the_intervals_of_the_verdict(three_seeds):
    judged = verdicts(three_seeds).query("metric == 'exact_match'").set_index("loss")
    plotted = ForestPlot().build(three_seeds).table.query("Metric == 'Acc (%)'")
    listed = ArithmeticTable().build(three_seeds).data.drop_duplicates("loss").set_index("loss")
    texts = plotted.set_index("Loss")["Δ to CE"]
    for loss, label in (("ntl", "NTL"), ("smmd", "SMMD"), ("ce", "CE, other seeds")):
        gain = judged.loc[loss]
        bounds = (gain["difference"], gain["low"], gain["high"])
        assert texts[label] == with_interval(*bounds, 1, sign=True)
        parts = ["", "_low", "_high"]
        shown = listed.loc[loss, [f"exact_match_gain{part}" for part in parts]].tolist()
        assert shown == pytest.approx(bounds)


def test_the_metrics_are_the_first_and_the_error():
    assert [m.name for m in judged_metrics("arithmetic")] == ["exact_match", "mean_absolute_error"]
    assert [m.name for m in judged_metrics("clock_time")] == ["exact_match", "time_gap"]
    assert [m.name for m in judged_metrics("samsum")] == ["rougeL"]


DEAD, WRONG = ["no number"] * 40, ["77"] * 40
ALIKE = dict.fromkeys(range(3), HALF)
OTHERS = {
    s: [*HALF[:s], "77", *HALF[s + 1 : 20 + s], ANSWERS[20 + s], *HALF[21 + s :]] for s in ALIKE
}


@pytest.mark.parametrize(
    ("ce", "smmd", "exact", "error"),
    [
        (DEAD, DEAD, "nothing learnt", "nothing learnt"),
        (WRONG, DEAD, "nothing learnt", "nothing learnt"),
        ({0: WRONG, 1: DEAD}, {0: DEAD, 1: WRONG}, "nothing learnt", "nothing learnt"),
        (HALF, DEAD, "worse", "no answers to compare"),
        (DEAD, HALF, "better", "no answers to compare"),
        ({0: HALF, 1: DEAD}, DEAD, "cannot tell (more seeds)", "no answers to compare"),
        ({0: HALF, 1: ANSWERS}, HALF, "cannot tell (more seeds)", "cannot tell (more seeds)"),
        (ALIKE, OTHERS, "cannot tell (below ±", None),
    ],
)
def test_a_dead_run_is_no_null_result_and_two_seeds_say_nothing_of_their_spread(
    tmp_path, ce, smmd, exact, error
):
    seeds = tuple(ce) if isinstance(ce, dict) else (0,)
    run = planted_run(tmp_path, ANSWERS, {"ce": ce, "smmd": smmd}, seeds=seeds)
    artefact = Verdict().build(run)
    table = artefact.table.query("Loss == 'SMMD'").set_index("Metric")["Verdict"]
    assert table["Acc (%)"].startswith(exact)
    assert error in (None, table["MAE"])
    assert ("Nothing learnt" in artefact.caption) == (exact == "nothing learnt")
    if "more seeds" in exact:
        forest = ForestPlot().build(run).table.query("Loss == 'SMMD' and Metric == 'Acc (%)'")
        assert forest["Detectable"].tolist() == ["–"]


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


def test_a_comparison_of_an_earlier_version_without_a_test_has_no_verdict(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"base": HALF, "ce": HALF, "ntl": ANSWERS})
    run.comparisons["p"] = np.nan
    assert set(Verdict().build(run).table["Verdict"]) == {"not tested: run it again"}


def test_the_caption_explains_the_number_of_cannot_tell_where_there_is_one(tmp_path):
    alike = planted_run(tmp_path / "alike", ANSWERS, {"ce": HALF, "smmd": HALF})
    assert "Below ±x: a true difference of x" in Verdict().build(alike).caption
    alike.comparisons["p"] = np.nan
    assert "Below" not in Verdict().build(alike).caption


def test_the_notes_name_the_noise_floor_and_several_seeds_only_where_there_are_such(
    three_seeds, tmp_path
):
    several = " ".join(Verdict().build(three_seeds).notes)
    assert "mixed model" in several
    assert "The row CE, other seeds compares" in several
    one = " ".join(Verdict().build(quick_run(tmp_path)).notes)
    assert one.startswith("Interval and p speak of other test sets alone")
    assert "noise floor" not in one
    assert "seeds" not in one


def test_a_long_name_of_the_reference_is_shortened_in_the_headings(tmp_path):
    long = "samples_gsm8k_2026-11-20T10-00-00.123"
    run = planted_run(tmp_path, ANSWERS, {"ce": HALF, "smmd": ANSWERS})
    artefact = Verdict().build(made_elsewhere(run, tmp_path, {"ce": long, "smmd": "new"}))
    assert [name for name in artefact.table if "samples" in name] == [
        "samples…00.123", "Δ to samples…00.123 [95 %]",
    ]  # fmt: skip
    assert long in artefact.caption


def test_a_file_labelled_ce_is_a_loss_like_others_where_another_file_is_the_reference(tmp_path):
    some = [*ANSWERS[:30], *HALF[30:]]
    run = planted_run(tmp_path, ANSWERS, {"ce": HALF, "ntl": some, "smmd": ANSWERS})
    run = made_elsewhere(run, tmp_path, {"ce": "old", "ntl": "ce", "smmd": "new"})
    data = Verdict().build(run).data.query("metric == 'exact_match'").set_index("loss")
    assert {*data.index} == {"ce", "new"}
    assert data["p_holm"].tolist() == pytest.approx(holm(data["p"]).tolist())
    assert data["p_holm"].ne(data["p"]).any()
