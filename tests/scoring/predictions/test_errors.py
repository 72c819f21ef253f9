"""Every mistake in a file: one sentence with file, line and remedy, and nothing is written."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from smmd_bench.errors import UserError
from smmd_bench.run.predictions import score_predictions

from .conftest import COUNT, TASK, json_lines

SCOPE = f"the 5 examples of {TASK}, test with --limit 5"
FAILED = (  # as vllm 0.32 writes it, from its own classes
    '{"id":"vllm-1","custom_id":"test-0-1","response":{"status_code":400,"request_id":'
    '"vllm-batch-1","body":null},"error":{"error":{"message":"The prompt is too long.","type":'
    '"BadRequestError","param":null,"code":400}}}'
)
ANSWERED: dict[str, Any] = {
    "custom_id": "test-0-0",
    "response": {"body": {"choices": [{"text": "1", "finish_reason": "stop"}]}},
    "error": None,
}
SAMPLE: dict[str, Any] = {"doc_id": 0, "target": "-1", "resps": [["-1"]], "filter": "none"}
ROWS: list[dict[str, Any]] = [{"uid": f"test-0-{at}", "completion": "1"} for at in range(COUNT)]


def complaint(path: Path, **options: Any) -> str:
    """The error of scoring a file, without its name, after a look at what is on disk."""
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(UserError) as found:
        score_predictions(TASK, [path], limit=COUNT, out=path.parent / "out", **options)
    assert sorted(path.parent.rglob("*")) == before
    text = str(found.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert text.startswith(str(path))
    return text.removeprefix(str(path))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([*ROWS[:2], "{'uid': 1}"], ", line 3: is not valid JSON (Expecting property name enclosed "
         "in double quotes): write one JSON object per line."),
        ([*ROWS[:2], "7"], ', line 3: is 7, not a JSON object: write {"id": ..., "completion": '
         "...}."),
        (["[" * 100_000], ", line 1: is not valid JSON (it is nested too deeply): write one "
         "list of JSON objects."),
        ([], " is empty: give a file with one completion per example."),
        ([{"uid": "a", "text": "1"}], ", line 1: has no completion column (columns: uid, text; "
         "expected one of completion, prediction, response, output, generated_text): name it with "
         "--completion-column."),
        ([{"uid": "a", "output": "1", "response": "1"}], " has several possible completion "
         "columns (response, output): choose one with --completion-column."),
        ([{"uid": "a", "id": 1, "output": "1"}], " has several possible id columns (uid, "
         "id): choose one with --id-column."),
        ([ROWS[0], {"uid": "test-0-1", "response": "1"}], ", line 2: has the columns uid, response,"
         " but line 1 has uid, completion: give every row the same columns."),
        ([ROWS[0], {"completion": "1"}], ", line 2: has the columns completion, but line 1 has uid,"
         " completion: give every row the same columns."),
        ([{"completion": "1"}, ROWS[1]], ", line 2: has the columns uid, completion, but line 1 "
         "has completion: give every row the same columns."),
        ([ROWS[0], {"uid": "test-0-1", "completion": None}], ", line 2: the completion is None, "
         "not text: write a string, which may be empty."),
        ([ROWS[0], {"uid": "test-0-1", "completion": ["1"]}], ", line 2: the completion is ['1'], "
         "not text: write a string, which may be empty."),
        ([ROWS[0], {"uid": None, "completion": "1"}], ", line 2: the id is None: give the uid of "
         "an example, or its position in the split."),
        ([*ROWS, ROWS[1]], ", line 6: the id 'test-0-1' is already in line 2: keep one of "
         "them."),
        ([*ROWS[:3], {"uid": "test-0-7", "completion": "1"}], f", line 4: the id 'test-0-7' is "
         f"not one of {SCOPE} (the first is test-0-0): check --task, --split, --data-seed and "
         "--limit."),
        ([{"id": 1, "output": "1"}, {"id": 5, "output": "1"}], ", line 2: the id 5 is not a "
         f"position in {SCOPE} (0 to 4): check --task, --split and --limit."),
        ([{"id": -1, "output": "1"}], ", line 1: the id -1 is not a position in "
         f"{SCOPE} (0 to 4): check --task, --split and --limit."),
        ([{"id": 1, "output": "1"}, {"id": "1", "output": "1"}], ", line 2: the id '1' is already "
         "in line 1: keep one of them."),
        ([*ROWS[:2], *ROWS[3:]], f" has no completion for 1 of {SCOPE} (the first: test-0-2): add "
         "them, or give --partial to score the others."),
        (ROWS[:3], f" has no completion for 2 of {SCOPE} (the first: test-0-3): add them, or give "
         "--limit 3 to score the first ones, or --partial to score the others."),
        ([{"output": "1"}] * 4, f" has 4 rows for {SCOPE}: without an id column, rows are "
         "matched in order, so add one (uid, id, doc_id, custom_id), name yours with --id-column, "
         "or give --limit if the rows answer the first examples."),
        ([{**ROWS[0], "target": "12"}], ", line 1: its target '12' differs from that of the "
         "example test-0-0, '-1': check --task, --split and --data-seed, or remove the column "
         "target."),
        ([SAMPLE, {**SAMPLE, "doc_id": 1}, SAMPLE], ", line 3: doc_id 0 with the filter none is "
         "already in line 1: keep the lines of one evaluation."),
        ([SAMPLE, {**SAMPLE, "filter": "b", "resps": [["2"]]}], ", line 2: doc_id 0 has another "
         "answer in line 1: keep the lines of one evaluation."),
        ([{**SAMPLE, "resps": [[["-3.5", "False"]], [["-1.2", "True"]]]}], ", line 1: resps[0][0] "
         "is ['-3.5', 'False'], not text: give samples of a task that generates text "
         "(output_type generate_until), not of one that compares likelihoods."),
        ([SAMPLE, ROWS[1]], ", line 2: is not an lm-eval sample like the lines before it (it "
         "lacks resps or an integer doc_id): remove it."),
        ([ANSWERED, FAILED], ", line 2: the request 'test-0-1' failed (The prompt is too long): "
         "send it again, or delete the line and give --partial."),
        ([ANSWERED, {**ANSWERED, "error": "Timed out."}], ", line 2: the request 'test-0-0' failed "
         "(Timed out): send it again, or delete the line and give --partial."),
        ([{"custom_id": "a", "response": {"status_code": 429, "body": {"error": {"message":
         "Slow down"}}}, "error": None}], ", line 1: the request 'a' failed (Slow down): send it "
         "again, or delete the line and give --partial."),
        ([{"custom_id": "a", "response": {"body": {"data": []}}}], ", line 1: the request 'a' has "
         "no response.body.choices[0] with message.content or text: give the output of chat or "
         "text completions."),
        ([ANSWERED, ROWS[1]], ", line 2: is not a line of batch output like those before it "
         "(custom_id, response): remove it."),
    ],
)  # fmt: skip
def test_a_mistake_in_json_lines(tmp_path: Path, rows: list[Any], sentence: str) -> None:
    assert complaint(json_lines(tmp_path / "a.jsonl", rows)) == sentence


def test_a_mistake_in_a_json_list_is_named_by_entry_or_line(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps([*ROWS, "7"]))
    assert complaint(file).startswith(", entry 6: is '7', not a JSON object: write ")
    file.write_text('[\n{"id": 1, "output": "7"},\n{"id": 2 "output": "7"}\n]')
    assert complaint(file) == (
        ", line 3: is not valid JSON (Expecting ',' delimiter): write one list of JSON objects."
    )
    file.write_text("[]")
    assert complaint(file).startswith(" is empty: ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", " is empty: give a file with one completion per example."),
        ("uid,completion\n", " is empty: give a file with one completion per example."),
        ("uid,completion\na,1\nb,1,000\n", ", line 3: has 3 fields, but the header has 2: quote a "
         "text that holds a comma or a line break."),
        ("uid,completion,uid\na,1,b\n", ", line 1: the column 'uid' appears twice: rename one."),
        ('uid,completion\na,"1\n', ", line 2: is not valid CSV (unexpected end of data): double "
         "the quotation marks within a text, and close each text."),
        ("uid;completion\na;1\n", ", line 2: has no completion column (columns: uid;completion; "
         "expected one of completion, prediction, response, output, generated_text): name "
         "it with --completion-column."),
        ('uid,completion\ntest-0-0,"1\n2"\nx,1\n', ", line 4: the id 'x' is not one of "
         f"{SCOPE} (the first is test-0-0): check --task, --split, --data-seed and --limit."),
        ("uid,completion\ntest-0-0,1\n ,1\n", ", line 3: the id is ' ': give the uid of an example,"
         " or its position in the split."),
    ],
)  # fmt: skip
def test_a_mistake_in_a_csv(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    assert complaint(file) == sentence


def test_a_mistake_in_parquet_is_named_by_row(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pd.DataFrame({"uid": ["test-0-0", "test-0-1"], "output": ["1", None]}).to_parquet(file)
    assert complaint(file) == (
        ", row 2: the output is None, not text: write a string, which may be empty."
    )
    pd.DataFrame({"uid": ["test-0-0"], "output": [7]}).to_parquet(file)
    assert complaint(file).startswith(", row 1: the output is 7, not text: ")
    pd.DataFrame({"uid": [], "output": []}).to_parquet(file)
    assert complaint(file) == " is empty: give a file with one completion per example."
    file.write_bytes(file.read_bytes()[:-20])
    assert complaint(file).startswith(" is not a readable Parquet file (")


def test_what_is_not_utf_8_is_named_by_line(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"id": 0, "output": "7"}\n{"id": 1, "output": "\xff"}\n')
    assert complaint(file) == ", line 2: is not UTF-8: save the file as UTF-8."


def test_an_unknown_format_is_named_with_the_known_ones(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("seven\n")
    assert complaint(file) == (
        " has no known format: give JSON lines, a JSON list, CSV or Parquet, with the extension "
        ".jsonl, .json, .csv or .parquet."
    )


def test_a_column_that_is_not_there_is_named_with_its_option(tmp_path: Path) -> None:
    file = json_lines(tmp_path / "a.jsonl", ROWS)
    assert complaint(file, id_column="key") == (
        " has no column 'key' (it has uid, completion): check --id-column."
    )
    assert complaint(file, completion_column="text") == (
        " has no column 'text' (it has uid, completion): check --completion-column."
    )


def test_a_mistake_in_the_second_file_writes_nothing_of_the_first(tmp_path: Path) -> None:
    first = json_lines(tmp_path / "a.jsonl", ROWS)
    second = json_lines(tmp_path / "b.jsonl", ROWS[:4])
    with pytest.raises(UserError, match=r"b\.jsonl has no completion for 1 of "):
        score_predictions(TASK, [first, second], limit=COUNT, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_without_a_common_example_are_refused(tmp_path: Path) -> None:
    first = json_lines(tmp_path / "a.jsonl", ROWS[:2])
    second = json_lines(tmp_path / "b.jsonl", ROWS[2:])
    with pytest.raises(UserError, match="No example has a completion in every file"):
        score_predictions(TASK, [first, second], limit=COUNT, partial=True, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["ce"], "1 labels and 2 files of predictions were given: give one --label a file"),
        (["ce", "ce"], "Two files have the label 'ce': name each file with a --label of its own"),
        (["ce", " "], "The label '' is not a line of text"),
        (["ce", "a\nb"], r"The label 'a\\nb' is not a line of text"),
        ([], "Two files have the label 'a': name each file with a --label of its own"),
    ],
)
def test_labels_name_each_file(tmp_path: Path, labels: list[str], words: str) -> None:
    (tmp_path / "other").mkdir()
    files = [json_lines(tmp_path / name, ROWS) for name in ("a.jsonl", "other/a.jsonl")]
    with pytest.raises(UserError, match=words):
        score_predictions(TASK, files, labels, limit=COUNT, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
