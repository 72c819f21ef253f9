"""The tables of results: arithmetic, mathematics, clocks, charts, summaries, and other tasks."""

from __future__ import annotations

import shutil
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from smmd_bench.reports.arithmetic_table import ArithmeticTable
from smmd_bench.reports.chart_table import ChartTable
from smmd_bench.reports.clock_table import ClockTable
from smmd_bench.reports.math_table import MathTable
from smmd_bench.reports.samsum_table import SamsumTable
from smmd_bench.reports.task_table import ELSEWHERE, TaskTable
from smmd_bench.tasks.samsum import SAMSum

import smmd_bench as sb
from smmd_bench.plugin_system.registry import load_plugin_file
from smmd_bench.publishing import tables
from smmd_bench.scoring.statistics import paired_difference
from smmd_bench.storage.files import read_json, write_json
from tests.reports.golden import assert_golden
from tests.runs import Planted, write_failure, write_run

SMALL, TEXT, VISION = "Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-VL-3B-Instruct"
LOSSES = ("ce", "gce", "ntl", "ntil", "smmd")
PAPER = {"losses": LOSSES, "seeds": (0,), "recipe": {}}
SYNTHETIC = {"models": ("builtin/tiny-vl",), "n": 60}
SAMSUM = {"tasks": ("samsum",), "losses": ("ce", "ntl", "smmd[sigma=2.0]", "smmd")}
RUNS = {
    "easier": [{"n": 200}],
    "arithmetic": [{"models": (SMALL,), "tasks": ("arithmetic",), "n": 10_000, **PAPER}],
    "math": [
        {"models": (TEXT,), "tasks": ("gsm8k",), "n": 1319, **PAPER},
        {"models": (TEXT,), "tasks": ("svamp",), "n": 1000, **PAPER},
    ],
    "math of two models": [
        {
            "models": (TEXT, "builtin/tiny"), "tasks": ("gsm8k", "svamp"), "n": 1000,
            "losses": ("ce", "smmd"), "recipe": {},
        },
    ],
    "pictures": [
        {"models": (VISION,), "tasks": ("clock_time",), "n": 1440, "source": "kaggle", **PAPER},
        {"models": (VISION,), "tasks": ("chartqa",), "n": 1915, "source": "kaggle", **PAPER},
    ],
    "synthetic pictures": [{"tasks": ("clock_time", "chartqa"), **SYNTHETIC}],
    "summaries": [{"models": (TEXT,), "n": 819, "seeds": (0,), "recipe": {}, **SAMSUM}],
    "summaries of two models": [
        {
            "models": (TEXT, "builtin/tiny"), "tasks": ("samsum", "gsm8k"), "n": 40,
            "losses": ("ce", "smmd"),
        },
    ],
    "all": [
        {
            "tasks": ("arithmetic", "gsm8k", "clock_time", "chartqa", "samsum", "halving"),
            "n": 12, "resamples": 5,
        },
    ],
}  # fmt: skip
GOLDENS = {
    "arithmetic_easier_two_seeds": (ArithmeticTable(), "easier"),
    "arithmetic_paper_model": (ArithmeticTable(), "arithmetic"),
    "math_paper_model": (MathTable(), "math"),
    "math_two_models_two_seeds": (MathTable(), "math of two models"),
    "clock_paper_model": (ClockTable(), "pictures"),
    "clock_synthetic_two_seeds": (ClockTable(), "synthetic pictures"),
    "chart_paper_model": (ChartTable(), "pictures"),
    "chart_synthetic_two_seeds": (ChartTable(), "synthetic pictures"),
    "samsum_paper_model": (SamsumTable(), "summaries"),
    "samsum_two_models_two_seeds": (SamsumTable(), "summaries of two models"),
}
ALL = {
    ArithmeticTable(): "Acc (%)", MathTable(): "Acc (%)", ClockTable(): "Acc (%)",
    ChartTable(): "Acc (%)", SamsumTable(): "F1 × 100", TaskTable(): "Exact match",
}  # fmt: skip
FAILURES = {
    "failed in train": {"stage": "train", "error": "out of memory"},
    "skipped": {"skipped": True, "error": "no such digits"},
    "pending": None,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs of `RUNS`, each made when it is first asked for. Only to be read."""
    folder, known = tmp_path_factory.mktemp("runs"), {}

    def run(name):
        if name not in known:
            known[name] = made(folder / name, *RUNS[name])
        return known[name]

    return run


def made(path, *parts):
    """A run with the cells of several calls of `write_run`."""
    manifests = []
    for names in parts or ({},):
        write_run(path, **{"steps": 3, "resamples": 100, **names})
        manifests.append(read_json(path / "manifest.json"))
    last = manifests[-1]
    last["data"] = {task: data for m in manifests for task, data in m["data"].items()}
    last["experiment"]["tasks"] = [t for m in manifests for t in m["experiment"]["tasks"]]
    write_json(path / "manifest.json", last)
    return sb.read_run(path)


def changed(run, tmp_path, change):
    """A copy of a run after `change(folder of a cell, its cell.json)`."""
    folder = Path(shutil.copytree(run.path, tmp_path / "run"))
    for file in folder.glob("cells/*/cell.json"):
        change(file.parent, read_json(file))
    return sb.read_run(folder)


def lose(loss, failure=None, **where):
    """A change that takes the results of a loss away."""

    def change(folder, cell):
        if cell["loss"] == loss and where.items() <= cell.items():
            (folder / "metrics.json").unlink()
            if failure is not None:
                write_failure(folder, failure)

    return change


def shown(table):
    """What the columns of published values hold."""
    return set(table.filter(like="aper").stack())


@pytest.mark.parametrize("name", GOLDENS)
def test_a_table_is_as_it_was(name, runs):
    report, run = GOLDENS[name]
    run = runs(run)
    if name == "samsum_paper_model":
        counts = {"tokens": 412_345, "digit_tokens": 6_400, "numeric": 6_321}
        for file in run.path.glob("cells/*/train.json"):
            write_json(file, {**read_json(file), "numeric_targets": counts})
    assert_golden(name, report.build(sb.read_run(run.path)))


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


def test_planted_answers_give_known_values(tmp_path):
    planted = Planted(["1", "2", "3", "0"], {"ce": ["1", "0", "none", ""], "smmd": list("1230")})
    run = made(tmp_path, {"tasks": ("gsm8k",), "planted": planted, "seeds": (0,)})
    data = MathTable().build(run).data.set_index("loss")
    for metric, values in {
        "exact_match": [25, 100], "strict_match": [25, 100], "parse_failure_rate": [50, 0],
        "truncation_rate": [25, 0],
    }.items():  # fmt: skip
        assert list(data.loc[["ce", "smmd"], f"{metric}_value"]) == values
    ours = data.loc["smmd"]
    assert (ours["difference"], ours["difference_b"], ours["difference_c"]) == (75, 3, 0)


def test_each_difference_of_rouge_is_that_of_its_own_kind(runs):
    run = runs("summaries")
    data = SamsumTable().build(run).data
    folders = run.cells.set_index("loss")["address"]
    ours, ce = (run.read("scores", None, [folders[loss]]) for loss in ("smmd", "ce"))
    for metric in SAMSum().metrics()[:3]:
        row = data[(data["loss"] == "smmd") & (data["metric"] == metric.name)].iloc[0]
        expected = paired_difference(metric, ours, ce, resamples=100)
        assert row["difference"] == pytest.approx(expected.value)
        assert (row["difference_low"], row["difference_high"]) == (expected.low, expected.high)
        assert row["value"] == pytest.approx(100 * ours[metric.name].mean())


@pytest.mark.parametrize(
    ("report", "run", "row", "published"),
    [
        (ArithmeticTable(), "arithmetic", {},
         {"Paper Acc": "45.93", "Paper MAE": "3.25", "Paper R²": "0.69"}),
        (MathTable(), "math", {"Task": "gsm8k"}, {"Paper": "57.77"}),
        (MathTable(), "math of two models", {"Model": "Qwen2.5", "Task": "svamp"},
         {"Paper": "71.10"}),
        (ClockTable(), "pictures", {}, {"Paper Acc": "74.30"}),
        (ChartTable(), "pictures", {}, {"Paper Acc": "72.21"}),
        (SamsumTable(), "summaries", {"ROUGE": "L"}, {"Paper": "43.01", "Paper Δ to CE": "−0.48"}),
    ],
)  # fmt: skip
def test_published_values_and_the_distance_to_them(report, run, row, published, runs):
    artefact = report.build(runs(run))
    table = artefact.table
    for column, text in row.items():
        table = table[table[column] == text]
    ours = table[table["Loss"] == "SMMD"].iloc[0]
    assert {name: ours[name] for name in published} == published
    value, first = ours[ALL[report]].partition(" ")[0], next(iter(published.values()))
    distance = float(ours["Δ to paper"].replace("−", "-"))
    assert distance == pytest.approx(float(value) - float(first), abs=0.1)
    assert (table.loc[table["Loss"] == "untuned", [*published]] == "–").all(axis=None)


@pytest.mark.parametrize(
    ("report", "names", "why"),
    [
        (ArithmeticTable(), {"models": (SMALL,), "recipe": {"epochs": 4, "method": "full"}},
         ["arithmetic[operations=1..2]: another level", "30 of 10,000", "epochs 4 instead of 15"]),
        (MathTable(), {"models": (TEXT,), "tasks": ("gsm8k[calculator=keep]",)},
         ["gsm8k[calculator=keep]: another level or format", "30 of 1,319"]),
        (ClockTable(), {"models": (VISION,), "tasks": ("clock_time",)}, ["synthetic data"]),
        (ChartTable(), {"tasks": ("chartqa",)}, ["not in the paper, synthetic data"]),
        (SamsumTable(), {"models": (TEXT,), "tasks": ("samsum[source=synthetic]",)},
         ["samsum[source=synthetic]: synthetic data"]),
    ],
)  # fmt: skip
def test_another_setting_is_not_compared_and_the_caption_says_why(report, names, why, tmp_path):
    artefact = report.build(made(tmp_path, {"seeds": (0,), "n": 30, "losses": ("ce",), **names}))
    assert shown(artefact.table) == {"not compared"}
    assert artefact.data.filter(like="published").isna().all(axis=None)
    _, _, note = artefact.caption.partition("No published values for ")
    assert all(reason in note for reason in why)
    synthetic = "synthetic data" in note
    assert ("synthetic" in artefact.table.attrs["title"]) is synthetic


def test_of_several_settings_the_papers_alone_is_compared(runs, tmp_path):
    artefact = MathTable().build(runs("math of two models"))
    paper = artefact.table.set_index(["Model", "Task", "Loss"])["Paper"]
    assert paper["Qwen2.5", "gsm8k", "SMMD"] == paper["builtin/tiny", "svamp", "SMMD"] == "–"
    _, _, note = artefact.caption.partition("No published values for ")
    assert "gsm8k with Qwen2.5-1.5B: 1,000 of 1,319 test examples" in note
    assert "svamp with Qwen2.5-1.5B" not in note
    tasks = ("clock_time[source=kaggle]", "clock_time[rotate=true]")
    names = {"models": (VISION,), "tasks": tasks, "losses": ("ce",), "seeds": (0,), "n": 1440}
    run = made(tmp_path, {**names, "source": "kaggle", "base": False, "recipe": {}})
    table = ClockTable().build(run).table.set_index("Task")
    assert table["Paper Acc"].to_dict() == {tasks[0]: "46.39", tasks[1]: "–"}


def test_data_of_unknown_source_is_not_compared(runs, tmp_path):
    folder = Path(shutil.copytree(runs("pictures").path, tmp_path / "run"))
    write_json(folder / "manifest.json", {**read_json(folder / "manifest.json"), "data": {}})
    artefact = ClockTable().build(sb.read_run(folder))
    assert "Data" not in artefact.table
    assert shown(artefact.table) == {"not compared"}
    assert "clock_time: data of unknown source" in artefact.caption


def test_the_title_says_a_level_that_is_not_the_papers(runs, tmp_path):
    titles = [ArithmeticTable().build(runs(name)).table.attrs["title"]
              for name in ("arithmetic", "easier")]  # fmt: skip
    assert titles[0] == ArithmeticTable.title
    assert titles[1].endswith("arithmetic[operations=1..2], an easier level than the paper's")
    tasks = ("arithmetic", "arithmetic[level=hard]")
    table = ArithmeticTable().build(made(tmp_path, {"tasks": tasks, "n": 30, "seeds": (0,)})).table
    assert tuple(table["Task"].unique()) == tasks
    assert table.attrs["title"].endswith(
        ", among them arithmetic[level=hard], not the paper's level"
    )


def test_a_metric_that_no_cell_has_gets_no_column(runs, tmp_path):
    def change(folder, cell):
        content = read_json(folder / "metrics.json")
        for name in ("strict_match", "flexible_match"):
            del content["metrics"][name]
        write_json(folder / "metrics.json", content)

    artefact = MathTable().build(changed(runs("math of two models"), tmp_path, change))
    assert not any("lm-eval" in column for column in artefact.table)
    assert "lm-eval" not in artefact.caption


def test_the_wrapped_gap_is_never_the_larger(runs):
    data = ClockTable().build(runs("pictures")).data
    assert (data["time_gap_wrapped_value"] <= data["time_gap_value"]).all()


def test_digits_outside_the_numeric_vocabulary_are_in_the_caption(runs, tmp_path):
    def change(folder, cell):
        targets = {"digit_tokens": 800, "outside": 94, "numeric": 706, "covered": 706}
        receipt = read_json(folder / "train.json")
        write_json(folder / "train.json", {**receipt, "numeric_targets": targets})

    run = runs("synthetic pictures")
    assert "V_num" not in ChartTable().build(run).caption
    caption = ChartTable().build(changed(run, tmp_path, change)).caption
    assert "outside V_num: 11.8 % with builtin/tiny-vl." in caption


@pytest.mark.parametrize("said", FAILURES)
def test_a_loss_without_a_result_has_a_row_that_says_why(said, runs, tmp_path):
    lost = changed(runs("all"), tmp_path, lose("ntl", FAILURES[said]))
    for report, heading in ALL.items():
        whole, artefact = report.build(runs("all")).table, report.build(lost)
        table = artefact.table
        assert list(table["Loss"].unique()) == ["untuned", "CE", "NTL", "SMMD"]
        for _, row in table[table["Loss"] == "NTL"].iterrows():
            assert row[heading] == said
            assert set(row.iloc[list(row.index).index(heading) + 1 :]) - {"not compared"} == {"–"}
        assert f"Without a result: builtin/tiny ntl seeds 0, 1 ({said})." in artefact.caption
        assert tables.is_numeric(table[heading])
        smmd = list(table["Loss"]).index("SMMD")
        assert [(row, column) for row, column in table.attrs.get("bold", ()) if row == smmd] == [
            (row, column) for row, column in whole.attrs.get("bold", ()) if row == smmd
        ]


def test_a_seed_without_a_result_is_named_and_does_not_count(runs, tmp_path):
    failure = {"stage": "decode", "error": "out of memory"}
    run = changed(runs("easier"), tmp_path, lose("smmd", failure, seed=1))
    artefact = ArithmeticTable().build(run)
    assert artefact.caption.endswith("builtin/tiny smmd seed 1 (failed in decode).")
    assert artefact.table.set_index("Loss").loc["SMMD", "Seeds"] == "1"


def test_of_several_tasks_that_of_a_missing_result_is_named(runs, tmp_path):
    run = changed(runs("math"), tmp_path, lose("smmd", task="svamp"))
    assert MathTable().build(run).caption.endswith(f"{TEXT} svamp smmd seed 0 (pending).")


@pytest.mark.parametrize("report", ALL)
def test_a_run_without_the_task_or_without_results_is_skipped(report, runs, tmp_path):
    other = runs("math" if isinstance(report, ArithmeticTable) else "easier")
    what = "cell of " + (" or ".join(report.tasks) or "a task without a table")
    nothing = "every task of the run has a table of its own"
    assert report.skip(other) == (f"the run has no {what}" if report.tasks else nothing)
    empty = changed(runs("all"), tmp_path, lambda folder, cell: (folder / "metrics.json").unlink())
    assert report.skip(empty) == f"no {what} has results yet"


def test_a_sweep_in_the_run_changes_nothing_but_the_caption(tmp_path):
    names = {"n": 60, "resamples": 20}
    before = ArithmeticTable().build(made(tmp_path, names))
    sweep = tuple(f"smmd[sigma={value}]" for value in (1, 3, 5))
    after = ArithmeticTable().build(
        made(tmp_path, {**names, "losses": ("ce", *sweep), "seeds": (0,)})
    )
    assert tables.to_csv(after.table) == tables.to_csv(before.table)
    columns = ["p_holm", "exact_match_value"]
    assert after.data[columns].equals(before.data[columns])
    assert "sweeps: 3 variants" in after.caption


def test_another_task_has_a_table_with_every_metric(tmp_path):
    run = made(tmp_path, {"tasks": ("halving[digits=3]", "arithmetic[operations=1..2]"), "n": 50})
    artefact = TaskTable().build(run)
    table, data = artefact.table, artefact.data
    assert table.attrs["title"] == "Results: halving[digits=3]"
    assert list(table["vs"]) == ["–", "untuned", "CE", "CE"]
    headings = ["Exact match", "Mean absolute error", "R squared", "Parse failure rate"]
    assert (table[headings] != "–").all(axis=None)
    key = ["loss", "seed", "metric"]
    metrics = run.metrics[run.metrics["task"] == "halving[digits=3]"].set_index(key)["value"]
    assert data.set_index(key)["value"].to_dict() == pytest.approx(metrics.to_dict(), nan_ok=True)
    compared = run.comparisons[run.comparisons["task"] == "halving[digits=3]"].set_index(key)
    found = data.set_index(key)["difference"].dropna()
    assert found.to_dict() == pytest.approx(compared["difference"].dropna().to_dict())


def test_another_task_that_is_known_has_its_own_names_of_metrics(tmp_path):
    load_plugin_file(Path(__file__).parents[2] / "examples" / "own_task.py")
    table = TaskTable().build(made(tmp_path, {"tasks": ("doubling",), "seeds": (0,)})).table
    assert {"Acc (%)", "MAE", "R²", "Parse failures (%)", "Δ Acc"} <= set(table.columns)
    assert "[" in table["Acc (%)"].iloc[0]


def test_every_task_here_has_a_table_of_its_own():
    here = {e.name for e in entry_points(group="smmd_bench.tasks") if e.dist.name == "smmd-bench"}
    assert set(ELSEWHERE) == here
