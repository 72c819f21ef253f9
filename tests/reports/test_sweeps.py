"""The sensitivity figures, against the metrics of generated runs."""

from functools import cache

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from smmd_bench.reports._gains import gains, seed_gains
from smmd_bench.reports._sweep_axis import scale_of
from smmd_bench.reports.bandwidth_table import BandwidthTable
from smmd_bench.reports.lambda_sensitivity import LambdaSensitivity
from smmd_bench.reports.ntl_lambda_scan import NtlLambdaScan
from smmd_bench.reports.sigma_sensitivity import SigmaSensitivity

from smmd_bench.errors import UserError
from smmd_bench.publishing.style import figure_style, loss_styles
from smmd_bench.results.frames import read_run
from tests.changed_runs import NO_MEMORY, without
from tests.reports.golden import words
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
def test_points_and_bars_are_values_and_intervals_of_the_run(report, loss, values, run, drawn):
    axis = drawn(report).figure.axes[0]
    metrics = run.metrics.query("metric == 'exact_match'").set_index("loss")
    expected = {value: tuple(metrics.loc[name, ["value", "low", "high"]])
                for name, value in values.items()}  # fmt: skip
    found = {}
    for container in axis.containers:
        assert isinstance(container, ErrorbarContainer)
        (bars,) = container.lines[2]
        x, y = container.lines[0].get_data()
        for at, mean, ends in zip(x, y, bars.get_segments(), strict=True):
            found[float(at), round(float(mean), 6)] = tuple(ends[:, 1])
    for value, (mean, low, high) in expected.items():
        assert found[value, round(mean, 6)] == pytest.approx((low, high))


@cases
def test_cross_entropy_is_a_band_and_the_point_at_a_weight_of_zero(
    report, loss, values, run, drawn
):
    axis = drawn(report).figure.axes[0]
    ce = run.metrics.query("metric == 'exact_match' and loss == 'ce'").iloc[0]
    bands = [patch.get_extents().transformed(axis.transData.inverted()) for patch in axis.patches]
    assert any((band.y0, band.y1) == pytest.approx((ce["low"], ce["high"])) for band in bands)
    curve = next(line for line in axis.lines if line.get_label() == loss.upper())
    start = (float(curve.get_xdata()[0]), float(curve.get_ydata()[0]))
    is_weight = report.name != "sigma_sensitivity"
    assert (start == pytest.approx((0.0, ce["value"]))) is is_weight


@cases
def test_the_default_is_marked(report, loss, values, drawn):
    rings = [line for line in drawn(report).figure.axes[0].lines
             if line.get_label() == "default"]  # fmt: skip
    expected = {values[loss]} | ({3.0} if report.name == "ntl_lambda_scan" else set())
    assert {float(ring.get_xdata()[0]) for ring in rings} == expected


def shown_at(axis, container):
    """Points from the left at which the bars of a curve are drawn."""
    (bars,) = container.lines[2]
    segments = bars.get_transform().transform(np.vstack([s[:1] for s in bars.get_segments()]))
    return [72 * float(x) / axis.figure.dpi for x in segments[:, 0]]


def test_bars_of_two_losses_at_the_same_weight_stand_side_by_side(drawn):
    artefact = drawn(NtlLambdaScan())
    axis = artefact.figure.axes[0]
    with figure_style():
        artefact.figure.draw_without_rendering()
    smmd, ntl = (next(c for c in axis.containers if len(c.lines[0].get_xdata()) == 4
                      and c.lines[0].get_color() == style.colour)
                 for style in loss_styles(["smmd", "ntl"]).values())  # fmt: skip
    both = {}
    for container in (smmd, ntl):
        for x, at in zip(container.lines[0].get_xdata(), shown_at(axis, container), strict=True):
            both.setdefault(float(x), []).append(at)
    apart = [places[0] - places[1] for places in both.values() if len(places) == 2]
    assert apart == pytest.approx([6.0] * len(apart))
    assert len(apart) == 1  # at a weight of 1


def test_one_curve_stands_at_its_values(drawn):
    artefact = drawn(LambdaSensitivity())
    axis = artefact.figure.axes[0]
    with figure_style():
        artefact.figure.draw_without_rendering()
    container = next(c for c in axis.containers if len(c.lines[0].get_xdata()) == 4)
    expected = axis.transData.transform([(x, 0) for x in container.lines[0].get_xdata()])[:, 0]
    dpi = artefact.figure.dpi
    assert shown_at(axis, container) == pytest.approx([72 * x / dpi for x in expected])


def test_zero_is_cut_off_from_a_logarithmic_axis(drawn):
    artefact = drawn(LambdaSensitivity())
    (cut,) = (text for text in artefact.figure.axes[0].texts if text.get_text() == "//")
    assert 0 < cut.get_position()[0] < 0.3
    assert "left of any //" in words(artefact)
    artefact = drawn(SigmaSensitivity())
    assert not artefact.figure.axes[0].texts
    assert "//" not in words(artefact)


@cases
def test_below_are_the_paired_differences_to_cross_entropy(report, loss, values, run, drawn):
    compared = run.comparisons.query("metric == 'exact_match' and against_loss == 'ce'")
    compared = compared.set_index("loss")[["difference", "low", "high"]]
    above, below = drawn(report).figure.axes
    colour = loss_styles([loss])[loss].colour
    (container,) = (c for c in below.containers if c.lines[0].get_color() == colour)
    (bars,) = container.lines[2]
    x, y = container.lines[0].get_data()
    ends = [segment[:, 1] for segment in bars.get_segments()]
    by_value = {values[name]: compared.loc[name] for name in values}
    for value, middle, (low, high) in zip(x, y, ends, strict=True):
        assert (middle, low, high) == pytest.approx(tuple(by_value[value]))
    assert len(x) == len(values)
    assert below.get_xlim() == above.get_xlim()
    data = drawn(report).data.set_index("loss")
    assert data.loc[loss, "difference_low"] == compared.loc[loss, "low"]
    assert "Below: the paired difference to CE" in words(drawn(report))


def test_over_seeds_the_interval_of_a_difference_is_that_of_the_tables(tmp_path):
    run = quick_run(tmp_path, losses=("ce", *WEIGHT), seeds=(0, 1, 2))
    _, below = built(LambdaSensitivity(), run).figure.axes
    gain = gains(seed_gains(run)).set_index("loss").loc["smmd"]
    (container,) = below.containers
    at = list(container.lines[0].get_xdata()).index(3)
    ends = container.lines[2][0].get_segments()[at][:, 1]
    assert ends == pytest.approx((gain["low"], gain["high"]))


def test_without_cross_entropy_there_are_no_differences(tmp_path):
    artefact = built(LambdaSensitivity(), quick_run(tmp_path, losses=tuple(WEIGHT)))
    assert len(artefact.figure.axes) == 1
    assert "paired difference" not in words(artefact)


def test_smmd_stands_as_a_band_beside_ntl_where_its_weight_was_not_varied(tmp_path):
    artefact = built(NtlLambdaScan(), quick_run(tmp_path, losses=("ce", "smmd", *NTL)))
    assert len(artefact.figure.axes[0].patches) == 2
    assert "smmd" in set(artefact.data["loss"])


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ((0.5, 1, 2, 4, 8), "log"), ((0, 0.1, 1, 10), "log"), ((0.5, 1, 1.5, 2, 3, 5), "log"),
        ((1, 2, 3, 4, 5), "linear"), ((0, 1, 2, 3), "linear"), ((1, 2), "linear"),
    ],
)  # fmt: skip
def test_the_axis_is_the_one_in_which_the_steps_are_more_even(values, scale):
    assert scale_of(values) == scale


def test_every_value_has_a_tick(drawn):
    above, below = drawn(LambdaSensitivity()).figure.axes
    assert above.get_xscale() == below.get_xscale() == "symlog"
    ticks = [label.get_text() for label in below.get_xticklabels()]
    assert ticks == ["0", "0.3", "1", "3", "10"]


def test_several_seeds_give_mean_and_deviation(tmp_path):
    run = quick_run(tmp_path, losses=("ce", *SIGMA), seeds=(0, 1))
    artefact = built(SigmaSensitivity(), run)
    curve = next(line for line in artefact.figure.axes[0].lines if line.get_label() == "SMMD")
    metrics = run.metrics.query("metric == 'exact_match'")
    means = [metrics.loc[metrics["loss"] == loss, "value"].mean() for loss in SIGMA]
    assert list(curve.get_ydata()) == pytest.approx(means)
    assert "mean ± standard deviation over training seeds" in words(artefact)
    assert "seeds 0, 1" in words(artefact)


def test_each_model_and_task_has_a_panel(tmp_path):
    run = quick_run(
        tmp_path, models=("builtin/tiny", "Qwen/Qwen2.5-0.5B"), losses=("ce", *SIGMA), base=False,
        tasks=("arithmetic[level=easy,operations=1..2]", "gsm8k"),
    )  # fmt: skip
    figure = built(SigmaSensitivity(), run).figure
    assert [axis.get_title() for axis in figure.axes if axis.get_title()] == [
        "builtin/tiny\narithmetic [level=easy,\noperations=1..2]", "builtin/tiny\ngsm8k",
        "Qwen2.5-0.5B\narithmetic [level=easy,\noperations=1..2]", "Qwen2.5-0.5B\ngsm8k",
    ]  # fmt: skip


def test_a_value_without_a_result_is_a_cross_and_is_named(run, tmp_path):
    lost = without(run, tmp_path, failure=NO_MEMORY, loss="smmd[sigma=1]")
    artefact = built(SigmaSensitivity(), lost)
    (cross,) = (x for x in artefact.figure.axes[0].lines if x.get_label() == "no result")
    assert list(cross.get_xdata()) == [1.0]
    assert artefact.caption.endswith("builtin/tiny smmd[sigma=1] seed 0 (failed in train).")


@cases
def test_fewer_than_three_values_with_results_are_skipped(report, loss, values, run, tmp_path):
    parameter = "sigma" if report.name.startswith("sigma") else "lambda"
    assert report.skip(run) is None
    for lost in [*values][:2]:
        run = without(run, tmp_path, loss=lost)
    said = f"no model and task has 3 values of {parameter} of {loss} with an accuracy"
    assert report.skip(run) == said


def test_nothing_sticks_out_of_the_figure(drawn):
    figure = drawn(NtlLambdaScan()).figure
    with figure_style():
        figure.draw_without_rendering()
    boxes = [text.get_window_extent() for axis in figure.axes
             for text in (axis.title, axis.xaxis.label, axis.yaxis.label)]  # fmt: skip
    boxes += [legend.get_window_extent() for legend in figure.legends]
    assert np.all([box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes])
    assert np.all([box.y0 >= 0 and box.y1 <= figure.bbox.y1 for box in boxes])


@pytest.mark.parametrize("report", [SigmaSensitivity(), LambdaSensitivity(), BandwidthTable()])
def test_where_the_loss_cannot_be_loaded_that_is_the_reason(report, run, monkeypatch):
    def fails(_):
        raise UserError("The loss 'smmd' cannot be used: No module named 'torch'.")

    monkeypatch.setattr("smmd_bench.reports._variants.load_loss", fails)
    assert report.skip(run) == "The loss 'smmd' cannot be used: No module named 'torch'"


@pytest.mark.parametrize("report", [SigmaSensitivity(), LambdaSensitivity(), BandwidthTable()])
def test_a_run_that_varies_nothing_imports_no_loss(report, run_folder, monkeypatch):
    monkeypatch.setattr("smmd_bench.reports._variants.load_loss", None)
    assert str(report.skip(read_run(run_folder))).startswith("the run ")
