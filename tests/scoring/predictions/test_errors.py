"""Every mistake in a file: one sentence with file, line and remedy, and nothing is written."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from smmd_bench.errors import UserError
from smmd_bench.run.predictions import score_predictions

from .conftest import COUNT, TASK, json_lines

SCOPE = f"the 5 examples of {TASK}, test with --limit 5"
SAMPLE: dict[str, Any] = {"doc_id": 0, "target": "-1", "resps": [["-1"]], "filter": "none"}
ROWS: list[dict[str, Any]] = [{"uid": f"test-0-{at}", "completion": "1"} for at in range(COUNT)]


def require(path: Path, sentence: str, **options: Any) -> None:
    """Scoring a file fails with its name and this sentence, in which "..." stands for any words;
    nothing is written."""
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(UserError) as found:
        score_predictions(TASK, [path], limit=COUNT, out=path.parent / "out", **options)
    assert sorted(path.parent.rglob("*")) == before
    pattern = re.escape(sentence).replace(re.escape("..."), ".*")
    assert re.fullmatch(f"{re.escape(str(path))},? {pattern}", str(found.value))
    assert str(found.value).endswith(".")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([*ROWS[:2], "{'uid': 1}"], "line 3: is not valid JSON (...): write one JSON object ..."),
        ([*ROWS[:2], "7"], "line 3: is 7, not a JSON object: write ..."),
        (["[" * 100_000], "line 1: is not valid JSON (it is nested too deeply): write ..."),
        ([], "is empty: give a file with one completion per example."),
        ([{"uid": "a", "text": "1"}],
         "line 1: has no completion column (columns: uid, text; ...): name it with ..."),
        ([{"uid": "a", "output": "1", "response": "1"}],
         "has several possible completion columns (response, output): ... --completion-column."),
        ([{"uid": "a", "id": 1, "output": "1"}],
         "has several possible id columns (uid, id): choose one with --id-column."),
        ([ROWS[0], {"uid": "test-0-1", "response": "1"}],
         "line 2: has the columns uid, response, but line 1 has uid, completion: give ..."),
        ([ROWS[0], {"completion": "1"}], "line 2: has the columns completion, but line 1 has ..."),
        ([{"completion": "1"}, ROWS[1]], "line 2: has the columns uid, completion, but line 1 ..."),
        ([ROWS[0], {"uid": "test-0-1", "completion": None}],
         "line 2: the completion is None, not text: write a string, which may be empty."),
        ([ROWS[0], {"uid": "test-0-1", "completion": ["1"]}],
         "line 2: the completion is ['1'], not text: write a string..."),
        ([ROWS[0], {"uid": None, "completion": "1"}], "line 2: the id is None: give the ..."),
        ([*ROWS, ROWS[1]], "line 6: the example test-0-1 is already in line 2: keep one of them."),
        ([*ROWS[:3], {"uid": "test-0-7", "completion": "1"}],
         f"line 4: the id 'test-0-7' is not one of {SCOPE} (the first is test-0-0): check ..."),
        ([{"id": 1, "output": "1"}, {"id": 5, "output": "1"}],
         f"line 2: the id 5 is not a position in {SCOPE} (0 to 4): check --task, ..."),
        ([{"id": -1, "output": "1"}], "line 1: the id -1 is not a position in ... (0 to 4): ..."),
        ([{"id": 1, "output": "1"}, {"id": "1", "output": "1"}],
         "line 2: the example test-0-1 is already in line 1: keep one of them."),
        ([*ROWS[:2], *ROWS[3:]],
         f"has no completion for 1 of {SCOPE} (the first: test-0-2): add them, or give --partial "
         "to score the others."),
        (ROWS[:3], "has no completion for 2 of ... (the first: test-0-3): ... --limit 3 ..."),
        ([{"output": "1"}] * 4,
         f"has 4 rows for {SCOPE}: ... add one (uid, id, doc_id, custom_id), ... --limit ..."),
        ([{**ROWS[0], "target": "12"}],
         "line 1: its target '12' differs from the target of the example test-0-0, '-1': ..."),
        ([SAMPLE, {**SAMPLE, "doc_id": 1}, SAMPLE],
         "line 3: doc_id 0 with the filter none is already in line 1: keep ... one evaluation."),
        ([SAMPLE, {**SAMPLE, "filter": "b", "resps": [["2"]]}],
         "line 2: doc_id 0 has another answer in line 1: keep the lines of one evaluation."),
        ([{**SAMPLE, "resps": [[["-3.5", "False"]], [["-1.2", "True"]]]}],
         "line 1: resps[0][0] is ['-3.5', 'False'], not text: give ... generate_until..."),
        ([SAMPLE, ROWS[1]], "line 2: is not an lm-eval sample like the lines before ..."),
        ([{"id": at + 1, "output": "1"} for at in range(3)], "has ids that count from 1, ..."),
        ([{"id": 0, "index": 1, "output": "1"}, {"id": 1, "index": 0, "output": "1"}],
         "has ids and a column 'index' that name different examples: ... --id-column."),
        ([{"idx": at, "output": "1"} for at in (3, 1, 2, 5, 4)],
         f"has a column 'idx' that is neither the position of each example in {SCOPE}, ..."),
        ([{**row, "label": "right"} for row in ROWS],
         "line 1: the task reads no number in its label 'right', nor in any other ...: check ..."),
    ],
)  # fmt: skip
def test_a_mistake_in_json_lines(tmp_path, rows, sentence):
    require(json_lines(tmp_path / "a.jsonl", rows), sentence)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.json", json.dumps([*ROWS, "7"]), "entry 6: is '7', not a JSON object: write ..."),
        ("a.json", '[\n{"id": 1, "output": "7"},\n{"id": 2 "output": "7"}\n]',
         "line 3: is not valid JSON (Expecting ',' delimiter): write one list of JSON objects."),
        ("a.json", "[]", "is empty: ..."),
        ("a.jsonl", b'{"id": 0, "output": "7"}\n{"id": 1, "output": "\xff"}\n',
         "line 2: is not UTF-8: save the file as UTF-8."),
        ("a.txt", "seven\n", "has no known format: give JSON lines, ... .parquet, also with .gz."),
        ("a.gz", b"\x1f\x8b\x08", "is not a whole gzip file (...): copy it again."),
        ("a.csv", "", "is empty: give a file with one completion per example."),
        ("a.csv", "uid,completion\n", "is empty: ..."),
        ("a.csv", "uid,completion\na,1\nb,1,000\n",
         "line 3: has 3 fields, but the header has 2: quote a text that holds a comma ..."),
        ("a.csv", "uid,completion,uid\na,1,b\n",
         "line 1: the column 'uid' appears twice: rename one."),
        ("a.csv", 'uid,completion\na,"1\n',
         "line 2: is not valid CSV (unexpected end of data): double the quotation marks ..."),
        ("a.csv", "uid;completion\na;1\n",
         "line 2: has no completion column (columns: uid;completion; ...): ..."),
        ("a.csv", 'uid,completion\ntest-0-0,"1\n2"\nx,1\n', "line 4: the id 'x' is not one of ..."),
        ("a.csv", "uid,completion\ntest-0-0,1\n ,1\n", "line 3: the id is ' ': give the uid ..."),
    ],
)  # fmt: skip
def test_a_mistake_in_another_file(tmp_path, name, text, sentence):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    require(tmp_path / name, sentence)


def test_a_mistake_in_parquet_is_named_by_row(tmp_path):
    file = tmp_path / "a.parquet"
    for rows, sentence in (
        (
            {"uid": ["test-0-0", "test-0-1"], "output": ["1", None]},
            "row 2: the output is None...",
        ),
        ({"uid": ["test-0-0"], "output": [7]}, "row 1: the output is 7, not text: ..."),
        ({"uid": [], "output": []}, "is empty: ..."),
    ):
        pd.DataFrame(rows).to_parquet(file)
        require(file, sentence)
    file.write_bytes(file.read_bytes()[:-20])
    require(file, "is not a readable Parquet file (... magic bytes ...): write it again.")


def test_a_column_that_is_not_there_is_named_with_its_option(tmp_path):
    file = json_lines(tmp_path / "a.jsonl", ROWS)
    has = "(it has uid, completion): check"
    require(file, f"has no column 'key' {has} --id-column.", id_column="key")
    require(file, f"has no column 'text' {has} --completion-column.", completion_column="text")


@pytest.mark.parametrize(
    ("first", "second", "partial", "words"),
    [
        (ROWS, ROWS[:4], False, r"b\.jsonl has no completion for 1 of "),
        (ROWS[:2], ROWS[2:], True, "No example has a completion in every file"),
    ],
)
def test_a_mistake_in_the_second_file_writes_nothing(tmp_path, first, second, partial, words):
    files = [json_lines(tmp_path / "a.jsonl", first), json_lines(tmp_path / "b.jsonl", second)]
    with pytest.raises(UserError, match=words):
        score_predictions(TASK, files, limit=COUNT, partial=partial, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["ce"], "--label is given 1 times and --predictions 2 times: give one --label a file"),
        (["ce", "ce"], "Two files have the label 'ce', in capitals or not: name each file with a"),
        (["CE", "ce"], "Two files have the label 'CE', in capitals or not"),
        (["ce", " "], "The label '' is not a line of text"),
        (["ce", "x" * 300], "has 300 characters, of which tables have room for 60"),
        (["ce", "a\nb"], r"The label 'a\\nb' is not a line of text"),
    ],
)
def test_labels_name_each_file(tmp_path, labels, words):
    (tmp_path / "other").mkdir()
    files = [json_lines(tmp_path / name, ROWS) for name in ("a.jsonl", "other/a.jsonl")]
    with pytest.raises(UserError, match=words):
        score_predictions(TASK, files, labels, limit=COUNT, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**62], pa.timestamp("us")),
        pa.array([1], pa.timestamp("us", tz="No/Where")),
        pa.array([2**31 - 1], pa.date32()),
        pa.array([b"\xff"], pa.binary()).view(pa.string()),
    ],
    ids=["a date", "a time zone", "a day", "a text"],
)
def test_a_value_that_python_does_not_have_is_named(tmp_path, column):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"uid": ["test-0-0"], "completion": ["1"], "other": column}), file)
    require(file, "is not a readable Parquet file (...): write it again.")


def test_a_small_file_of_too_many_rows_is_refused_before_it_is_read(tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"completion": pa.nulls(6_000_000, pa.string())}), file)
    assert file.stat().st_size < 20_000
    require(file, "is not a readable Parquet file (...): write it again.")


def test_a_folder_is_no_file_of_predictions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"The file of predictions \. is a folder"):
        score_predictions(TASK, [Path()], out=tmp_path / "out")
