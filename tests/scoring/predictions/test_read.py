"""Every format, from small files as people write them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from smmd_bench.errors import UserError
from smmd_bench.scoring.predictions.read import read_predictions

from .conftest import json_lines


def rows_of(path: Path, **options: str) -> list[tuple[Any, ...]]:
    """Place, id and completion of every prediction."""
    return [(p.place, p.id, p.completion) for p in read_predictions(path, **options).rows]


@pytest.mark.parametrize("id_name", ["uid", "id", "doc_id", "custom_id"])
@pytest.mark.parametrize(
    "name", ["completion", "prediction", "response", "output", "generated_text"]
)
def test_usual_column_names_are_found(tmp_path, id_name, name):
    file = json_lines(tmp_path / "a.jsonl", [{"model": "m", id_name: 0, name: "7"}])
    assert rows_of(file) == [("line 1", 0, "7")]


def test_other_column_names_are_given(tmp_path):
    rows = [{"question": "q1", "id": 9, "output": "no", "answer": "7"}]
    file = json_lines(tmp_path / "a.jsonl", rows)
    found = rows_of(file, id_column="question", completion_column="answer")
    assert found == [("line 1", "q1", "7")]


JSON_LIST = json.dumps([{"id": 0, "output": "7"}, {"id": 1, "output": ""}], indent=1)
OF_LIST = [("entry 1", 0, "7"), ("entry 2", 1, "")]
LINE, OF_LINE = '{"id": 0, "output": "7"}', [("line 1", 0, "7")]
SEPARATED = "7\u2028and\x85so\non"
LONG = "7" * 200_000


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        *[(name, JSON_LIST, OF_LIST) for name in ("a.json", "a.jsonl", "a")],
        *[(name, LINE, OF_LINE) for name in ("a.json", "a.ndjson", "a.txt")],
        ("windows.jsonl", f"\ufeff{LINE}\r\n\r\n", OF_LINE),
        ("half_a_surrogate.jsonl", LINE.replace("7", "7 \\ud83d"), [("line 1", 0, "7 ?")]),
        (
            "blank_line.jsonl",
            f"\n{json.dumps({'id': 0, 'output': SEPARATED}, ensure_ascii=False)}\n",
            [("line 2", 0, SEPARATED)],
        ),
        (
            "a.csv",
            'id, completion\n007,"so:\n1,000"\n\nNA,"say ""7"""\n',
            [("line 2", "007", "so:\n1,000"), ("line 5", "NA", 'say "7"')],
        ),
        ("a.tsv", f"id\tcompletion\n0\t{LONG}\n", [("line 2", "0", LONG)]),
        ("windows.csv", 'id,completion\r\n0,"a\r\nb"\r\n', [("line 2", "0", "a\r\nb")]),
    ],
    ids=lambda x: x if len(x) < 30 else "",
)
def test_every_format_is_known_by_its_content(tmp_path, name, text, rows):
    (tmp_path / name).write_bytes(text.encode())
    assert rows_of(tmp_path / name) == rows
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert rows_of(tmp_path / f"{name}.gz") == rows


def test_parquet_is_read_by_extension_or_content(tmp_path):
    folder = tmp_path / "uid=x"  # no partition
    folder.mkdir()
    for name in ("a.parquet", "a.data"):
        frame = pd.DataFrame({"id": pd.Categorical(["u", "v"]), "output": ["7", ""]})
        frame.to_parquet(folder / name)
        assert rows_of(folder / name) == [("row 1", "u", "7"), ("row 2", "v", "")]


def test_finish_reasons_and_targets_are_read_where_they_are(tmp_path):
    rows = [
        {"id": 0, "output": "7", "finish_reason": "length", "target": "8"},
        {"id": 1, "output": "7", "finish_reason": None, "target": 2},
    ]
    found = read_predictions(json_lines(tmp_path / "a.jsonl", rows)).rows
    said = [(p.finish_reason, p.targets) for p in found]
    assert said == [("length", {"target": ["8"]}), (None, {"target": ["2"]})]


@pytest.mark.parametrize(
    ("columns", "index", "prompts", "targets"),
    [
        ({"Index": 3, " Prompt": "a", "ANSWER": "7"}, {"Index": 3}, {" Prompt": "a"},
         {"ANSWER": ["7"]}),
        ({"question": "", "input": "b", "labels": [7, "8"], "label": True}, {}, {"input": "b"},
         {"labels": ["7", "8"]}),
        ({"messages": [{"role": "system", "content": "a"},
                       {"role": "user", "content": [{"type": "text", "text": "b"}]}]},
         {}, {"messages": "a\nb"}, {}),
        ({"answers": {"text": ["7"], "start": [0]}, "gold": float("nan")}, {}, {},
         {"answers": ["7"]}),
    ],
)  # fmt: skip
def test_what_a_row_says_of_its_example_is_read(tmp_path, columns, index, prompts, targets):
    rows = [{"output": "7", **columns}]
    (found,) = read_predictions(json_lines(tmp_path / "a.jsonl", rows)).rows
    assert (found.index, found.prompts, found.targets) == (index, prompts, targets)


def test_lm_eval_samples_give_the_raw_answer_once_a_document(tmp_path):
    rows = [
        {"doc_id": d, "target": "7", "resps": [[f"so {d}"]], "filtered_resps": [f], "filter": f}
        for f in ("strict-match", "flexible-extract")
        for d in (3, 1)
    ]
    found = read_predictions(json_lines(tmp_path / "samples_x.jsonl", rows))
    assert (found.form, found.positions) == ("lm-eval samples", True)
    assert [(p.place, p.id, p.completion, p.targets) for p in found.rows] == [
        ("line 1", 3, "so 3", {"target": ["7"]}),
        ("line 2", 1, "so 1", {"target": ["7"]}),
    ]


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(UserError, match="a does not exist: check --predictions"):
        read_predictions(tmp_path / "a")
    with pytest.raises(UserError, match="is a folder: check --predictions"):
        read_predictions(tmp_path)
