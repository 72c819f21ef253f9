import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.arithmetic_operations import ArithmeticOperations, accuracy_by_operations
from smmd_bench.reports.digit_distribution import DigitDistribution, first_digit_distributions
from smmd_bench.reports.digit_probe import DigitProbe
from smmd_bench.reports.training_curves import POINTS, TrainingCurves

import smmd_bench as sb
from smmd_bench import registry
from smmd_bench.errors import UserError
from smmd_bench.results.files import write_parquet
from tests.reports.golden import assert_golden
from tests.runs import write_run

DIGITS = [f"p{digit}" for digit in range(10)]


@pytest.fixture(scope="module")
def run(run_folder):
    return sb.read_run(run_folder)


def without(run_folder: Path, tmp_path: Path, name: str) -> Path:
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob(f"cells/*/{name}"):
        file.unlink()
    return folder


def labels(axis) -> list[str]:
    return axis.get_legend_handles_labels()[1]


def test_accuracy_by_operations_is_that_of_the_completions(run):
    data = accuracy_by_operations(run.completions)
    completions = run.completions[run.completions["loss"] == "smmd"]
    expected = 100 * completions.groupby("operations")["exact"].mean()
    found = data[data["loss"] == "smmd"].set_index("operations")["accuracy"]
    assert found.to_dict() == pytest.approx(expected.to_dict())


def test_a_second_seed_of_the_same_examples_does_not_narrow_an_interval():
    one = pd.DataFrame(
        {"model": "m", "task": "t", "loss": "ce", "operations": 1, "seed": 0,
         "exact": [True, False] * 20}
    )  # fmt: skip
    two = pd.concat([one, one.assign(seed=1)])
    (a,), (b,) = (accuracy_by_operations(f).to_dict("records") for f in (one, two))
    assert (a["low"], a["high"], a["n"]) == (b["low"], b["high"], b["n"])
    assert b["seeds"] == 2


def test_the_table_of_accuracy_by_operations(run):
    assert_golden("arithmetic_operations", ArithmeticOperations().build(run))


def test_accuracy_by_operations_has_a_line_a_loss(run):
    (axis,) = ArithmeticOperations().build(run).figure.axes
    assert labels(axis) == ["untuned", "CE", "NTL", "SMMD"]


def test_examples_that_do_not_count_operations_are_skipped(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob("cells/*/scores.parquet"):
        write_parquet(file, pd.read_parquet(file).drop(columns="operations"))
    reason = ArithmeticOperations().skip(sb.read_run(folder))
    assert reason == "the examples do not count operations"


def test_curves_keep_the_raw_value_beside_the_smoothed_one(run):
    data = TrainingCurves().build(run).data
    log = run.train_log.set_index(["address", "step"])["cross_entropy"]
    kept = data.set_index(["address", "step"])["cross_entropy"]
    pd.testing.assert_series_equal(kept, log.loc[kept.index], check_index=False)
    rough, smooth = (
        data.groupby("address")[c].agg(lambda v: v.diff().abs().mean())
        for c in ("cross_entropy", "cross_entropy_smoothed")
    )
    assert (smooth < rough / 3).all()


def test_a_loss_without_auxiliary_has_no_auxiliary_curve(run):
    ce, auxiliary, validation = TrainingCurves().build(run).figure.axes
    assert set(labels(ce)) == {"CE", "NTL", "SMMD"} == set(labels(validation))
    assert set(labels(auxiliary)) == {"NTL", "SMMD"}


def test_the_base_has_no_training_curve(run):
    assert "base" not in set(TrainingCurves().build(run).data["loss"])


def test_long_logs_are_thinned_after_smoothing(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    file = next(folder.glob("cells/*/train_log.parquet"))
    log = pd.read_parquet(file)
    longer = pd.concat([log] * 100, ignore_index=True)
    write_parquet(file, longer.assign(step=np.arange(1, len(longer) + 1)))
    data = TrainingCurves().build(sb.read_run(folder)).data
    steps = data[data["address"] == file.parent.name]["step"]
    assert (len(steps), steps.min(), steps.max()) == (POINTS, 1, len(longer))


def test_a_run_without_logs_has_no_curves(run_folder, tmp_path):
    folder = without(run_folder, tmp_path, "train_log.parquet")
    assert TrainingCurves().skip(sb.read_run(folder)) == "no cell has a training log"


def test_digit_distributions_are_means_over_the_first_digit(run):
    data = first_digit_distributions(run)
    probes = run.probes
    first = probes[
        (probes["digit"] == 0) & (probes["target_value"] == 5) & (probes["loss"] == "ce")
    ]
    (row,) = data[(data["digit"] == 5) & (data["loss"] == "ce")].to_dict("records")
    assert [row[name] for name in DIGITS] == pytest.approx(first[DIGITS].mean().tolist())
    assert row["p5_deviation"] == pytest.approx(first["p5"].std(ddof=0))
    assert (row["n"], row["seeds"]) == (len(first) // 2, 2)
    assert data[DIGITS].sum(axis=1).to_numpy() == pytest.approx(1)


def test_a_token_of_several_digits_counts_by_its_first(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob("cells/*/probes.parquet"):
        probes = pd.read_parquet(file)
        probes["target_value"] = np.where(probes["target_value"] == 7, 731.0, 0.0)
        write_parquet(file, probes)
    assert set(first_digit_distributions(sb.read_run(folder))["digit"]) == {7}


def test_a_model_with_tokens_of_several_digits_has_its_reduction_stated(run_folder, tmp_path):
    assert "hold several digits" not in DigitDistribution().build(sb.read_run(run_folder)).caption
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob("cells/*/probes.parquet"):
        probes = pd.read_parquet(file)
        probes["vector"] = pd.Series([[0.001] * 1000, *[None] * (len(probes) - 1)], dtype=object)
        write_parquet(file, probes)
    caption = DigitDistribution().build(sb.read_run(folder)).caption
    assert "Numeric tokens of builtin/tiny (N = 1,000) hold several digits and are" in caption


def test_of_clocks_the_caption_says_which_hours_begin_with_1(run, tmp_path):
    assert "o'clock" not in DigitDistribution().build(run).caption
    write_run(tmp_path, tasks=("clock_time",), losses=("ce",), seeds=(0,), n=40, resamples=20)
    caption = DigitDistribution().build(sb.read_run(tmp_path)).caption
    assert "10, 11 and 12 o'clock begin with 1." in caption


def test_figure_2_is_the_row_of_clocks_whose_hour_begins_with_5(run, tmp_path):
    assert DigitProbe().skip(run) == "the run has no clock_time cell"
    tasks = ("clock_time", "arithmetic")
    write_run(tmp_path, tasks=tasks, losses=("ce", "smmd"), seeds=(0,), n=80, resamples=20)
    clocks = sb.read_run(tmp_path)
    assert DigitProbe().skip(clocks) is None
    artefact = DigitProbe().build(clocks)
    assert set(artefact.data["task"]) == {"clock_time"}
    assert set(artefact.data["digit"]) == {5}
    every = DigitDistribution().build(clocks).data
    same = every[(every["task"] == "clock_time") & (every["digit"] == 5)]
    assert artefact.data["p5"].tolist() == same["p5"].tolist()


def test_every_true_digit_has_a_row_and_every_loss_a_column(run):
    figure = DigitDistribution().build(run).figure
    assert len(figure.axes) == 9 * 4
    assert [axis.get_title() for axis in figure.axes[:4]] == ["untuned", "CE", "NTL", "SMMD"]


def test_the_bar_of_the_true_digit_is_hatched(run):
    for axis in DigitDistribution(digit=5).build(run).figure.axes:
        assert [bool(bar.get_hatch()) for bar in axis.patches] == [d == 5 for d in range(10)]


def test_the_table_of_digit_distributions_is_the_height_of_those_bars(run):
    artefact = DigitDistribution(digit=5).build(run)
    heights = [f"{axis.patches[5].get_height():.3f}" for axis in artefact.figure.axes]
    assert artefact.table.iloc[0, 2:].tolist() == heights


def test_a_digit_out_of_range_is_a_users_error():
    with pytest.raises(UserError, match="digit must be a digit from 1 to 9"):
        registry.load("reports", "digit_distribution[digit=12]")


def test_a_run_without_probes_has_no_digit_distribution(run_folder, tmp_path):
    folder = without(run_folder, tmp_path, "probes.parquet")
    assert DigitDistribution().skip(sb.read_run(folder)) == "no cell has digit probes"


@pytest.mark.parametrize("name", registry.names("reports"))
def test_a_report_needs_no_torch(name):
    code = (
        "import sys; from smmd_bench import registry; "
        f"registry.load('reports', '{name}'); print('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"
