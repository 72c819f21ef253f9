"""Tables of tuned losses and of decoding rules."""

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.decoding_table import DecodingTable
from smmd_bench.reports.tuning_table import TuningTable, at_the_ends
from smmd_bench.reports.verdict import Verdict

from smmd_bench.results.frames import read_run
from smmd_bench.run.comparison import measure_cell, write_comparisons
from smmd_bench.scoring.decoding_rules import RULES
from smmd_bench.storage.files import read_parquet, write_parquet
from tests.changed_runs import with_manifest, without
from tests.reports.test_goldens import assert_golden
from tests.runs import quick_run, task_of
from tests.tuned_runs import GRIDS, tuned_run


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Two seeds: CE chooses either rate, SMMD lambda=10 twice."""
    return tuned_run(tmp_path_factory.mktemp("tuned"), n=60)


def test_the_table_of_a_tuning_is_as_it_was(tuned):
    assert TuningTable().skip(tuned) is None
    assert_golden("tuning_two_seeds", TuningTable().build(tuned))


def test_a_tuned_loss_is_compared_with_tuned_ce_and_that_with_ce(tuned):
    against = tuned.comparisons.drop_duplicates("address").set_index("loss")["against_loss"]
    assert set(against["smmd[tuned]"]) == {"ce[tuned]"}
    assert set(against["ce[tuned]"]) == {"ce"}
    assert set(against["smmd"]) == {"ce"}
    data = Verdict().build(tuned).data
    rows = data[data["metric"] == "exact_match"].set_index("loss")
    assert {*rows.index} == {"ce", "ce[tuned]", "smmd", "smmd[tuned]"}  # ce: the noise floor
    value = tuned.metrics[tuned.metrics["metric"] == "exact_match"]
    mean = value.groupby("loss", observed=True)["value"].mean()
    tuned_gain = mean["smmd[tuned]"] - mean["ce[tuned]"]
    assert rows.loc["smmd[tuned]", "difference"] == pytest.approx(tuned_gain)


def test_unequal_budgets_are_not_compared(tmp_path):
    grids = {**GRIDS, "smmd": (*GRIDS["smmd"], "lambda=3")}
    run = tuned_run(tmp_path, grids=grids)
    against = run.comparisons.drop_duplicates("address").set_index("loss")["against_loss"]
    assert set(against["smmd[tuned]"]) == {"ce"}


def test_a_tuning_that_is_not_over_is_no_result(tuned, tmp_path):
    run = tuned
    for loss in ("ce[tuned]", "smmd[tuned]"):
        run = without(run, tmp_path, "selection.json", loss=loss)
    status = run.cells.set_index("loss")["status"]
    assert set(status["smmd[tuned]"]) == {"pending"}
    assert set(status["smmd"]) == {"done"}
    table = TuningTable().build(run).table
    assert set(table["Chosen"]) == {"–"}


@pytest.mark.parametrize(
    ("texts", "chosen", "named"),
    [
        (["lambda=10", "lambda=0.3", "lambda=3"], (1, 1, 2), "SMMD (tuned) lambda=0.3"),
        (["lambda=10", "lambda=0.3", "lambda=3"], (0, 0, 0), "SMMD (tuned) lambda=10"),
        (["lambda=10", "lambda=0.3", "lambda=3"], (1, 2, 2), None),
        (["lambda=10", "lambda=0.3"], (1, 1, 1), None),
        (["sigma=1+2", "sigma=2+3", "sigma=3"], (0, 0, 0), None),
        (["lambda=1,sigma=3", "lambda=2,sigma=2", "lambda=3,sigma=4"], (1, 1, 0),
         "SMMD (tuned) sigma=2"),
    ],
)  # fmt: skip
def test_a_choice_at_an_end_of_what_was_tried_is_named(texts, chosen, named):
    data = pd.DataFrame([
        {"model": "m", "task": "t", "loss": "smmd[tuned]", "seed": seed, "text": text,
         "chosen": at == best}
        for seed, best in enumerate(chosen) for at, text in enumerate(texts)
    ])  # fmt: skip
    assert at_the_ends(data) == ([] if named is None else [named])


def with_beams(run, rules=RULES):
    """The run measured again with beams: the completion, and the numbers around it."""
    cells = [{**cell, "parts": {**cell["parts"], "beams": "beams"}} for cell in run.rows]
    for content in with_manifest(run, run.path, cells=cells).rows:
        now = read_run(run.path).current(content["address"])
        before = read_parquet(now.place("completions")).to_pandas()
        rng = np.random.default_rng(0)
        rows = [
            row
            for uid, text in zip(before["uid"], before["completion"], strict=True)
            for row in ((uid, text, 0.5), (uid, str(rng.integers(1, 9)), 0.3), (uid, "20", 0.1))
        ]
        beams = pd.DataFrame(rows, columns=["uid", "text", "p"])
        beams["log_probability"] = np.log(beams.pop("p"))
        write_parquet(now.place("beams"), beams)
        assert measure_cell(now, task_of(content["task"]), rules) is None
    write_comparisons(read_run(run.path), task_of, resamples=20)
    return read_run(run.path)


@pytest.fixture(scope="module")
def ruled(tmp_path_factory):
    return with_beams(quick_run(tmp_path_factory.mktemp("ruled"), losses=("ce", "smmd"), n=40))


def test_the_table_of_decoding_rules_is_as_it_was(ruled):
    assert DecodingTable().skip(ruled) is None
    assert_golden("decoding_rules", DecodingTable().build(ruled))


def test_each_value_is_that_of_the_metric_under_the_rule(ruled):
    data = DecodingTable().build(ruled).data
    known = ruled.metrics.set_index(["loss", "metric"])["value"]
    assert {*data["decoder"]} == {"greedy", "mean", "median"}
    assert {*data["name"]} == {"mean_absolute_error", "trimmed_absolute_error", "r_squared"}
    for row in data.to_dict("records"):
        assert row["value"] == known[row["loss"], row["metric"]]
        assert row["found"] == pytest.approx(0.9, abs=0.1)
    mean = data[(data["loss"] == "smmd") & (data["metric"] == "mean_absolute_error[mean]")]
    differences = ruled.comparisons.set_index(["loss", "metric"])["difference"]
    assert mean["gain"].item() == differences["smmd", "mean_absolute_error[mean]"]


def test_a_run_without_rules_has_no_such_table(tmp_path):
    run = quick_run(tmp_path, losses=("ce",))
    assert DecodingTable().skip(run) == "the run decodes greedily alone"
