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
        (
            ClockTable(),
            "pictures",
            {"exact_match": "Acc (%)", "time_gap": "Time gap (min)"},
        ),
        (ChartTable(), "pictures", {"relaxed_accuracy": "Relaxed (%)"}),
    ],
)
def test_values_and_intervals_are_those_of_the_cells(report, run, columns, runs):
    run = runs(run)
    table = report.build(run).table
    cells = run.cells[run.cells["task_name"].isin(report.tasks)]

    for metric, column in columns.items():
        metrics = run.metrics[run.metrics["metric"] == metric]
        by_address = metrics.set_index("address")
        rows = by_address.loc[cells["address"]]
        expected = []
        for row in rows.itertuples():
            interval = f"[{row.low:.1f}, {row.high:.1f}]"
            expected.append(f"{row.value:.1f} {interval}")
        assert [*table[column]] == expected


def test_several_seeds_are_a_mean_with_its_deviation(runs):
    run = runs("easier")
    artefact = ArithmeticTable().build(run)
    table = artefact.table.set_index("Loss")
    smmd = run.metrics.query("metric == 'exact_match' and loss == 'smmd'")["value"]
    assert table.loc["SMMD", "Acc (%)"] == f"{smmd.mean():.1f} ± {smmd.std(ddof=1):.1f}"

    # The base is not trained, and has no seed.
    assert table.loc["untuned", "Seeds"] == "1"
    assert table.loc["SMMD", "Seeds"] == "2"
    assert "test examples; seeds 0, 1." in artefact.caption

    # CE of one seed against CE of the other
    assert "The row of CE is the noise floor" in artefact.caption


def test_planted_answers_give_known_values(tmp_path):
    losses = {"ce": ["1", "0", "none", ""], "smmd": list("1230")}
    run = planted_run(tmp_path, ["1", "2", "3", "0"], losses)
    artefact = MathTable().build(run)
    data = artefact.data.set_index("loss")
    expected = {
        "exact_match": [25, 100],
        "strict_match": [25, 100],
        "parse_failure_rate": [50, 0],
        "truncation_rate": [25, 0],
    }
    for metric, values in expected.items():
        assert data[f"{metric}_value"].tolist() == values

    smmd = data.loc["smmd"]
    assert smmd["difference"] == 75
    assert smmd["difference_b"] == 3
    assert smmd["difference_c"] == 0

    # A table without an interval or a difference needs fewer notes.
    names = artefact.table[["Loss", "n"]]
    assert len(select_notes(names)) < len(artefact.notes)


def test_rows_that_differ_in_n_have_it_beside_the_loss(runs):
    columns = [*MathTable().build(runs("math")).table]
    assert columns.index("n") == columns.index("Loss") + 1
    columns = [*ArithmeticTable().build(runs("arithmetic")).table]
    assert columns.index("n") > columns.index("Parse fail (%)")


def test_a_heading_says_where_a_difference_is_of_fewer_examples(tmp_path):
    answers = ["1", "2"]
    every = planted_run(
        tmp_path / "every", answers, {"ce": ["1", "0"], "smmd": answers}
    )
    some = planted_run(
        tmp_path / "some", answers, {"ce": ["1", "none"], "smmd": answers}
    )
    assert "Δ MAE" in MathTable().build(every).table
    assert "Δ MAE where both answer" in MathTable().build(some).table


@pytest.mark.parametrize(
    ("report", "names", "label"),
    [
        (ArithmeticTable(), {"recipe": {"epochs": 4}}, "other model"),
        (MathTable(), {"models": (TEXT,), "tasks": ("gsm8k",)}, "other size"),
        (ClockTable(), {"models": (VISION,), "tasks": ("clock_time",)}, "synthetic data"),
    ],
)  # fmt: skip
def test_another_setting_is_not_compared_and_the_cell_says_why(
    report, names, label, tmp_path
):
    artefact = report.build(quick_run(tmp_path, n=30, losses=("ce",), **names))
    assert {*artefact.table.filter(like="aper").stack()} == {label}
    assert artefact.data.filter(like="published").isna().all(axis=None)


@pytest.mark.parametrize("reason", FAILURES)
def test_a_loss_without_a_result_has_a_row_that_says_why(
    reason, runs, complete, tmp_path
):
    lost = without(runs("all tasks"), tmp_path, failure=FAILURES[reason], loss="ntl")
    for report, heading in OURS.items():
        artefact = report.build(lost)
        sentence = f"Without a result: NTL ({reason})."
        if reason == "pending":
            sentence += " What is pending is made by the command of the run."
        assert artefact.caption.endswith(sentence)

        table = artefact.table
        losses = table["Loss"].unique()
        assert [*losses] == ["untuned", "CE", "NTL", "SMMD"]
        assert tables.is_numeric(table[heading])

        # The reason stands in the place of the first value, and dashes in those behind it.
        place = table.columns.get_loc(heading)
        rows = table[table["Loss"] == "NTL"]
        assert set(rows[heading]) == {reason}
        assert set(rows.iloc[:, place + 1 :].stack()) == {"–"}
        assert bold_cells_of(table, "SMMD") == bold_cells_of(complete[report], "SMMD")


def bold_cells_of(table, loss):
    """The bold cells of a loss."""
    row = table["Loss"].tolist().index(loss)
    return [cell for cell in table.attrs.get("bold", ()) if cell[0] == row]


@pytest.fixture(scope="module")
def complete(runs):
    """The tables of a run of all tasks."""
    return {report: report.build(runs("all tasks")).table for report in OURS}


def test_a_sweep_in_the_run_changes_nothing_but_the_caption(tmp_path):
    report = ArithmeticTable()
    run = quick_run(tmp_path, n=60, seeds=(0, 1))
    alone = report.build(run)
    sweep = [f"smmd[sigma={value}]" for value in (1, 3, 5)]
    run = quick_run(tmp_path, n=60, losses=("ce", *sweep))
    beside = report.build(run)
    assert beside.table.equals(alone.table)

    columns = ["exact_match_gain_p", "exact_match_value"]
    expected = alone.data[columns]
    assert beside.data[columns].equals(expected)


def test_a_table_of_any_task_compares_every_row_with_ce(tmp_path, monkeypatch):
    monkeypatch.setattr(metric_tables, "ELSEWHERE", ())
    run = quick_run(tmp_path, losses=("ce", "smmd"), seeds=(0, 1), n=40)
    table = TaskTable().build(run).table
    deltas = [name for name in table if name.startswith("Δ")]
    assert deltas
    assert all(" to CE" in name for name in deltas)
