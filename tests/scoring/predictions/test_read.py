"""Every format, from small files as people write them."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from smmd_bench.errors import UserError
from smmd_bench.scoring.predictions.read import read_predictions

from .conftest import json_lines

CHAT = (  # as vllm 0.32 writes it, from its own classes
    '{"id":"vllm-1","custom_id":"test-0-0","response":{"status_code":200,"request_id":'
    '"vllm-batch-1","body":{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m",'
    '"choices":[{"index":0,"message":{"role":"assistant","content":"-1","refusal":null,'
    '"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,'
    '"finish_reason":"stop","stop_reason":null,"token_ids":null,"routed_experts":null}],'
    '"service_tier":null,"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2}}},'
    '"error":null}'
)


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
    assert [(p.finish_reason, p.target) for p in found] == [("length", "8"), (None, "2")]


def test_lm_eval_samples_give_the_raw_answer_once_a_document(tmp_path):
    rows = [
        {"doc_id": d, "target": "7", "resps": [[f"so {d}"]], "filtered_resps": [f], "filter": f}
        for f in ("strict-match", "flexible-extract")
        for d in (3, 1)
    ]
    found = read_predictions(json_lines(tmp_path / "samples_x.jsonl", rows))
    assert (found.form, found.positions) == ("lm-eval samples", True)
    assert [(p.place, p.id, p.completion, p.target) for p in found.rows] == [
        ("line 1", 3, "so 3", "7"),
        ("line 2", 1, "so 1", "7"),
    ]


def test_batch_output_of_chat_and_of_text_completions_is_read(tmp_path):
    text = {
        "custom_id": "b",
        "response": {"body": {"choices": [{"text": "8", "finish_reason": "length"}]}},
    }
    cut = {"message": {"content": None}, "finish_reason": "length"}  # while it was reasoning
    reasoning = {"custom_id": "c", "response": {"body": {"choices": [cut]}}, "error": None}
    found = read_predictions(json_lines(tmp_path / "batch.jsonl", [CHAT, text, reasoning]))
    assert found.form == "OpenAI batch output"
    assert [(p.id, p.completion, p.finish_reason) for p in found.rows] == [
        ("test-0-0", "-1", "stop"),
        ("b", "8", "length"),
        ("c", "", "length"),
    ]


def test_a_plain_response_column_beside_custom_id_is_no_batch_output(tmp_path):
    file = json_lines(tmp_path / "a.jsonl", [{"custom_id": "a", "response": "7"}])
    assert read_predictions(file).form == "JSON lines"


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(UserError, match="a does not exist: check --predictions"):
        read_predictions(tmp_path / "a")
    with pytest.raises(UserError, match="is a folder: check --predictions"):
        read_predictions(tmp_path)
