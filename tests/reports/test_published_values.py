"""Every number of the paper's tables, and those of its text, against its LaTeX, both ways."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml
from smmd_bench.reports._paper import rows

from tests.reports.published_latex import READERS, values

BESIDE = Path(__file__).parents[3] / "shared" / "data"
TEX = Path(os.environ.get("SMMD_BENCH_DATA") or BESIDE).parent / "paper" / "smmd.tex"
PAPER = Path(__file__).parents[2] / "reports" / "paper.yaml"
TABLES = yaml.safe_load(PAPER.read_text(encoding="utf-8"))["tables"]
IN_TEXT = {"error_p90", "unfiltered_train", "unfiltered_test"}
"""What stands in no table of the paper: a table of `paper.yaml`, and two keys of another."""

pytestmark = pytest.mark.skipif(
    not TEX.is_file(), reason="the paper's LaTeX is not here: set SMMD_BENCH_DATA to shared/data"
)


@pytest.fixture(scope="module")
def tex() -> str:
    return TEX.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def prose(tex: str) -> str:
    """The text without comments, in one line."""
    return " ".join(re.sub(r"(?<!\\)%.*", "", tex).split())


def ours(table: str) -> dict[tuple[str | None, str, str | None, str], float]:
    found = {}
    for row in rows(table):
        key = (row.get("model"), row["task"], row.get("loss"))
        for metric, value in row.items():
            if metric not in {"model", "task", "loss", *IN_TEXT} and value is not None:
                found[(*key, metric)] = float(value)
    return found


def published(table: str, loss: str, task: str = "gsm8k", model: str = "qwen2.5-1.5b"):
    (row,) = (
        row
        for row in rows(table)
        if (row.get("model", model), row["task"], row.get("loss", loss)) == (model, task, loss)
    )
    return row


def test_every_table_of_the_paper_is_compared():
    assert set(READERS) == set(TABLES) - IN_TEXT
    assert sorted(TABLES[name]["number"] for name in READERS) == list(range(1, 13))


@pytest.mark.parametrize("table", READERS)
def test_a_table_has_the_papers_numbers_and_no_others(table, tex):
    printed = values(tex, table, TABLES[table]["label"])
    assert ours(table) == printed


def test_no_table_of_the_paper_is_left_out(tex):
    plain = re.sub(r"(?<!\\)%.*", "", tex)
    labels = set(re.findall(r"\\label\{(tab:[^}]*)\}", plain))
    assert labels == {TABLES[name]["label"] for name in READERS}


def test_ce_on_gsm8k_is_kept_as_it_is_printed_in_three_places(prose):
    counts = published("categories", "ce")
    kept = [
        published("math_reasoning", "ce")["exact_match"],
        published("ablation", "ce")["exact_match"],
        round(100 * counts["exact"] / counts["n"], 2),
    ]
    assert kept == [54.99, 54.97, 55.04]
    assert all(f"{value:.2f}" in prose for value in kept)


def test_the_90th_percentiles_of_the_text(prose):
    said = re.search(r"decreases from ([\d.]+) \(CE\) to ([\d.]+) \(Ours\)", prose)
    assert said is not None
    kept = [published("error_p90", loss)["p90"] for loss in ("ce", "smmd")]
    assert [float(value) for value in said.groups()] == kept == [168.40, 150.00]


def test_the_sizes_of_chartqa_before_filtering(prose):
    said = re.search(r"ChartQA contains ([\d.]+)k/([\d.]+)k train/test examples before", prose)
    assert said is not None
    row = published("dataset_sizes", "ce", "chartqa")
    kept = [row["unfiltered_train"], row["unfiltered_test"]]
    assert [round(1000 * float(value)) for value in said.groups()] == kept


SENTENCES = [
    (r"Qwen2.5-1.5B increases from (\S+)\\% to (\S+)\\% Acc", "math_reasoning", "gsm8k",
     "qwen2.5-1.5b", "exact_match", ("ce", "smmd")),
    (r"surpassing both NTL \((\S+)\\%\) and NTIL \((\S+)\\%\)", "math_reasoning", "gsm8k",
     "qwen2.5-1.5b", "exact_match", ("ntl", "ntil")),
    (r"Llama3-8B rises from (\S+)\\% to (\S+)\\% Acc", "math_reasoning", "svamp", "llama3-8b",
     "exact_match", ("ce", "smmd")),
    (r"Ministral-3-3B it improves Acc from (\S+)\\% to (\S+)\\%", "clock", "clock_time",
     "ministral-3-3b", "exact_match", ("ce", "smmd")),
    (r"cuts Time Gap from (\S+) to (\S+) minutes", "clock", "clock_time", "ministral-3-3b",
     "time_gap", ("ce", "smmd")),
    (r"gain on Qwen2.5-VL-7B from (\S+)\\% to (\S+)\\%", "chartqa", "chartqa", "qwen2.5-vl-7b",
     "exact_match", ("ce", "smmd")),
    (r"exact matches \((\d+)\$\\rightarrow\$(\d+)\)", "categories", "gsm8k", "qwen2.5-1.5b",
     "exact", ("ce", "smmd")),
    (r"near-misses \((\d+)\$\\rightarrow\$(\d+)\)", "categories", "gsm8k", "qwen2.5-1.5b",
     "near_miss", ("ce", "smmd")),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "table", "task", "model", "metric", "losses"), SENTENCES)
def test_what_the_text_repeats_is_what_the_tables_say(
    sentence, table, task, model, metric, losses, prose
):
    said = re.search(sentence, prose)
    assert said is not None
    kept = [published(table, loss, task, model)[metric] for loss in losses]
    assert [float(value) for value in said.groups()] == kept


def test_the_overheads_of_the_text_follow_from_the_table(prose):
    said = re.search(r"over CE: \$(\S+)\\%\$ on .*? and \$(\S+)\\%\$ on SmolLM3-3B", prose)
    assert said is not None
    kept = []
    for model in ("qwen2.5-1.5b", "smollm3-3b"):
        times = [published("runtime", loss, model=model)["step_time_ms"] for loss in ("smmd", "ce")]
        kept.append(round(100 * (times[0] / times[1] - 1), 2))
    assert [float(value) for value in said.groups()] == kept
