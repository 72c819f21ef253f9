import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports._panels import plain_first
from smmd_bench.reports.arithmetic_operations import ArithmeticOperations, accuracy_by_operations
from smmd_bench.reports.auxiliary_magnitude import AuxiliaryMagnitude
from smmd_bench.reports.calibration import Calibration
from smmd_bench.reports.dataset_samples import DatasetSamples
from smmd_bench.reports.digit_distribution import DigitDistribution
from smmd_bench.reports.training_curves import POINTS, TrainingCurves

import smmd_bench as sb
from smmd_bench.plugin_system import registry
from smmd_bench.results.frames import RunFrames
from tests.reports.golden import assert_golden
from tests.runs import rewrite, write_run


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
        rewrite(file, pd.read_parquet(file).drop(columns="operations"))
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
    rewrite(file, longer.assign(step=np.arange(1, len(longer) + 1)))
    data = TrainingCurves().build(sb.read_run(folder)).data
    steps = data[data["address"] == file.parent.name]["step"]
    assert (len(steps), steps.min(), steps.max()) == (POINTS, 1, len(longer))


def test_a_run_without_logs_has_no_curves(run_folder, tmp_path):
    folder = without(run_folder, tmp_path, "train_log.parquet")
    assert TrainingCurves().skip(sb.read_run(folder)) == "no cell has a training log"


def with_variants_of_one_seed(folder: Path) -> RunFrames:
    losses = ("ce", "smmd", *(f"smmd[lambda={at}]" for at in range(4, 29)))
    write_run(folder, losses=losses, n=12, steps=5, resamples=5)
    for cell in sb.read_run(folder).cells.itertuples():
        if "[" in cell.loss and cell.seed:
            shutil.rmtree(folder / "cells" / cell.address)
    return sb.read_run(folder)


def test_variants_with_fewer_seeds_do_not_flood_figures_and_tables(tmp_path):
    run = with_variants_of_one_seed(tmp_path)
    reports = (DigitDistribution(), TrainingCurves(), Calibration(), AuxiliaryMagnitude(),
               DatasetSamples())  # fmt: skip
    for report in reports:
        artefact = report.build(run)
        assert set(artefact.data["loss"]) <= {"base", "ce", "smmd"}, report.name
        assert "sweeps: 25 variants" in artefact.caption
        assert artefact.table is None or len(artefact.table) <= 4


def test_where_not_all_losses_fit_plain_ones_go_before_variants():
    losses = ["ce", "ntl[lambda=1]", "ntl", "smmd[sigma=1]", "smmd"]
    assert plain_first(losses, 4) == ["ce", "ntl[lambda=1]", "ntl", "smmd"]
    assert plain_first(losses, 2) == ["ce", "ntl"]


@pytest.mark.parametrize("name", registry.names("reports"))
def test_a_report_needs_no_torch(name):
    code = (
        "import sys; from smmd_bench.plugin_system import registry; "
        f"registry.load('reports', '{name}'); print('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"
