"""Files of completions: every format, and what of a row is read."""

import gzip
import json

import pandas as pd
import pytest

from smmd_bench.scoring.predictions import read_predictions

from ..conftest import DATA, expect_user_error
from .conftest import COUNT, json_lines, score_files

LIST = json.dumps([{"id": 2**65, "output": "7"}, {"id": 1, "output": ""}], indent=1)
LARGE = str(2**65)
LINE = f'{{"id": {LARGE}, "output": "7"}}'


def rows_of(path, **options):
    """Ids and completion of every prediction."""
    return [
        (*p.ids.values(), p.completion) for p in read_predictions(path, **options).rows
    ]


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        *[(name, LIST, [(LARGE, "7"), ("1", "")]) for name in ("a.json", "a.jsonl", "a")],
        *[(name, LINE, [(LARGE, "7")]) for name in ("a.json", "a.txt")],
        ("windows.jsonl", f"\ufeff{LINE}\r\n\r\n", [(LARGE, "7")]),
        ("lines.jsonl", '\n{"id": 0, "output": "7\u2028and\x85so\\non"}\n',
         [("0", "7\u2028and\x85so\non")]),
        ("a.csv", 'id, completion\n007,"so:\n1,000"\n\nNA,"say ""7"""\n',
         [("007", "so:\n1,000"), ("NA", 'say "7"')]),
        ("a.tsv", "id\tcompletion\n0\t7\n", [("0", "7")]),
    ],
)  # fmt: skip
def test_every_format_is_known_by_its_content(tmp_path, name, text, rows):
    (tmp_path / name).write_bytes(text.encode())
    assert rows_of(tmp_path / name) == rows
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert rows_of(tmp_path / f"{name}.gz") == rows


def test_parquet_is_read_by_extension_or_content(tmp_path):
    for name in ("a.parquet", "a.data"):
        frame = pd.DataFrame({"id": pd.Categorical(["u", "v"]), "output": ["7", ""]})
        frame.assign(answers=[["1"], ["2", "3"]]).to_parquet(tmp_path / name)
        assert rows_of(tmp_path / name) == [("u", "7"), ("v", "")]
        assert read_predictions(tmp_path / name).rows[1].targets == {
            "answers": ["2", "3"]
        }


def test_the_first_epoch_of_an_inspect_log_is_read():
    """Inspect 0.3.291 wrote it, packed by Zstandard, of an answer that was cut and four others."""
    file = read_predictions(DATA / "inspect/easy.eval")
    ids_and_texts = [(p.ids["id"], p.completion, p.finish_reason) for p in file.rows]
    assert ids_and_texts[:2] == [("0", "-1", "stop"), ("1", "1/5", "stop")]
    assert ids_and_texts[3] == ("3", "999", "max_tokens")
    assert file.rows[1].targets == {"target": ["1/5"]}


def test_columns_of_other_names_are_given_and_those_that_are_not_there_named(tmp_path):
    rows = [{"question": "q1", "id": 9, "output": "no", "answer": "7"}]
    file = json_lines(tmp_path / "a.jsonl", rows)
    assert rows_of(file, id_column="question", completion_column="answer") == [
        ("q1", "7")
    ]
    for flag in ("id_column", "completion_column"):
        with expect_user_error(f"--{flag.replace('_', '-')}"):
            read_predictions(file, **{flag: "key"})


def test_what_a_row_says_of_its_example_is_read(tmp_path):
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
    row = {
        "Index": 3, "Question": "c", "input": "", "messages": messages, "output": "7",
        "ground truth": {"text": ["7", 8]}, "label": True, "gold": None, "finish_reason": "length",
    }  # fmt: skip
    file = json_lines(tmp_path / "a.jsonl", [row])
    (prediction,) = read_predictions(file).rows

    assert prediction.ids == {"Index": "3"}
    assert prediction.prompts == {"Question": "c", "messages": "a\nb"}
    assert prediction.targets == {"ground truth": ["7", "8"]}
    assert prediction.finish_reason == "length"


ROW = {"uid": "test-0-0", "completion": "1"}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", [ROW, "{'uid': 1}"], "not a readable"),
        ("a.gz", b"\x1f\x8b\x08", "not a readable"),
        ("a.parquet", b"PAR1 and no more", "not a readable"),
        ("a.eval", b"no archive", "not a readable"),
        ("a.csv", ["uid,completion", "a,1", "b,1,000"], "not a readable"),
        *[(name, [], "not a readable") for name in ("a.jsonl", "a.csv")],
        ("a.csv", ["uid;completion", "a;1"], "no column for its completion.*uid;completion"),
        ("a.jsonl", [{"id": 0, "output": "1", "response": "1"}], "response and output .*--compl"),
        ("a.jsonl", [ROW, {**ROW, "completion": None}], "row 2: its completion is nan, not text"),
        ("a.jsonl", [{"doc_id": 0, "resps": [[["-3.5", "False"]]]}], "row 1: its completion is"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused(tmp_path, name, content, words):
    file = tmp_path / name
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        json_lines(file, content)
    with expect_user_error(words):
        read_predictions(file)


@pytest.mark.parametrize("form", ["lines", "list", "gz"])
def test_samples_of_lm_eval_are_scored_by_their_raw_answers(cache, tmp_path, form):
    """lm-eval 0.4.13 wrote them, two filters a document. The parser reads the first line, so that
    the third and fourth are wrong."""
    content = (DATA / "lm_eval/samples_easy_2026-11-21.jsonl").read_bytes()
    lines = content.splitlines()
    assert len(lines) == 2 * COUNT
    file = tmp_path / "samples.jsonl"
    if form == "list":
        content = b"[%b]" % b",".join(lines)
    elif form == "gz":
        file = tmp_path / "samples.jsonl.gz"
        content = gzip.compress(content)
    file.write_bytes(content)

    run, (note,) = score_files(tmp_path / "out", file)
    assert [*run.completions["exact"]] == [True, True, False, False, True]
    assert "5 completions by prompt" in note
    with expect_user_error(r"row 1: its inputs is not that of .* test-1-0"):
        score_files(tmp_path / "other", file, data_seed=1)


def test_details_of_lighteval_are_scored_by_what_its_metrics_read(cache, tmp_path):
    """lighteval 0.13.0 wrote the file: documents 3, 0, 4, 1 and 2, of which 3 is wrong."""
    file = DATA / "lighteval/details_easy_2026-11-26T08-04-31.576316.parquet"
    assert [row[0] for row in rows_of(file)] == [*"30412"]

    run, _ = score_files(tmp_path / "out", file)
    assert run.completions["exact"].tolist() == [True, True, True, False, True]
    assert [*run.cells["loss"]] == ["easy"]

    doc = {"id": "0", "query": "q", "choices": ["6", "7"], "gold_index": [1]}
    answer = {"text": ["<think>6</think>7"], "text_post_processed": ["7"]}
    detail = json_lines(tmp_path / "a.jsonl", [{"doc": doc, "model_response": answer}])
    (prediction,) = read_predictions(detail).rows
    assert prediction.completion == "7"
    assert prediction.targets == {"target": ["7"]}
    json_lines(detail, [{"doc": {**doc, "gold_index": [2]}, "model_response": answer}])
    with expect_user_error(r"a\.jsonl does not have what lighteval 0\.13 writes"):
        read_predictions(detail)
