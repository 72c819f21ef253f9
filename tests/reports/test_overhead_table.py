import json
from dataclasses import replace

import pandas as pd
import pytest
from smmd_bench.reports.overhead_table import OverheadTable

import smmd_bench as sb
from smmd_bench.overhead.settings import STOCK, OverheadSettings, named_geometries
from smmd_bench.plugin_system.registry import entries
from smmd_bench.publishing.write_reports import write_reports
from smmd_bench.storage.files import write_json, write_parquet
from tests.reports.golden import assert_golden, words

SECONDS = {STOCK: 0.6, "ce": 0.4, "ntl": 0.42, "ntil": 0.9, "smmd": 0.41}
PEAKS = {STOCK: 8e9, "ce": 5e9, "ntl": 5.1e9, "ntil": 5.2e9, "smmd": 5.05e9}


def settings(name="qwen2.5-1.5b", **changes):
    geometry = named_geometries()[name]
    values = {
        "geometry": name, "config": geometry.config, "numeric_tokens": geometry.numeric_tokens,
        "losses": dict.fromkeys(("ce", "ntl", "ntil", "smmd"), 1), "device": "cuda",
        "steps": 8, "drop": 2, "repeats": 3, "dtype": "bfloat16",
    }  # fmt: skip
    return OverheadSettings(**{**values, **changes})


def write_measurement(folder, chosen, failed=()):
    """Planted times: of each row the same, but for what all rows of a step have in common."""
    write_json(
        folder / "manifest.json",
        {"name": chosen.folder.name, "overhead": json.loads(json.dumps(chosen.to_dict()))},
    )
    steps, runs = [], []
    for repeat in range(chosen.repeats):
        for row in chosen.rows:
            error = failed.get(row) if failed else None
            peak = None if error else int(PEAKS[row])
            runs.append((row, repeat, peak, "A GPU", 2, error))
            for step in range(1, chosen.steps + 1) if not error else ():
                wall = SECONDS[row] * (1 + 0.1 * (step % 3) + 0.01 * repeat)
                wall *= 1 + 0.01 * ((step * len(row)) % 5)
                steps.append((row, repeat, step, wall, 1.5 * wall, step <= chosen.drop))
    write_parquet(
        folder / "steps.parquet",
        pd.DataFrame(
            steps, columns=["row", "repeat", "step", "wall_seconds", "cpu_seconds", "dropped"]
        ),
    )
    names = ["row", "repeat", "peak_bytes", "device", "threads", "error"]
    write_parquet(
        folder / "runs.parquet",
        pd.DataFrame(runs, columns=names).astype({"peak_bytes": "Int64", "error": "str"}),
    )
    return sb.read_run(folder)


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("overhead_gpu", settings()),
        ("overhead_cpu",
         settings("qwen2.5-0.5b-2-layers", device="cpu", threads=2, dtype="float32")),
    ],
)  # fmt: skip
def test_the_table_is_as_it_was(name, chosen, tmp_path):
    assert_golden(name, OverheadTable().build(write_measurement(tmp_path, chosen)))


def test_the_published_ratios_are_those_of_the_papers_numbers(tmp_path):
    table = OverheadTable().build(write_measurement(tmp_path, settings())).table
    published = table.set_index("Loss")["Paper ratios"]
    assert published["SMMD"] == f"{333.21 / 322.29:.3f} / {10.28 / 8.02:.3f}"
    assert published["NTIL"] == f"{929.07 / 322.29:.3f} / {10.27 / 8.02:.3f}"
    assert published["CE"] == "1.000 / 1.000"
    assert published["CE, stock Trainer"] == "–"


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (settings("qwen2.5-0.5b-2-layers"), "none for this model"),
        (settings(method="full"), "none for this setting"),
        (settings(numeric_tokens=1000), "none for this setting"),
        (settings(config={**settings().config, "num_hidden_layers": 2}), "none for this setting"),
    ],
)
def test_for_another_model_or_setting_the_column_says_so(tmp_path, chosen, why):
    artefact = OverheadTable().build(write_measurement(tmp_path, chosen))
    assert set(artefact.table["Paper ratios"]) == {why}
    assert artefact.data["published_time_to_ce"].isna().all()
    assert f"Table 7 of the paper has {why}." in words(artefact)


def test_a_failed_row_stands_in_the_table_and_says_why(tmp_path):
    run = write_measurement(tmp_path, settings(), failed={"ntil": "out of memory, see its log"})
    artefact = OverheadTable().build(run)
    row = artefact.table.set_index("Loss").loc["NTIL"]
    assert row["Step time (ms)"] == "failed"
    assert row[["Time : CE", "Mem. (GB)", "Mem. : CE"]].tolist() == ["–"] * 3
    assert "Failed: ntil, repeat 1: out of memory, see its log; repeat 2: " in words(artefact)


def test_without_cross_entropy_there_are_times_and_no_ratios(tmp_path):
    table = OverheadTable().build(write_measurement(tmp_path, settings(), {"ce": "died"})).table
    assert table.set_index("Loss").loc["SMMD", "Time : CE"] == "–"
    assert table.set_index("Loss").loc["SMMD", "Step time (ms)"] != "–"


def test_every_other_report_skips_a_measurement_and_its_page_has_this_one(tmp_path):
    folder = tmp_path / "overhead"
    run = write_measurement(folder, replace(settings(), steps=4))
    skips = {e.name: e.plugin().skip(run) for e in entries("reports") if e.plugin}
    assert skips.pop("overhead_table") is None
    assert all(skips.values())
    write_reports(folder)
    page = (folder / "reports" / "index.html").read_text(encoding="utf-8")
    assert "CE, stock Trainer" in page
    assert "(failed)" not in page


def test_where_every_row_failed_the_table_says_so(tmp_path):
    chosen = settings()
    run = write_measurement(tmp_path, chosen, dict.fromkeys(chosen.rows, "died"))
    assert set(OverheadTable().build(run).table["Step time (ms)"]) == {"failed"}
