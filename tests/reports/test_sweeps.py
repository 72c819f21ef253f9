"""The sensitivity figures and the ablation tables, against generated runs."""

import pytest
from smmd_bench.reports.ablations import Ablation, BandwidthTable, TermsTable
from smmd_bench.reports.sweeps import (
    LambdaSensitivity,
    NtlLambdaScan,
    SigmaSensitivity,
    Sweep,
)

from smmd_bench.contracts import ReportSkippedError
from smmd_bench.publishing.style import figure_style
from smmd_bench.results.frames import read_run
from tests.changed_runs import NO_MEMORY, without
from tests.reports.conftest import TERMS
from tests.runs import quick_run

SIGMA = {"smmd[sigma=0.5]": 0.5, "smmd[sigma=1]": 1, "smmd": 2, "smmd[sigma=5]": 5}
WEIGHT = {
    "smmd[lambda=0.3]": 0.3,
    "smmd[lambda=1]": 1,
    "smmd": 3,
    "smmd[lambda=10]": 10,
}
NTL = {"ntl[lambda=0.1]": 0.1, "ntl[lambda=1]": 1, "ntl": 2, "ntl[lambda=5]": 5}
OTHERS = ("smmd[sigma=1+2+3]", "smmd[lambda=7,sigma=4]", "smmd[term=mmd]", "gce")
LOSSES = ("ce", *dict.fromkeys([*SIGMA, *WEIGHT, *NTL]), *OTHERS)
WIDTHS = {f"gce[sigma={value}]": value for value in (0.2, 1.0, 3.0)}
CASES = [
    (SigmaSensitivity(), "smmd", SIGMA), (LambdaSensitivity(), "smmd", WEIGHT),
    (NtlLambdaScan(), "ntl", NTL),
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return quick_run(tmp_path_factory.mktemp("sweep"), losses=LOSSES, n=80)


@pytest.fixture(scope="module")
def widened(tmp_path_factory):
    """A run of widths of GCE, and one of two seeds in its folder."""
    folder = tmp_path_factory.mktemp("widened")
    quick_run(folder, losses=("ce", "gce", "smmd"), seeds=(0, 1))
    return quick_run(folder, losses=("ce", "gce", *WIDTHS), base=False)


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
    data = artefact.data.set_index("loss")
    swept = data.loc[data["series"] == loss, "value"]
    assert swept.to_dict() == values
    references = data.index[data["series"] == "ce"]
    assert [*references] == ["ce"]

    axis = artefact.figure.axes[0]
    ce = run.metrics.query("metric == 'exact_match' and loss == 'ce'").iloc[0]
    interval = pytest.approx((ce["low"], ce["high"]))
    bands = []
    for patch in axis.patches:
        extent = patch.get_extents()
        extent = extent.transformed(axis.transData.inverted())
        bands.append((extent.y0, extent.y1))

    assert interval in bands

    # With a weight of 0 a loss is cross-entropy.
    curves = {curve.get_label(): curve for curve in axis.containers}
    x, y = curves[loss.upper()].lines[0].get_data()
    begins_at_ce = (x[0], y[0]) == pytest.approx((0.0, ce["value"]))
    assert begins_at_ce is (report.name != "sigma_sensitivity")

    # SMMD stands beside NTL, with its own default.
    defaults = {values[loss]}
    if report.name == "ntl_lambda_scan":
        defaults.add(3.0)
    rings = [line for line in axis.lines if line.get_label() == "default"]
    places = [float(ring.get_xdata()[0]) for ring in rings]
    assert {*places} == defaults


def test_any_parameter_of_any_loss_is_swept(widened):
    artefact = built(Sweep(), widened)
    axis = artefact.figure.axes[0]
    assert axis.get_xlabel() == "σ of GCE"
    data = artefact.data.drop_duplicates("loss").set_index("loss")
    values = data.loc[data["series"] == "gce", "value"]
    assert values.to_dict() == {"gce": 0.5, **WIDTHS}


def test_any_variant_has_a_row(widened):
    table = Ablation().build(widened).table
    labels = [spec.replace("gce", "GCE") for spec in WIDTHS]
    assert table["Loss"].tolist() == ["none (CE)", "GCE", *labels]
    assert "not run" not in table["Acc (%)"].tolist()


def test_negative_values_have_an_axis_that_is_linear(widened, monkeypatch):
    negative = {spec: [-value] for spec, value in WIDTHS.items()}
    scans = {("gce", "sigma"): negative}
    monkeypatch.setattr("smmd_bench.reports.sweeps.list_scans", lambda _: scans)
    axis = built(Sweep(), widened).figure.axes[0]
    assert axis.get_xscale() == "linear"


@pytest.mark.parametrize(
    "report",
    [SigmaSensitivity(), LambdaSensitivity(), BandwidthTable(), Sweep(), Ablation()],
)
def test_a_run_that_varies_nothing_imports_no_loss(report, run_folder, monkeypatch):
    monkeypatch.setattr("smmd_bench.results.summary.load_loss", None)
    with pytest.raises(ReportSkippedError, match=r"^the run "):
        report.build(read_run(run_folder))


def test_only_the_seeds_that_every_row_has_are_compared(tmp_path):
    quick_run(tmp_path, losses=TERMS)
    run = quick_run(tmp_path, losses=("ce", "smmd"), seeds=(1, 2), base=False)
    artefact = TermsTable().build(run)
    assert set(artefact.data["seed"]) == {0}

    # A variant of as many seeds as its loss has a row, too.
    losses = ("ce", "smmd", "smmd[kernel=shuffled]")
    run = quick_run(tmp_path / "variant", losses=losses, base=False)
    table = Ablation().build(run).table
    assert table["Loss"].tolist() == ["none (CE)", "SMMD", "SMMD[kernel=shuffled]"]


def test_a_row_without_a_result_says_why_in_place(runs, tmp_path):
    run = without(runs("variants"), tmp_path, failure=NO_MEMORY, loss="smmd[term=mmd]")
    table = TermsTable().build(run).table.set_index("Terms")
    assert list(table.loc["MMD"]) == ["builtin/tiny 2.14M", "failed in train", "–", "–"]
