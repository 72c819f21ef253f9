"""What holds of all reports: when they are skipped, what captions name, and the same bytes."""

import subprocess
import sys

import pytest

from smmd_bench.plugin_system import registry
from smmd_bench.publishing.make_report import make_report
from smmd_bench.publishing.style import figure_style
from smmd_bench.results.frames import read_run
from tests.changed_runs import NO_MEMORY, with_manifest, without
from tests.runs import quick_run

STATES = {
    "as it is": lambda runs, _: runs("default"),
    "without results": lambda runs, folder: without(runs("default"), folder),
    "without logs": lambda runs, folder: without(runs("default"), folder, "train_log.parquet"),
    "of CE alone": lambda _, folder: quick_run(folder, losses=("ce",)),
    "of summaries": lambda _, folder: quick_run(folder, tasks=("samsum",), losses=("ce", "smmd")),
    "without cells": lambda runs, folder: with_manifest(runs("default"), folder, cells=[]),
}
NO_NUMBERS = "no task has numbers as answers"
NOTHING_LOGGED = "no cell has a training log"
NO_PAIR = "no model and task has numbers of two trained losses on a common seed"
ALONE = "no loss has results beside those of cross-entropy for the same seed"
SKIPPED = {
    "as it is": {
        "bandwidth_table": "the run varies no bandwidth of smmd",
        "chart_table": "the run has no cell of chartqa",
        "clock_table": "the run has no cell of clock_time",
        "dataset_sizes": "the run's manifest does not say how many examples it has",
        "digit_probe": "the run has no clock_time cell",
        "kernel_table": "the run varies no kernel of smmd",
        "lambda_sensitivity": "the run has fewer than 3 values of lambda of smmd",
        "math_table": "the run has no cell of gsm8k or svamp",
        "mmlu_table": "`smmd-bench regress RUN --suite mmlu` was not run",
        "ntl_lambda_scan": "the run has fewer than 3 values of lambda of ntl",
        "overhead_table": "the run is none of `smmd-bench overhead`",
        "regression_table": "`smmd-bench regress RUN --suite TASK` was not run",
        "samsum_table": "the run has no cell of samsum",
        "sigma_sensitivity": "the run has fewer than 3 values of sigma of smmd",
        "task_table": "every task of the run has a table of its own",
        "terms_table": "the run varies no terms of smmd",
    },
    "without results": {
        "calibration": "no cell has digit probes",
        "dataset_samples": "no cell has results yet",
        "digit_distribution": "no cell has digit probes",
        "error_histogram": "no cell has results",
        "overview": "no cell has results",
        "scale_errors": "no cell has results",
        "signed_errors": "no cell has results",
    },
    "without logs": {
        "training_curves": NOTHING_LOGGED,
    },
    "of CE alone": {
        "error_histogram": NO_PAIR,
        "overview": ALONE,
        "signed_errors": NO_PAIR,
    },
    "of summaries": {
        "arithmetic_table": "the run has no cell of arithmetic",
        "calibration": "no task with probes has numbers as answers",
        "digit_distribution": NO_NUMBERS,
        "error_histogram": NO_NUMBERS,
        "scale_errors": NO_NUMBERS,
        "signed_errors": NO_NUMBERS,
    },
    "without cells": {"loss_shapes": "no cell trains with a loss"},
}
SAMPLED = (
    "arithmetic_table", "calibration", "digit_distribution", "error_histogram", "overview",
    "scale_errors", "signed_errors", "training_curves",
)  # fmt: skip
FIGURES = ("dataset_samples", "digit_probe", "error_histogram", "loss_shapes", "sigma_sensitivity")
MANY = ("ce", "smmd", *(f"smmd[lambda={at}]" for at in range(4, 12)))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A run that most figures are of, and one that changes sigma and both lambdas."""
    values = ("smmd[sigma={}]", "smmd[lambda={}]", "ntl[lambda={}]")
    swept = ("ce", "ntl", "smmd", *(value.format(at) for value in values for at in (1, 8)))
    losses = (("ce", "ntl", "smmd"), swept)
    return [quick_run(tmp_path_factory.mktemp("small"), losses=those) for those in losses]


@pytest.fixture(scope="module")
def without_ntl(tmp_path_factory):
    """A run of two seeds whose NTL failed."""
    run = quick_run(tmp_path_factory.mktemp("whole"), n=30, seeds=(0, 1))
    return without(run, tmp_path_factory.mktemp("part"), failure=NO_MEMORY, loss="ntl")


def build(name, run):
    with figure_style():
        return registry.load("reports", name).build(run)


@pytest.mark.parametrize("state", SKIPPED)
def test_reports_are_skipped_with_the_reason(state, runs, tmp_path):
    run = STATES[state](runs, tmp_path)
    reasons = {name: registry.load("reports", name).skip(run) for name in SKIPPED[state]}
    assert reasons == SKIPPED[state]


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_run_gives_the_same_bytes(name, runs, small):
    """As `validate` has it for tables, captions and data; and here for the picture."""
    report = registry.load("reports", name)
    run = next(run for run in (*small, runs("samples")) if report.skip(run) is None)
    made = []
    for _ in range(2):
        section = make_report(read_run(run.path), report, ("csv", "pdf"))
        assert section.files, section.error
        made.append([(path.name, path.read_bytes()) for path in section.files])
    assert made[0] == made[1]


@pytest.mark.parametrize("name", SAMPLED)
def test_captions_name_n_seeds_and_a_loss_that_failed(name, without_ntl):
    artefact = build(name, without_ntl)
    assert "n = 30 test examples; seeds 0, 1." in artefact.caption
    assert artefact.caption.endswith(" Without a result: NTL (failed in train).")
    if artefact.table is not None:
        shown = artefact.table.to_csv()
        assert ("NTL" in shown) == ("failed in train" in shown)
        assert "SMMD" in shown


def test_variants_with_fewer_seeds_do_not_flood_figures_and_tables(tmp_path):
    quick_run(tmp_path, losses=("ce", "smmd"), seeds=(0, 1), n=12)
    variants = [f"smmd[lambda={at}]" for at in range(4, 29)]
    run = quick_run(tmp_path, losses=variants, n=12, resamples=5, base=False)
    for name in ("calibration", "dataset_samples",
                 "digit_distribution[digit=5]", "training_curves"):  # fmt: skip
        artefact = build(name, run)
        assert set(artefact.data["loss"]) <= {"base", "ce", "smmd"}, name
        assert artefact.table is None or len(artefact.table) <= 4


def test_no_report_needs_torch():
    code = (
        "import sys; from smmd_bench.plugin_system import registry\n"
        "for name in registry.names('reports'):\n"
        "    registry.load('reports', name)\n"
        "    assert 'torch' not in sys.modules, name"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
