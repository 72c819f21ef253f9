"""Gains, their tests and the verdict, against independent tests."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import binomtest
from smmd_bench.reports._results import name_seeds
from smmd_bench.reports.metric_tables import MathTable
from smmd_bench.reports.verdict import Verdict
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests

from tests.runs import SMALL_RECIPE, planted_run, quick_run

SIXTY, ANSWERS = [str(at) for at in range(60)], [str(at) for at in range(40)]
HALF = [*ANSWERS[:20], *["77"] * 20]


def right(*kept):
    """Completions that give the answers of these examples alone."""
    return [text if at in kept else "777" for at, text in enumerate(SIXTY)]


def data_of(path, completions, seeds=(0,)):
    run = planted_run(path, SIXTY, completions, seeds=seeds)
    return MathTable().build(run).data.drop_duplicates("loss").set_index("loss")


def test_the_losses_of_a_model_and_task_are_one_family(tmp_path):
    losses = {
        "ce": right(*range(20)),
        "ntl": right(*range(30)),
        "smmd": right(*range(32)),
    }
    data = data_of(tmp_path, losses)
    p_values = data.loc[["ntl", "smmd"], "exact_match_gain_p"]

    # They get 10 and 12 examples right that CE does not, and none wrong that it has.
    raw = [binomtest(n, n).pvalue for n in (10, 12)]
    _, expected, *_ = multipletests(raw, method="holm")
    assert [*p_values] == pytest.approx([*expected])
    assert data["best"].to_dict() == {"ce": False, "ntl": False, "smmd": True}
    assert np.isnan(data.loc["ce", "exact_match_gain"])


def test_cross_entropy_of_other_seeds_is_the_noise_floor_and_in_no_family(tmp_path):
    ce = {seed: right(*range(seed, 20 + seed)) for seed in range(4)}
    smmd = dict.fromkeys(range(4), right(*range(40)))
    data = data_of(tmp_path, {"ce": ce, "smmd": smmd}, seeds=range(4))
    best = data["best"].to_dict()
    assert best == {"ce": False, "smmd": True}

    # Seed 2 against 0, and 3 against 1.
    floor = data.loc["ce"]
    assert floor["exact_match_gain"] == 0
    assert floor["exact_match_gain_low"] < 0
    assert floor["exact_match_gain_high"] > 0
    assert floor["exact_match_gain_p"] == 1


@pytest.fixture(scope="module")
def three_seeds(tmp_path_factory):
    return quick_run(tmp_path_factory.mktemp("three"), seeds=(0, 1, 2), n=80)


def test_p_is_that_of_the_mixed_model_over_several_seeds(three_seeds):
    """A reference in long form: two-way analysis of variance of the seeds' differences."""
    verdicts = three_seeds.verdict
    row = verdicts.query("metric == 'exact_match' and loss == 'smmd'").iloc[0]
    completions = three_seeds.completions
    wide = completions.pivot_table("exact", ["seed", "uid"], "loss", observed=True)
    difference = 100 * (wide["smmd"] - wide["ce"])
    long = difference.rename("y").reset_index()
    long = long.astype({"seed": "str"})

    fit = ols("y ~ C(seed) + C(uid)", long).fit()
    squares = anova_lm(fit)["mean_sq"]
    seeds = squares["C(seed)"]
    examples = squares["C(uid)"]
    residual = squares["Residual"]
    total = seeds + examples - residual
    df = total**2 / (seeds**2 / 2 + examples**2 / 79 + residual**2 / 158)

    # Then the variance of seeds is estimated as none.
    if residual > seeds:
        total = examples
        df = 79

    assert total >= max(seeds, examples)
    error = np.sqrt(total / (3 * 80))
    p = 2 * stats.t.sf(row["difference"] / error, df)
    assert row["error"] == pytest.approx(error, rel=1e-3)
    assert row["p"] == pytest.approx(p, rel=1e-2)


def test_the_noise_floor_is_the_last_row_of_a_run_with_several_seeds(three_seeds):
    table = Verdict().build(three_seeds).table
    exact, error = table.iloc[-2], table.iloc[-1]
    for row in (exact, error):
        assert row["Loss"] == "CE, other seeds"
        assert row["Seeds"] == "1"
    assert error["Flips"] == "–"

    ce = three_seeds.metrics.query("loss == 'ce' and metric == 'exact_match'")
    by_seed = ce.set_index("seed")["value"]
    expected = by_seed[1] - by_seed[0]
    text, _, _ = exact["Δ to CE [95 %]"].partition(" ")
    difference = float(text.replace("−", "-"))
    assert difference == pytest.approx(expected, abs=0.051)

    gained, lost = exact["Flips"].split(" / ")
    flips = int(gained[1:]) - int(lost[1:])
    assert flips == pytest.approx(80 * expected / 100)


DEAD, WRONG = ["no number"] * 40, ["77"] * 40


ALIKE = dict.fromkeys(range(3), HALF)


OTHERS = {
    s: [*HALF[:s], "77", *HALF[s + 1 : 20 + s], ANSWERS[20 + s], *HALF[21 + s :]]
    for s in ALIKE
}


@pytest.mark.parametrize(
    ("ce", "smmd", "exact", "error"),
    [
        (DEAD, DEAD, "nothing learnt", "nothing learnt"),
        (WRONG, DEAD, "nothing learnt", "nothing learnt"),
        ({0: WRONG, 1: DEAD}, {0: DEAD, 1: WRONG}, "nothing learnt", "nothing learnt"),
        (HALF, DEAD, "worse", "no value to compare"),
        (DEAD, HALF, "better", "no value to compare"),
        ({0: HALF, 1: DEAD}, DEAD, "cannot tell (more seeds)", "no value to compare"),
        (
            {0: HALF, 1: ANSWERS},
            HALF,
            "cannot tell (more seeds)",
            "cannot tell (more seeds)",
        ),
        (ALIKE, OTHERS, "cannot tell (below ±", None),
    ],
)
def test_a_dead_run_is_no_null_result_and_two_seeds_say_nothing_of_their_spread(
    tmp_path, ce, smmd, exact, error
):
    seeds = tuple(ce) if isinstance(ce, dict) else (0,)
    run = planted_run(tmp_path, ANSWERS, {"ce": ce, "smmd": smmd}, seeds=seeds)
    table = (
        Verdict()
        .build(run)
        .table.query("Loss == 'SMMD'")
        .set_index("Metric")["Verdict"]
    )

    assert table["Acc (%)"].startswith(exact)
    assert error in (None, table["MAE"])


def test_a_run_without_cross_entropy_says_so(tmp_path):
    run = quick_run(tmp_path, losses=("ntl", "smmd"), n=20)
    artefact = Verdict().build(run)
    assert set(artefact.table["Verdict"]) == {"no CE to compare with"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"recipe": {**SMALL_RECIPE, "test_examples": 10}}, "CE has another test set"),
        ({"recipe": {**SMALL_RECIPE, "epochs": 9}}, "CE has another recipe"),
        ({"seeds": (3,)}, "CE has other seeds"),
    ],
)
def test_a_loss_that_is_not_paired_with_cross_entropy_says_why(tmp_path, changes, said):
    quick_run(tmp_path, losses=("ce",))
    run = quick_run(tmp_path, losses=("smmd",), base=False, **changes)
    assert set(Verdict().build(run).table["Verdict"]) == {said}


@pytest.mark.parametrize(
    ("seeds", "said"),
    [([3], "seed 3"), ([1, 0], "seeds 0, 1"), (range(2, 9), "seeds 2 to 8"),
     ([0, 1, 2, 3, 4, 6], "seeds 0, 1, 2, 3, 4, 6")],
)  # fmt: skip
def test_many_seeds_in_a_row_are_a_range(seeds, said):
    assert name_seeds(pd.DataFrame({"seed": seeds})) == said
