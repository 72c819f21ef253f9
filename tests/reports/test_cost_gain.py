import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.cost_gain import WARM_UP, CostGain, step_costs

import smmd_bench as sb
from smmd_bench.storage.files import read_json, write_json
from tests.publishing.published import publish
from tests.runs import rewrite, write_failure, write_run

STEPS = 240


@pytest.fixture(scope="module")
def timed(run_folder, tmp_path_factory):
    """The synthetic run with step times that a machine with other work would give."""
    folder = Path(shutil.copytree(run_folder, tmp_path_factory.mktemp("runs") / "timed"))
    for at, file in enumerate(sorted(folder.glob("cells/*/train_log.parquet"))):
        loss = read_json(file.parent / "cell.json")["loss"]
        rng = np.random.default_rng(at)
        cost = {"ntl": 1.1, "smmd": 1.5}.get(loss, 1)
        seconds = 0.2 * cost * rng.normal(1, 0.05, STEPS)
        seconds[:3] = 9  # warming up
        rewrite(file, pd.read_parquet(file).assign(seconds=seconds))
    return folder


@pytest.fixture(scope="module")
def artefact(timed):
    return CostGain().build(sb.read_run(timed))


def test_the_cost_is_the_median_of_paired_steps(timed):
    log = sb.read_run(timed).train_log
    ratios = []
    for seed in (0, 1):
        for step in range(int(WARM_UP * STEPS) + 1, STEPS + 1):
            rows = log[(log["seed"] == seed) & (log["step"] == step)].set_index("loss")["seconds"]
            ratios.append(rows["smmd"] / rows["ce"])
    row = step_costs(sb.read_run(timed)).set_index("loss").loc["smmd"]
    assert row["ratio"] == pytest.approx(np.median(ratios))
    assert (row["ratio_low"], row["ratio_high"]) == pytest.approx(np.percentile(ratios, [25, 75]))
    assert row["steps"] == len(ratios) == 456


def test_the_gain_is_that_of_the_comparisons(artefact, timed):
    found = artefact.data.set_index("loss")["difference"]
    known = sb.read_run(timed).comparisons
    known = known[(known["metric"] == "exact_match") & (known["against_loss"] == "ce")]
    expected = known.groupby("loss", observed=True)["difference"].mean()
    assert found.to_dict() == pytest.approx(expected.to_dict())


def test_each_loss_is_a_point_and_cross_entropy_the_origin(artefact):
    (axis,) = artefact.figure.axes
    points = [line for line in axis.lines if line.get_linestyle() == "None"]
    assert [line.get_label() for line in points] == ["CE", "NTL", "SMMD"]
    assert (points[0].get_xdata()[0], points[0].get_ydata()[0]) == (1, 0)
    row = artefact.data.set_index("loss").loc["smmd"]
    assert points[2].get_xdata()[0] == row["ratio"]
    assert points[2].get_ydata()[0] == row["difference"]


def test_the_caption_warns_of_a_shared_machine_and_names_n(artefact):
    assert "where a machine does other work as well" in artefact.caption
    assert "n = 200 test examples; seeds 0, 1; at most" in artefact.caption
    assert set(artefact.table["Steps"]) == {"456"}
    assert artefact.table["Loss"].tolist() == ["NTL", "SMMD"]


def test_a_seed_without_cross_entropy_does_not_count(timed, tmp_path):
    folder = Path(shutil.copytree(timed, tmp_path / "run"))
    for file in folder.glob("cells/*/cell.json"):
        cell = read_json(file)
        if (cell["loss"], cell["seed"]) == ("ce", 1):
            (file.parent / "train_log.parquet").unlink()
    assert set(step_costs(sb.read_run(folder))["steps"]) == {228}


def test_a_failed_cell_is_named(timed, tmp_path):
    folder = Path(shutil.copytree(timed, tmp_path / "run"))
    for file in folder.glob("cells/*/cell.json"):
        if read_json(file)["loss"] == "ntl":
            (file.parent / "metrics.json").unlink()
            write_failure(file.parent, {"stage": "train", "error": "no memory"})
    artefact = CostGain().build(sb.read_run(folder))
    assert artefact.table["Loss"].tolist() == ["NTL", "SMMD"]
    assert artefact.table["Step time : CE"].iloc[0] == "failed in train"
    assert set(artefact.table.iloc[0, 2:]) == {"–"}
    assert "builtin/tiny ntl seeds 0, 1 (failed in train)" in artefact.caption


def test_a_run_without_times_or_results_is_skipped(timed, tmp_path):
    folder = Path(shutil.copytree(timed, tmp_path / "run"))
    for file in folder.glob("cells/*/train_log.parquet"):
        file.unlink()
    reason = CostGain().skip(sb.read_run(folder))
    assert reason == "no loss and cross-entropy have logged step times for the same seed"
    write_run(tmp_path / "ce", losses=("ce",), seeds=(0,), n=5, steps=5, resamples=5)
    reason = CostGain().skip(sb.read_run(tmp_path / "ce"))
    assert reason == "no loss has results beside those of cross-entropy for the same seed"


def test_completions_made_elsewhere_have_no_cost(timed, tmp_path):
    folder = Path(shutil.copytree(timed, tmp_path / "run"))
    manifest = read_json(folder / "manifest.json")
    write_json(folder / "manifest.json", {**manifest, "predictions": []})
    reason = CostGain().skip(sb.read_run(folder))
    assert reason == "the completions were made elsewhere: nothing was trained here"


def test_publishing_again_gives_the_same_bytes(timed, tmp_path):
    folder = Path(shutil.copytree(timed, tmp_path / "run"))

    def published():
        files = publish(sb.read_run(folder), [CostGain()])
        return [file.read_bytes() for file in files if file.name != "index.html"]

    assert published() == published()
