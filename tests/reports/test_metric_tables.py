"""The tables of results: arithmetic, mathematics, clocks, charts, summaries, and other tasks."""

import pytest
from smmd_bench.reports import metric_tables
from smmd_bench.reports._text import select_notes
from smmd_bench.reports.metric_tables import (
    ArithmeticTable,
    ChartTable,
    ClockTable,
    MathTable,
    SamsumTable,
    TaskTable,
)

from smmd_bench.publishing import tables
from tests.changed_runs import without
from tests.reports.conftest import TEXT, VISION
from tests.runs import planted_run, quick_run

OURS = {
    ArithmeticTable(): "Acc (%)", MathTable(): "Acc (%)", ClockTable(): "Acc (%)",
    ChartTable(): "Acc (%)", SamsumTable(): "ROUGE-1", TaskTable(): "Exact match",
}  # fmt: skip
FAILURES = {
    "failed in train": {"stage": "train", "error": "out of memory"},
    "skipped": {"skipped": True, "error": "no such digits"},
    "pending": None,
}


@pytest.mark.parametrize(
    ("report", "run", "columns"),
    [
        (ArithmeticTable(), "arithmetic", {"exact_match": "Acc (%)"}),
        (MathTable(), "math", {"exact_match": "Acc (%)"}),
        (ClockTable(), "pictures", {"exact_match": "Acc (%)", "time_gap": "Time gap (min)"}),
        (ChartTable(), "pictures", {"relaxed_accuracy": "Relaxed (%)"}),
    ],
)
def test_values_and_intervals_are_those_of_the_cells(report, run, columns, runs):
    run = runs(run)
    table = report.build(run).table
    cells = run.cells[run.cells["task_name"].isin(report.tasks)]
    for metric, column in columns.items():
        found = run.metrics[run.metrics["metric"] == metric].set_index("address")
        found = found.loc[cells["address"]]
        expected = [f"{r.value:.1f} [{r.low:.1f}, {r.high:.1f}]" for r in found.itertuples()]
        assert list(table[column]) == expected


def test_several_seeds_are_a_mean_with_its_deviation(runs):
    run = runs("easier")
    table = ArithmeticTable().build(run).table.set_index("Loss")
    ours = run.metrics.query("metric == 'exact_match' and loss == 'smmd'")["value"]
    assert table.loc["SMMD", "Acc (%)"] == f"{ours.mean():.1f} ± {ours.std(ddof=1):.1f}"
    assert list(table.loc[["untuned", "SMMD"], "Seeds"]) == ["1", "2"]
    assert "test examples; seeds 0, 1." in ArithmeticTable().build(run).caption


def test_planted_answers_give_known_values(tmp_path):
    losses = {"ce": ["1", "0", "none", ""], "smmd": list("1230")}
    run = planted_run(tmp_path, ["1", "2", "3", "0"], losses)
    artefact = MathTable().build(run)
    data = artefact.data.set_index("loss")
    for metric, values in {
        "exact_match": [25, 100], "strict_match": [25, 100], "parse_failure_rate": [50, 0],
        "truncation_rate": [25, 0],
    }.items():  # fmt: skip
        assert list(data.loc[["ce", "smmd"], f"{metric}_value"]) == values
    ours = data.loc["smmd"]
    assert (ours["difference"], ours["difference_b"], ours["difference_c"]) == (75, 3, 0)
    assert "Δ MAE where both answer" in artefact.table  # CE answers two of the four
    assert len(select_notes(artefact.table[["Loss", "n"]])) < len(artefact.notes)
    whole = planted_run(tmp_path / "whole", ["1", "2"], {"ce": ["1", "0"], "smmd": ["1", "2"]})
    assert "Δ MAE" in MathTable().build(whole).table


@pytest.mark.parametrize(
    ("report", "names", "label"),
    [
        (ArithmeticTable(), {"recipe": {"epochs": 4}}, "other model"),
        (MathTable(), {"models": (TEXT,), "tasks": ("gsm8k",)}, "other size"),
        (ClockTable(), {"models": (VISION,), "tasks": ("clock_time",)}, "synthetic data"),
    ],
)  # fmt: skip
def test_another_setting_is_not_compared_and_the_cell_says_why(report, names, label, tmp_path):
    artefact = report.build(quick_run(tmp_path, n=30, losses=("ce",), **names))
    assert {*artefact.table.filter(like="aper").stack()} == {label}
    assert artefact.data.filter(like="published").isna().all(axis=None)


@pytest.fixture(scope="module")
def whole(runs):
    """The tables of a run of all tasks."""
    return {report: report.build(runs("all tasks")).table for report in OURS}


@pytest.mark.parametrize("said", FAILURES)
def test_a_loss_without_a_result_has_a_row_that_says_why(said, runs, whole, tmp_path):
    lost = without(runs("all tasks"), tmp_path, failure=FAILURES[said], loss="ntl")
    for report, heading in OURS.items():
        artefact = report.build(lost)
        table = artefact.table
        assert list(table["Loss"].unique()) == ["untuned", "CE", "NTL", "SMMD"]
        for _, row in table[table["Loss"] == "NTL"].iterrows():
            assert row[heading] == said
            assert set(row.iloc[list(row.index).index(heading) + 1 :]) == {"–"}
        assert artefact.caption.endswith(f"Without a result: NTL ({said}).")
        assert tables.is_numeric(table[heading])
        smmd = list(table["Loss"]).index("SMMD")
        assert [(row, column) for row, column in table.attrs.get("bold", ()) if row == smmd] == [
            (row, column) for row, column in whole[report].attrs.get("bold", ()) if row == smmd
        ]


def test_a_sweep_in_the_run_changes_nothing_but_the_caption(tmp_path):
    names = {"n": 60, "seeds": (0, 1)}
    before = ArithmeticTable().build(quick_run(tmp_path, **names))
    sweep = tuple(f"smmd[sigma={value}]" for value in (1, 3, 5))
    after = ArithmeticTable().build(quick_run(tmp_path, n=60, losses=("ce", *sweep)))
    assert tables.to_csv(after.table) == tables.to_csv(before.table)
    columns = ["exact_match_gain_p", "exact_match_value"]
    assert after.data[columns].equals(before.data[columns])


def test_a_table_of_any_task_compares_every_row_with_ce(tmp_path, monkeypatch):
    monkeypatch.setattr(metric_tables, "ELSEWHERE", ())
    run = quick_run(tmp_path, losses=("ce", "smmd"), seeds=(0, 1), n=40)
    deltas = [name for name in TaskTable().build(run).table if name.startswith("Δ")]
    assert deltas
    assert not [name for name in deltas if " to CE" not in name]
