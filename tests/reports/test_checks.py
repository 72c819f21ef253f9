"""The tables of regression checks, overhead and dataset sizes."""

import io
import json

import pytest
from rich.console import Console
from smmd_bench.reports.datasets import DatasetSizes
from smmd_bench.reports.overhead_table import OverheadTable
from smmd_bench.reports.regression_tables import MmluTable, RegressionTable

import smmd_bench as sb
from smmd_bench.overhead.settings import STOCK, OverheadSettings, named_geometries
from smmd_bench.plugin_system.registry import load, names
from smmd_bench.publishing.terminal import to_terminal
from smmd_bench.publishing.write_reports import make_report
from smmd_bench.results.frames import read_run
from smmd_bench.storage.files import FORMAT, write_json
from tests.regression_checks import write_checks
from tests.reports.conftest import SMALL, TEXT
from tests.reports.test_goldens import assert_golden
from tests.runs import quick_run

PAPER = {"models": (TEXT,), "tasks": ("gsm8k",), "losses": ("ce", "smmd"), "recipe": {}}


@pytest.fixture(scope="module")
def artefact(runs):
    """The table of one of the paper's models, trained on GSM8K, with all of MMLU."""
    return MmluTable().build(runs("mmlu"))


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", ["mmlu", "a look at mmlu"])
def test_a_narrow_terminal_has_the_difference_and_the_verdict(runs, name, width):
    table = MmluTable().build(runs(name)).table
    console = Console(file=io.StringIO(), width=width)
    console.print(to_terminal(table, "MMLU", "", width))
    lines = console.file.getvalue().splitlines()
    (header,) = [line for line in lines if "Avg." in line]
    assert "Δ to CE" in header
    words = header.split()
    assert words[-3:] == ["p", "Not", "worse"]
    assert "Not shown at this width" in "".join(lines)


def test_the_papers_rows_stand_below_ours(artefact):
    table = artefact.table.set_index(["Loss", "From"])
    assert table.loc[("SMMD", "paper"), "Avg."] == "61.32 ± 0.39"
    assert table.loc[("CE", "paper"), "Humanities"] == "54.94 ± 0.68"
    assert len(table) == 6  # the paper has no row of NTL, nor of the untuned model

    data = artefact.data.set_index(["loss", "name"])
    row = data.loc[("smmd", "mmlu_stem")]
    assert row["published"] == 55.44
    assert row["published_error"] == 0.86


@pytest.mark.parametrize(
    ("run", "checks"),
    [
        ({}, {"limit": 100}), ({}, {"shots": 0}), ({"models": (SMALL,)}, {}),
        ({"tasks": ("svamp",)}, {}), ({"recipe": {"epochs": 2}}, {}),
    ],
)  # fmt: skip
def test_another_setting_has_no_published_value(run, checks, tmp_path):
    quick_run(tmp_path, **{**PAPER, **run})
    write_checks(tmp_path, **checks)
    artefact = MmluTable().build(read_run(tmp_path))
    assert "From" not in artefact.table.columns
    assert artefact.data["published"].isna().all()


def test_non_inferior_only_where_the_whole_interval_is_above_the_margin(artefact, runs):
    data = artefact.data[artefact.data["name"] == "mmlu"].set_index("loss")
    assert data.loc["smmd", "low"] > -1
    assert data.loc["ntl", "low"] < -1

    table = artefact.table.drop_duplicates("Loss").set_index("Loss")
    verdicts = table["Not worse"].to_dict()
    assert verdicts == {"untuned": "–", "CE": "–", "NTL": "unclear", "SMMD": "yes"}

    # Few questions show nothing.
    for report in (MmluTable(), RegressionTable()):
        table = report.build(runs("a look at mmlu")).table
        assert set(table["Not worse"]) == {"–", "unclear"}


SECONDS = {STOCK: 0.6, "ce": 0.4, "ntl": 0.42, "ntil": 0.9, "smmd": 0.41}
PEAKS = {STOCK: 8e9, "ce": 5e9, "ntl": 5.1e9, "ntil": 5.2e9, "smmd": 5.05e9}


def settings(name="qwen2.5-1.5b", **changes):
    geometry = named_geometries()[name]
    values = {
        "geometry": name, "config": geometry.config, "numeric_tokens": geometry.numeric_tokens,
        "losses": dict.fromkeys(("ce", "ntl", "ntil", "smmd"), 1), "device": "cuda",
        "steps": 8, "repeats": 3, "dtype": "bfloat16",
    }  # fmt: skip
    return OverheadSettings(**{**values, **changes})


def write_measurement(folder, chosen, failed=()):
    """Planted times: of each row the same, but for what all rows of a step have in common."""
    settings = json.loads(json.dumps(vars(chosen)))
    content = {"name": chosen.folder.name, "overhead": settings}
    write_json(folder / "manifest.json", content)

    for repeat in range(chosen.repeats):
        for at, row in enumerate(chosen.rows):
            result = planted(row, repeat, chosen.steps)
            if row in failed:
                result = {"error": failed[row]}
            file = folder / "rows" / f"{repeat}-{at}.json"
            write_json(file, {"row": row, "repeat": repeat, **result})
    return sb.read_run(folder)


def planted(row, repeat, steps):
    times = []
    for step in range(1, steps + 1):
        of_step = 1 + 0.1 * (step % 3) + 0.01 * repeat
        of_row = 1 + 0.01 * ((step * len(row)) % 5)
        wall = SECONDS[row] * of_step * of_row
        times.append([wall, 1.5 * wall])
    return {"device": "A GPU", "peak_bytes": int(PEAKS[row]), "steps": times}


def test_the_table_of_overhead_is_as_it_was(tmp_path):
    assert_golden(
        "overhead_gpu", OverheadTable().build(write_measurement(tmp_path, settings()))
    )


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (settings("qwen2.5-0.5b-2-layers"), "none for this model"),
        (settings(method="full"), "none for this setting"),
        (settings(numeric_tokens=1000), "none for this setting"),
        (
            settings(config={**settings().config, "num_hidden_layers": 2}),
            "none for this setting",
        ),
    ],
)
def test_for_another_model_or_setting_the_column_says_so(tmp_path, chosen, why):
    artefact = OverheadTable().build(write_measurement(tmp_path, chosen))
    assert set(artefact.table["Paper ratios"]) == {why}
    assert artefact.data["published_time_to_ce"].isna().all()


def test_a_failed_row_stands_in_the_table_and_says_why(tmp_path):
    run = write_measurement(
        tmp_path, settings(), failed={"ntil": "out of memory, see its log"}
    )
    artefact = OverheadTable().build(run)
    assert (
        "Failed: ntil, repeat 1: out of memory, see its log; repeat 2: "
        in artefact.caption
    )

    row = artefact.table.set_index("Loss").loc["NTIL"]
    assert row["Step time (ms)"] == "failed"
    values = row[["Time : CE", "Mem. (GB)", "Mem. : CE"]]
    assert set(values) == {"–"}


def test_every_other_report_skips_a_measurement(tmp_path):
    run = write_measurement(tmp_path / "overhead", settings(steps=4))
    made = {
        name
        for name in names("reports")
        if not make_report(run, load("reports", name), ()).skipped
    }
    assert made == {"overhead_table"}


SIZES = {
    "gsm8k": {"train": 6973, "validation": 500, "test": 1319},
    "svamp": {"test": 1000},
    "arithmetic[level=easy,operations=1..2]": {
        "train": 12000,
        "validation": 500,
        "test": 2000,
    },
    "clock_time[source=kaggle]": {"train": 9000, "validation": 1000, "test": 1440},
    "chartqa": {"train": 320, "validation": 40, "test": 100},
}
SOURCES = {"clock_time[source=kaggle]": "kaggle", "chartqa": "synthetic"}


def run_of(folder, *tasks):
    data = {
        task: {
            "sizes": SIZES.get(task, {"test": 40}),
            "identity": {"test": {"source": SOURCES.get(task)}},
        }
        for task in tasks
    }
    content = {"format": FORMAT, "name": "sizes", "experiment": {}, "data": data}
    write_json(folder / "manifest.json", content)
    return sb.read_run(folder)


def test_the_papers_sizes_stand_beside_its_own_tasks_and_data_alone(tmp_path):
    run = run_of(tmp_path, *SIZES)
    table = DatasetSizes().build(run).table.set_index("Task")
    assert table["Paper train"].tolist() == ["7,470", "–", "–", "11,520", "–"]
    assert table["Paper test"].tolist() == ["1,320", "1,000", "–", "1,440", "–"]
    assert table.loc["svamp", "Train"] == "–"
    assert table.loc["chartqa", "Data"] == "synthetic"


def test_without_a_task_of_the_paper_there_are_no_columns_for_it(tmp_path):
    artefact = DatasetSizes().build(
        run_of(tmp_path, "arithmetic[level=easy,operations=1..2]")
    )
    assert list(artefact.table) == ["Task", "Train", "Validation", "Test"]
