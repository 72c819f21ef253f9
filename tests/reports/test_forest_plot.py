import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from smmd_bench.reports._gains import OVER_EXAMPLES, OVER_SEEDS, gains, seed_gains
from smmd_bench.reports.forest_plot import ForestPlot, window

import smmd_bench as sb
from smmd_bench.plugin_system import registry
from smmd_bench.storage.files import read_json, write_json
from tests.publishing.published import publish
from tests.runs import Planted, write_failure, write_run

TASK = "arithmetic[operations=1..2]"
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
    folder = tmp_path_factory.mktemp("runs") / "three"
    write_run(folder, seeds=(0, 1, 2), n=80, steps=10, resamples=50)
    return sb.read_run(folder)


@pytest.fixture(scope="module")
def one_seed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "one"
    losses = ("ce", "ntl", "smmd", "smmd[term=mmd]")
    write_run(folder, losses=losses, seeds=(0,), n=80, steps=10, resamples=50)
    return sb.read_run(folder)


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


def test_over_seeds_the_interval_is_students_t_of_their_differences(three_seeds):
    row = gains(seed_gains(three_seeds)).set_index("loss").loc["smmd"]
    each = [accuracy(three_seeds, "smmd", s) - accuracy(three_seeds, "ce", s) for s in range(3)]
    margin = stats.t.ppf(0.975, 2) * np.std(each, ddof=1) / np.sqrt(3)
    assert row["difference"] == pytest.approx(np.mean(each))
    assert (row["low"], row["high"]) == pytest.approx((row["difference"] - margin,
                                                       row["difference"] + margin))  # fmt: skip
    assert (row["interval"], row["seeds"], row["n"]) == (OVER_SEEDS, 3, 80)


def test_of_one_seed_it_is_the_paired_bootstrap_of_the_run(one_seed):
    found = gains(seed_gains(one_seed)).set_index("loss")
    known = one_seed.comparisons
    known = known[(known["metric"] == "exact_match") & (known["against_loss"] == "ce")]
    assert list(found.index) == ["ntl", "smmd", "smmd[term=mmd]"] == list(known["loss"])
    for name in ("difference", "low", "high"):
        assert found[name].tolist() == known[name].tolist()
    assert set(found["interval"]) == {OVER_EXAMPLES}


def test_seeds_that_agree_give_no_interval(tmp_path):
    answers = [str(at) for at in range(20)]
    half = [*answers[:10], *["77"] * 10]
    planted = Planted(answers, {"ce": half, "smmd": answers})
    write_run(tmp_path, tasks=("gsm8k",), planted=planted, resamples=20)
    run = sb.read_run(tmp_path)
    row = gains(seed_gains(run)).iloc[0]
    assert (row["difference"], row["seeds"]) == (50, 2)
    assert np.isnan(row["low"])
    assert np.isnan(row["high"])
    artefact = ForestPlot().build(run)
    assert artefact.table["Δ to CE"].tolist() == ["+50.00"]
    artefact.figure.savefig(tmp_path / "figure.png")


def test_losses_stand_in_the_order_of_the_run_and_have_no_hue_alone(one_seed):
    (axis,) = ForestPlot().build(one_seed).figure.axes
    labels = [label.get_text() for label in axis.get_yticklabels()]
    assert labels == ["NTL", "SMMD", "SMMD[term=mmd]"]
    assert axis.yaxis_inverted()
    markers = [line.get_marker() for line in axis.lines if line.get_marker() not in ("None", "|")]
    assert len(set(markers)) == 3


def test_each_seed_is_drawn_faintly(three_seeds):
    (axis,) = ForestPlot().build(three_seeds).figure.axes
    faint = [line for line in axis.lines if line.get_alpha() is not None]
    differences = seed_gains(three_seeds).groupby("loss", observed=True)["difference"]
    assert [list(line.get_xdata()) for line in faint] == [list(d) for _, d in differences]


def test_two_seeds_do_not_stretch_the_axis_and_an_arrow_says_so(tmp_path):
    answers = [str(at) for at in range(20)]
    ce = [*answers[:10], *["77"] * 10]
    predictions = {"ce": ce, "smmd": {0: [*answers[:14], *["77"] * 6], 1: ce}}
    write_run(tmp_path, tasks=("gsm8k",), planted=Planted(answers, predictions), resamples=20)
    run = sb.read_run(tmp_path)
    seeds = seed_gains(run)
    row = gains(seeds).iloc[0]
    low, high = window(seeds, gains(seeds))
    assert row["low"] < low < -50 < 60 < high < row["high"]
    (axis,) = ForestPlot().build(run).figure.axes
    assert [line.get_marker() for line in axis.lines if line.get_marker() in "<>"] == ["<", ">"]


def test_where_lower_is_better_the_axis_is_reversed(tmp_path, falling):
    answers = [str(at) for at in range(20)]
    off = [str(at + 4) for at in range(20)]
    planted = Planted(answers, {"ce": off, "smmd": answers})
    run = tmp_path / "run"
    write_run(run, tasks=("gsm8k",), planted=planted, seeds=(0,), resamples=20)
    for file in run.glob("cells/*/cell.json"):
        write_json(file, {**read_json(file), "task": falling, "task_name": falling})
    artefact = ForestPlot().build(sb.read_run(run))
    assert artefact.table["Δ to CE"].iloc[0].startswith("−4.00")
    (axis,) = artefact.figure.axes
    assert axis.xaxis_inverted()
    assert axis.get_xlabel() == "Δ MAE to CE, reversed axis: right is better →"
    assert "Where lower is better the axis is reversed." in artefact.caption


def test_what_is_missing_is_named_in_place(tmp_path):
    models = ("builtin/tiny", "m/other")
    write_run(tmp_path, models=models, seeds=(0,), n=20, steps=5, resamples=20, base=False)
    for folder in sorted((tmp_path / "cells").iterdir()):
        cell = read_json(folder / "cell.json")
        if (cell["model"], cell["loss"]) == ("builtin/tiny", "ntl"):
            (folder / "metrics.json").unlink()
            write_failure(folder, {"stage": "train", "error": "no memory"})
        if (cell["model"], cell["loss"]) == ("m/other", "smmd"):
            shutil.rmtree(folder)
    artefact = ForestPlot().build(sb.read_run(tmp_path))
    first, second = artefact.figure.axes
    assert (texts(first), texts(second)) == (["failed in train"], ["not run"])
    table = artefact.table.set_index(["Model", "Loss"])["Δ to CE"]
    assert table["builtin/tiny", "NTL"] == "failed in train"
    assert table["other", "SMMD"] == "not run"
    assert "Without a result: builtin/tiny ntl seed 0 (failed in train)." in artefact.caption


def test_tasks_that_do_not_fit_are_named(tmp_path):
    losses = ["ce", *(f"ntl[lambda={at}]" for at in range(3, 33))]
    tasks = (TASK, "gsm8k")
    write_run(tmp_path, tasks=tasks, losses=losses, seeds=(0,), n=5, steps=3, resamples=5)
    artefact = ForestPlot().build(sb.read_run(tmp_path))
    assert len(artefact.figure.axes) == 1
    assert "Not drawn for lack of room: gsm8k." in artefact.caption
    assert len(artefact.table) == 60


def test_a_run_without_anything_to_compare_is_skipped(tmp_path, run_folder):
    write_run(tmp_path, losses=("ce",), seeds=(0,), n=5, steps=3, resamples=5)
    reason = ForestPlot().skip(sb.read_run(tmp_path))
    assert reason == "no loss has results beside those of cross-entropy for the same seed"
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob("cells/*/metrics.json"):
        file.unlink()
    assert ForestPlot().skip(sb.read_run(folder)) == "no cell has results"


def test_completions_made_elsewhere_are_compared_with_the_first_label(tmp_path):
    answers = [str(at) for at in range(20)]
    planted = Planted(answers, {"ce": answers[:10] * 2, "smmd": answers})
    write_run(tmp_path, tasks=("gsm8k",), planted=planted, seeds=(0,), resamples=20)
    names = {"ce": "old", "smmd": "new"}
    for file in tmp_path.glob("cells/*/c*.json"):
        content = read_json(file)
        for key in {"loss", "against_loss"} & {*content}:
            content[key] = names[content[key]]
        if file.name == "cell.json":
            content["reference"] = "old"
        write_json(file, content)
    manifest = read_json(tmp_path / "manifest.json")
    predictions = {"labels": ["old", "new"]}
    write_json(tmp_path / "manifest.json", {**manifest, "predictions": predictions})
    table = ForestPlot().build(sb.read_run(tmp_path)).table
    assert table["Loss"].tolist() == ["NEW"]
    assert table["Δ to OLD"].iloc[0].startswith("+50.00 [")


def test_publishing_again_gives_the_same_bytes(three_seeds, tmp_path):
    def published():
        run = sb.read_run(Path(shutil.copytree(three_seeds.path, tmp_path, dirs_exist_ok=True)))
        files = publish(run, [ForestPlot()])
        return [file.read_bytes() for file in files if file.name != "index.html"]

    assert published() == published()


def test_the_data_are_the_seeds(three_seeds):
    artefact = ForestPlot().build(three_seeds)
    pd.testing.assert_frame_equal(artefact.data, seed_gains(three_seeds))
