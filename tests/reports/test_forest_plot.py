import numpy as np
import pandas as pd
import pytest
from scipy import stats
from smmd_bench.reports._gains import gains, seed_gains
from smmd_bench.reports._verdicts import judged_metrics
from smmd_bench.reports.forest_plot import ForestPlot, window

from smmd_bench.plugin_system import registry
from smmd_bench.scoring.gain import OVER_EXAMPLES, OVER_SEEDS
from tests.changed_runs import NO_MEMORY, changed, with_manifest, without
from tests.reports.golden import words
from tests.runs import planted_run, quick_run

ANSWERS = [str(at) for at in range(20)]
HALF = [*ANSWERS[:10], *["77"] * 10]
FALLING = '''
from dataclasses import dataclass
from smmd_bench.contracts import MeanAbsoluteError
from smmd_bench.tasks.arithmetic import Arithmetic

@dataclass(frozen=True)
class Falling(Arithmetic):
    """Arithmetic, judged by how far answers are off."""

    name = "falling"

    def metrics(self):
        return (MeanAbsoluteError(),)
'''


@pytest.fixture(scope="module")
def three_seeds(tmp_path_factory):
    return quick_run(tmp_path_factory.mktemp("three"), seeds=(0, 1, 2), n=80)


@pytest.fixture(scope="module")
def one_seed(tmp_path_factory):
    losses = ("ce", "ntl", "smmd", "smmd[term=mmd]")
    return quick_run(tmp_path_factory.mktemp("one"), losses=losses, n=80)


@pytest.fixture
def falling(monkeypatch, tmp_path):
    """A task whose first metric is better when lower, known for one test only."""
    monkeypatch.setattr(registry, "_from_files", {g: {} for g in registry.GROUPS})
    monkeypatch.setattr(registry, "_files", [])
    file = tmp_path / "falling.py"
    file.write_text(FALLING, encoding="utf-8")
    registry.load_plugin_file(file)
    yield "falling"
    registry.load_task.cache_clear()


def accuracy(run, loss, seed):
    rows = run.completions
    return 100 * rows[(rows["loss"] == loss) & (rows["seed"] == seed)]["exact"].mean()


def texts(axis):
    return [text.get_text() for text in axis.texts]


def test_over_seeds_the_interval_is_that_of_seeds_and_examples(three_seeds):
    row = gains(seed_gains(three_seeds)).set_index("loss").loc["smmd"]
    each = [accuracy(three_seeds, "smmd", s) - accuracy(three_seeds, "ce", s) for s in range(3)]
    assert row["difference"] == pytest.approx(np.mean(each))
    margin = stats.t.ppf(0.975, row["df"]) * row["error"]
    assert (row["high"] - row["low"]) / 2 == pytest.approx(margin)
    assert row["error"] >= np.std(each, ddof=1) / np.sqrt(3)
    assert (row["interval"], row["seeds"], row["n"]) == (OVER_SEEDS, 3, 80)


def test_of_one_seed_it_is_the_paired_bootstrap_of_the_run(one_seed):
    found = gains(seed_gains(one_seed)).set_index("loss")
    known = one_seed.comparisons
    known = known[(known["metric"] == "exact_match") & (known["against_loss"] == "ce")]
    assert list(found.index) == ["ntl", "smmd", "smmd[term=mmd]"] == list(known["loss"])
    for name in ("difference", "low", "high"):
        assert found[name].tolist() == known[name].tolist()
    assert set(found["interval"]) == {OVER_EXAMPLES}


def test_seeds_that_agree_say_what_the_examples_say(tmp_path):
    run = planted_run(tmp_path, ANSWERS, {"ce": HALF, "smmd": ANSWERS}, seeds=(0, 1))
    row = gains(seed_gains(run)).iloc[0]
    assert (row["difference"], row["seeds"]) == (50, 2)
    assert row["interval"] == OVER_SEEDS  # the examples differ, the seeds do not
    artefact = ForestPlot().build(run)
    assert artefact.table["Δ to CE"].iloc[0].startswith("+50.0 [")
    artefact.figure.savefig(tmp_path / "figure.png")


def test_losses_stand_in_the_order_of_the_run_and_have_no_hue_alone(one_seed):
    axis, _ = ForestPlot().build(one_seed).figure.axes
    labels = [label.get_text() for label in axis.get_yticklabels()]
    assert labels == ["NTL", "SMMD", "SMMD[term=mmd]"]
    assert axis.yaxis_inverted()
    markers = [line.get_marker() for line in axis.lines if line.get_marker() not in ("None", "|")]
    assert len(set(markers)) == 3


def test_each_seed_is_drawn_faintly_and_is_a_row_of_the_data(three_seeds):
    artefact = ForestPlot().build(three_seeds)
    axis, _ = artefact.figure.axes
    faint = [line for line in axis.lines if line.get_alpha() is not None]
    seeds = seed_gains(three_seeds)
    differences = seeds[seeds["loss"] != "ce"].groupby("loss", observed=True)["difference"]
    assert [list(line.get_xdata()) for line in faint] == [list(d) for _, d in differences]
    seeds = seed_gains(three_seeds, judged_metrics)
    pd.testing.assert_frame_equal(artefact.data, seeds.drop(columns="jackknife"))


def test_two_seeds_do_not_stretch_the_axis_and_an_arrow_says_so(tmp_path):
    losses = {"ce": HALF, "smmd": {0: [*ANSWERS[:14], *["77"] * 6], 1: HALF}}
    run = planted_run(tmp_path, ANSWERS, losses, seeds=(0, 1))
    seeds = seed_gains(run)
    row = gains(seeds).iloc[0]
    low, high = window(seeds, gains(seeds))
    assert row["low"] < low < -50 < 60 < high < row["high"]
    axis, *_ = ForestPlot().build(run).figure.axes
    assert [line.get_marker() for line in axis.lines if line.get_marker() in "<>"] == ["<", ">"]


def test_where_lower_is_better_the_axis_is_reversed(tmp_path, falling):
    off = [str(at + 4) for at in range(20)]
    path = tmp_path / "run"
    run = planted_run(path, ANSWERS, {"ce": off, "smmd": ANSWERS})
    task = {"task": falling, "task_name": falling}
    artefact = ForestPlot().build(changed(run, path, "cell.json", lambda cell: {**cell, **task}))
    assert artefact.table["Δ to CE"].iloc[0].startswith("−4.00")
    (axis,) = artefact.figure.axes
    assert axis.xaxis_inverted()
    assert axis.get_xlabel() == "Δ MAE to CE, reversed axis: right is better →"
    assert "Where lower is better the axis is reversed." in words(artefact)


def test_what_is_missing_is_named_in_place(tmp_path):
    quick_run(tmp_path, base=False)
    run = quick_run(tmp_path, models=("m/other",), losses=("ce", "ntl"), base=False)
    run = without(run, tmp_path, failure=NO_MEMORY, model="builtin/tiny", loss="ntl")
    artefact = ForestPlot().build(run)
    first, second, *_ = artefact.figure.axes
    assert (texts(first), texts(second)) == (["failed in train"], ["not run"])
    table = artefact.table.query("Metric == 'Acc (%)'").set_index(["Model", "Loss"])["Δ to CE"]
    assert table["builtin/tiny", "NTL"] == "failed in train"
    assert table["other", "SMMD"] == "not run"


def test_tasks_that_do_not_fit_are_named(tmp_path):
    losses = ["ce", *(f"ntl[lambda={at}]" for at in range(3, 33))]
    tasks = ("arithmetic[operations=1..2]", "gsm8k")
    artefact = ForestPlot().build(quick_run(tmp_path, tasks=tasks, losses=losses, n=5, resamples=5))
    assert len(artefact.figure.axes) == 1
    left = "MAE of arithmetic[operations=1..2], Acc (%) of gsm8k, MAE of gsm8k"
    assert f"Not drawn for lack of room: {left}." in words(artefact)
    assert len(artefact.table) == 120


def test_completions_made_elsewhere_are_compared_with_the_first_label(tmp_path):
    names = {"ce": "old", "smmd": "new"}

    def relabelled(content):
        keys = {"loss", "against_loss"} & {*content}
        return {**content, **{key: names[content[key]] for key in keys}}

    run = planted_run(tmp_path, ANSWERS, {"ce": HALF, "smmd": ANSWERS})
    run = changed(run, tmp_path, "cell.json", lambda cell: {**relabelled(cell), "reference": "old"})
    run = changed(run, tmp_path, "comparison.json", relabelled, loss="new")
    run = with_manifest(run, tmp_path, predictions={"labels": ["old", "new"]})
    table = ForestPlot().build(run).table
    assert table["Loss"].tolist() == ["new", "new"]
    assert table["Δ to old"].iloc[0].startswith("+50.0 [")
