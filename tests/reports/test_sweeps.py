"""The sensitivity figures and the ablation tables, against generated runs."""

import pytest
from smmd_bench.reports.ablations import Ablation, BandwidthTable, TermsTable
from smmd_bench.reports.sweeps import LambdaSensitivity, NtlLambdaScan, SigmaSensitivity, Sweep

from smmd_bench.publishing.style import figure_style
from smmd_bench.results.frames import read_run
from tests.changed_runs import NO_MEMORY, without
from tests.reports.conftest import TERMS
from tests.runs import quick_run

SIGMA = {"smmd[sigma=0.5]": 0.5, "smmd[sigma=1]": 1, "smmd": 2, "smmd[sigma=5]": 5}
WEIGHT = {"smmd[lambda=0.3]": 0.3, "smmd[lambda=1]": 1, "smmd": 3, "smmd[lambda=10]": 10}
NTL = {"ntl[lambda=0.1]": 0.1, "ntl[lambda=1]": 1, "ntl": 2, "ntl[lambda=5]": 5}
OTHERS = ("smmd[sigma=1+2+3]", "smmd[lambda=7,sigma=4]", "smmd[term=mmd]", "gce")
LOSSES = ("ce", *dict.fromkeys([*SIGMA, *WEIGHT, *NTL]), *OTHERS)
CASES = [
    (SigmaSensitivity(), "smmd", SIGMA), (LambdaSensitivity(), "smmd", WEIGHT),
    (NtlLambdaScan(), "ntl", NTL),
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return quick_run(tmp_path_factory.mktemp("sweep"), losses=LOSSES, n=80)


def built(report, run):
    with figure_style():
        return report.build(run)


@pytest.mark.parametrize(
    ("report", "loss", "values"), CASES, ids=[report.name for report, _, _ in CASES]
)
def test_a_sweep_is_a_curve_of_the_cells_that_change_nothing_else_over_a_band_of_ce(
    report, loss, values, run
):
    artefact = built(report, run)
    data, axis = artefact.data, artefact.figure.axes[0]
    swept = data[data["series"] == loss]
    assert dict(zip(swept["loss"], swept["value"], strict=True)) == values
    assert list(data.loc[data["series"] == "ce", "loss"]) == ["ce"]
    ce = run.metrics.query("metric == 'exact_match' and loss == 'ce'").iloc[0]
    bands = [patch.get_extents().transformed(axis.transData.inverted()) for patch in axis.patches]
    assert any((band.y0, band.y1) == pytest.approx((ce["low"], ce["high"])) for band in bands)
    curve = next(line for line in axis.containers if line.get_label() == loss.upper()).lines[0]
    start = (float(curve.get_xdata()[0]), float(curve.get_ydata()[0]))
    is_weight = report.name != "sigma_sensitivity"
    assert (start == pytest.approx((0.0, ce["value"]))) is is_weight
    rings = {float(x.get_xdata()[0]) for x in axis.lines if x.get_label() == "default"}
    assert rings == {values[loss]} | ({3.0} if report.name == "ntl_lambda_scan" else set())


def test_any_parameter_of_any_loss_is_swept_and_any_variant_has_a_row(tmp_path, monkeypatch):
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
    same = quick_run(tmp_path / "same", losses=("ce", "smmd", "smmd[kernel=shuffled]"), base=False)
    table = Ablation().build(same).table  # of as many seeds as its loss
    assert table["Loss"].tolist() == ["none (CE)", "SMMD", "SMMD[kernel=shuffled]"]
    negative = {("gce", "sigma"): {spec: [-value] for spec, value in widths.items()}}
    monkeypatch.setattr("smmd_bench.reports.sweeps.list_scans", lambda _: negative)
    assert built(Sweep(), run).figure.axes[0].get_xscale() == "linear"


@pytest.mark.parametrize(
    "report", [SigmaSensitivity(), LambdaSensitivity(), BandwidthTable(), Sweep(), Ablation()]
)
def test_a_run_that_varies_nothing_imports_no_loss(report, run_folder, monkeypatch):
    monkeypatch.setattr("smmd_bench.results.summary.load_loss", None)
    assert str(report.skip(read_run(run_folder))).startswith("the run ")


def test_only_the_seeds_that_every_row_has_are_compared(tmp_path):
    quick_run(tmp_path, losses=TERMS)
    run = quick_run(tmp_path, losses=("ce", "smmd"), seeds=(1, 2), base=False)
    artefact = TermsTable().build(run)
    assert set(artefact.data["seed"]) == {0}


def test_a_row_without_a_result_says_why_in_place(runs, tmp_path):
    run = without(runs("variants"), tmp_path, failure=NO_MEMORY, loss="smmd[term=mmd]")
    table = TermsTable().build(run).table.set_index("Terms")
    assert list(table.loc["MMD"]) == ["builtin/tiny 2.14M", "failed in train", "–", "–"]
