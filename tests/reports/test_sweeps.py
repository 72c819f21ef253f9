"""The sensitivity figures and the ablation tables, against generated runs."""

from functools import cache

import pytest
from scipy.stats import binomtest
from smmd_bench.reports.ablations import Ablation, BandwidthTable, TermsTable
from smmd_bench.reports.sweeps import LambdaSensitivity, NtlLambdaScan, SigmaSensitivity, Sweep

from smmd_bench.publishing.style import figure_style
from smmd_bench.results.frames import read_run
from tests.changed_runs import NO_MEMORY, without
from tests.reports.conftest import TERMS
from tests.reports.test_results import by_hand
from tests.runs import planted_run, quick_run

SIGMA = {"smmd[sigma=0.5]": 0.5, "smmd[sigma=1]": 1, "smmd": 2, "smmd[sigma=5]": 5}
WEIGHT = {"smmd[lambda=0.3]": 0.3, "smmd[lambda=1]": 1, "smmd": 3, "smmd[lambda=10]": 10}
NTL = {"ntl[lambda=0.1]": 0.1, "ntl[lambda=1]": 1, "ntl": 2, "ntl[lambda=5]": 5}
OTHERS = ("smmd[sigma=1+2+3]", "smmd[lambda=7,sigma=4]", "smmd[term=mmd]", "gce")
LOSSES = ("ce", *dict.fromkeys([*SIGMA, *WEIGHT, *NTL]), *OTHERS)
CASES = [
    (SigmaSensitivity(), "smmd", SIGMA), (LambdaSensitivity(), "smmd", WEIGHT),
    (NtlLambdaScan(), "ntl", NTL),
]  # fmt: skip


cases = pytest.mark.parametrize(
    ("report", "loss", "values"), CASES, ids=[report.name for report, _, _ in CASES]
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return quick_run(tmp_path_factory.mktemp("sweep"), losses=LOSSES, n=80)


@pytest.fixture(scope="module")
def drawn(run):
    """The artefact of a report of this run, built once."""
    return cache(lambda report: built(report, run))


def built(report, run):
    with figure_style():
        return report.build(run)


@cases
def test_a_sweep_holds_the_cells_that_change_nothing_else(report, loss, values, drawn):
    data = drawn(report).data
    swept = data[data["series"] == loss]
    assert dict(zip(swept["loss"], swept["value"], strict=True)) == values
    assert list(data.loc[data["series"] == "ce", "loss"]) == ["ce"]


@cases
def test_cross_entropy_is_a_band_and_the_point_at_a_weight_of_zero(
    report, loss, values, run, drawn
):
    axis = drawn(report).figure.axes[0]
    ce = run.metrics.query("metric == 'exact_match' and loss == 'ce'").iloc[0]
    bands = [patch.get_extents().transformed(axis.transData.inverted()) for patch in axis.patches]
    assert any((band.y0, band.y1) == pytest.approx((ce["low"], ce["high"])) for band in bands)
    curve = next(line for line in axis.containers if line.get_label() == loss.upper()).lines[0]
    start = (float(curve.get_xdata()[0]), float(curve.get_ydata()[0]))
    is_weight = report.name != "sigma_sensitivity"
    assert (start == pytest.approx((0.0, ce["value"]))) is is_weight


@cases
def test_the_default_is_marked(report, loss, values, drawn):
    rings = [line for line in drawn(report).figure.axes[0].lines
             if line.get_label() == "default"]  # fmt: skip
    expected = {values[loss]} | ({3.0} if report.name == "ntl_lambda_scan" else set())
    assert {float(ring.get_xdata()[0]) for ring in rings} == expected


def test_any_parameter_of_any_loss_is_swept_and_any_variant_of_fewer_seeds_has_a_row(tmp_path):
    widths = {f"gce[sigma={value}]": value for value in (0.2, 1.0, 3.0)}
    quick_run(tmp_path, losses=("ce", "gce", "smmd"), seeds=(0, 1))
    run = quick_run(tmp_path, losses=("ce", "gce", *widths), base=False)
    artefact = built(Sweep(), run)
    data = artefact.data[artefact.data["series"] == "gce"].drop_duplicates("loss")
    assert dict(zip(data["loss"], data["value"], strict=True)) == {"gce": 0.5, **widths}
    assert artefact.figure.axes[0].get_xlabel() == "σ of GCE"
    table = Ablation().build(run).table
    labels = [spec.replace("gce", "GCE") for spec in widths]
    assert table["Loss"].tolist() == ["none (CE)", "GCE", *labels]
    assert not table["Acc (%)"].str.contains("not run").any()


@pytest.mark.parametrize(
    "report", [SigmaSensitivity(), LambdaSensitivity(), BandwidthTable(), Sweep(), Ablation()]
)
def test_a_run_that_varies_nothing_imports_no_loss(report, run_folder, monkeypatch):
    monkeypatch.setattr("smmd_bench.reports.ablations.load_loss", None)
    assert str(report.skip(read_run(run_folder))).startswith("the run ")


def test_values_differences_and_tests_are_those_of_the_completions(runs):
    run = runs("variants")
    data = TermsTable().build(run).data.set_index("loss")
    exact = run.completions.pivot(index="uid", columns="loss", values="exact").astype(bool)
    p_values = []
    assert data.loc["ce", "exact_match_value"] == pytest.approx(100 * exact["ce"].mean())
    for loss in TERMS[1:]:
        assert data.loc[loss, "exact_match_value"] == pytest.approx(100 * exact[loss].mean())
        gained, lost = (exact[loss] & ~exact["ce"]).sum(), (exact["ce"] & ~exact[loss]).sum()
        assert data.loc[loss, "difference"] == pytest.approx(100 * (gained - lost) / len(exact))
        p_values.append(binomtest(int(gained), int(gained + lost)).pvalue)
    ours, corrected = data.loc[[*TERMS[1:]]], by_hand(p_values)
    assert list(ours["exact_match_gain_p"]) == pytest.approx(corrected)
    best = ours["difference"] == max(ours["difference"].max(), 0)
    assert list(ours["best"]) == [*best & (ours["exact_match_gain_p"] < 0.05)]


def test_planted_answers_give_a_known_table(tmp_path):
    answers = [str(at) for at in range(20)]
    predictions = {
        "ce": ["none"] * 20,
        "smmd[term=mmd]": answers[:12] + ["99"] * 8,
        "smmd[term=smooth]": answers[:4] + ["99"] * 16,
        "smmd": answers,
    }
    artefact = TermsTable().build(planted_run(tmp_path, answers, predictions))
    table = artefact.table.set_index("Terms")
    assert [text.split()[0] for text in table["Acc (%)"]] == ["0.0", "60.0", "20.0", "100.0"]
    assert list(table["p (Holm)"]) == ["–", "<0.001", "0.125", "<0.001"]
    assert artefact.table.attrs["bold"] == [(3, "Acc (%)")]
    assert "n = 20 test examples; seed 0." in artefact.caption


def test_only_the_seeds_that_every_row_has_are_compared(tmp_path):
    quick_run(tmp_path, losses=TERMS)
    run = quick_run(tmp_path, losses=("ce", "smmd"), seeds=(1, 2), base=False)
    artefact = TermsTable().build(run)
    assert set(artefact.data["seed"]) == {0}


def test_published_values_stand_beside_the_papers_setting_alone(runs):
    table = TermsTable().build(runs("variants of the paper")).table
    paper = table[table["Paper"] != "–"]
    assert set(paper["Model"]) == {"Qwen2.5 1.5B"}
    ce = paper[paper["Terms"] == "none (CE)"].set_index("Task")["Paper"]
    assert ce.to_dict() == {"gsm8k": "54.97", "svamp": "68.60"}


def test_a_row_without_a_result_says_why_in_place(runs, tmp_path):
    run = without(runs("variants"), tmp_path, failure=NO_MEMORY, loss="smmd[term=mmd]")
    table = TermsTable().build(run).table.set_index("Terms")
    assert list(table.loc["MMD"]) == ["builtin/tiny 2.14M", "failed in train", "–", "–"]
