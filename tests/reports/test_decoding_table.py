"""The table of decoding rules: errors of the same weights, and differences under the same rule."""

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports.decoding_table import DecodingTable
from smmd_bench.reports.task_table import TaskTable

from smmd_bench.results.frames import read_run
from smmd_bench.run.comparison import measure_cell, write_comparisons
from smmd_bench.scoring.decoding_rules import RULES
from smmd_bench.storage.current import current_cell
from smmd_bench.storage.files import read_json, read_parquet, write_json, write_parquet
from tests.reports.golden import assert_golden
from tests.runs import quick_run, task_of


def with_beams(run, rules=RULES):
    """The run measured again with beams: the completion, and the numbers around it."""
    for folder in (run.path / "cells").iterdir():
        content = read_json(folder / "cell.json")
        before = read_parquet(folder / "completions.parquet").to_pandas()
        content["addresses"] |= {"beams": "beams", "measure": f"ruled{content['address']}"[:16]}
        write_json(folder / "cell.json", content)
        now = current_cell(folder, content)
        rng = np.random.default_rng(0)
        rows = [
            row
            for uid, text in zip(before["uid"], before["completion"], strict=True)
            for row in ((uid, text, 0.5), (uid, str(rng.integers(1, 9)), 0.3), (uid, "20", 0.1))
        ]
        beams = pd.DataFrame(rows, columns=["uid", "text", "p"])
        beams["log_probability"] = np.log(beams.pop("p"))
        write_parquet(folder / "beams.parquet", beams, now.beams_stamp)
        task = task_of(content["task"])
        assert measure_cell(current_cell(folder, content), task, before, rules) is None
    write_comparisons(read_run(run.path), task_of, resamples=20)
    return read_run(run.path)


@pytest.fixture(scope="module")
def ruled(tmp_path_factory):
    return with_beams(quick_run(tmp_path_factory.mktemp("ruled"), losses=("ce", "smmd"), n=40))


def test_the_table_is_as_it_was(ruled):
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


def test_a_run_with_one_rule_has_its_columns_alone(tmp_path):
    run = with_beams(quick_run(tmp_path, losses=("ce", "smmd")), ("median",))
    table = DecodingTable().build(run).table
    assert {"Greedy", "Median", "Δ to CE, median"} <= {*table}
    assert not {"Mean", "Δ to CE, mean"} & {*table}


def test_a_run_without_rules_has_no_such_table(tmp_path):
    run = quick_run(tmp_path, losses=("ce",))
    assert DecodingTable().skip(run) == "the run decodes greedily alone"


def test_the_table_of_an_own_task_keeps_to_greedy_decoding(ruled, monkeypatch):
    monkeypatch.setattr("smmd_bench.reports.task_table.ELSEWHERE", ())
    assert not [name for name in TaskTable().build(ruled).table if "mean" in name.lower()]
