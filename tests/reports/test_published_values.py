"""Every number of the paper's tables in `paper.yaml`, against those read from its LaTeX.

`scripts/read_paper_values.py` makes the CSV of the LaTeX.
"""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from smmd_bench.reports._paper import read_rows

ROOT = Path(__file__).parents[2]
TABLES = yaml.safe_load((ROOT / "reports/paper.yaml").read_text(encoding="utf-8"))[
    "tables"
]
PRINTED = pd.read_csv(ROOT / "tests/data/paper_values.csv").fillna("")
KEYS = ["model", "task", "loss"]
IN_TEXT = {"unfiltered_train", "unfiltered_test"}


def test_every_table_of_the_paper_is_compared_and_none_is_left_out():
    labels = {
        table: entry["label"] for table, entry in TABLES.items() if "label" in entry
    }
    in_latex = PRINTED[PRINTED["label"] != ""]
    assert dict(zip(in_latex["table"], in_latex["label"], strict=True)) == labels
    assert sorted(TABLES[table]["number"] for table in labels) == [*range(1, 13)]


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_the_papers_numbers_and_no_others(table):
    # The text, and not the table, says on how many examples the percentiles are.
    names_and_text = {*KEYS, *IN_TEXT}
    if table == "error_p90":
        names_and_text.add("n")

    values = {}
    for row in read_rows(table):
        key = [row.get(name, "") for name in KEYS]
        for metric, value in row.items():
            if metric not in names_and_text and value is not None:
                values[*key, metric] = value

    printed = PRINTED.query("table == @table")
    printed = printed.set_index([*KEYS, "metric"])
    assert printed.index.is_unique
    expected = printed["value"].to_dict()
    assert values == expected
