"""Completions of other programs: reasoning, labels in brackets, finish reasons, and order."""

import json

import pytest

import smmd_bench as sb
from smmd_bench.errors import UserError
from smmd_bench.maintenance.foreign_completions import score_predictions
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import read_run
from smmd_bench.scoring.predictions import read_finish_reason, read_predictions
from smmd_bench.scoring.score import texts_match

from ..conftest import DATA
from .conftest import COUNT, TASK, json_lines

TAGS = [
    ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<|think|>", "<|/think|>"),
    ("[THINK]", "[/THINK]"), ("\u25c1think\u25b7", "\u25c1/think\u25b7"), ("<THINK>\n", "</Think>"),
    ("<reasoning>", "</reasoning>"), ("<seed:think>", "</seed:think>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"), ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|im_start|>assistant\n<think>", "</think>"),
]  # fmt: skip


@pytest.mark.parametrize(("opened", "closed"), TAGS)
@pytest.mark.parametrize("name", ["arithmetic", "gsm8k", "chartqa", "svamp"])
def test_closed_reasoning_is_no_answer_and_open_reasoning_leaves_none(name, opened, closed):
    task = load_task(name)
    answer = task.parse("18")
    assert answer is not None
    assert task.parse(f"{opened}\nIs it #### 7?\n{closed}\n\n18") == answer
    if "<|end|>" not in closed:  # the prompt opened it
        assert task.parse(f"Is it #### 7?\n{closed}\n\n18") == answer
    assert task.parse(f"{opened}\nIs it #### 7?\n18") is None
    assert task.parse(f"18<|im_end|>\n{opened}7") == answer


def test_reasoning_counts_where_it_is_kept():
    completions = ["<think>4</think>18", "<think>4 and"]
    frame = sb.score("gsm8k", completions, ["18", "4"])
    assert frame["exact"].tolist() == [True, False]
    kept = sb.score("gsm8k", ["<think>#### 4</think> so 18"], ["4"], keep_reasoning=True)
    assert kept["exact"].all()


@pytest.mark.parametrize(
    ("texts", "targets", "matches"),
    [
        (["[NEGATIVE]", "[POSITIVE]"], ["[POSITIVE]", "[NEGATIVE]"], [False, False]),
        (["[POSITIVE]\n"], ["[POSITIVE]"], [True]),
        (["cat [SEP]", "cat", "cat [MASK]"], ["cat [MASK]", "cat [SEP]", "cat [MASK]"],
         [False, False, True]),
        (["<pos>", "<neg>"], ["<neg>", "<neg>"], [False, True]),
        (["cat [MASK]", "cat"], ["cat", "cat [MASK]"], [False, False]),
        (["cat</s>", "<s> cat", "<think>dog</think> cat"], ["cat"] * 3, [True] * 3),
        (["answer"], ["answer </s> and more"], [False]),
        (["\u200ecat\u00a0nap\r\n"], ["cat nap"], [True]),
        (["a\u00adb", "ab"], ["ab", "a\u00adb"], [False, False]),
        (["\u200e", ""], ["\u200e", "\u200f"], [True, False]),
    ],
)  # fmt: skip
def test_a_target_is_never_another_ones_text(texts, targets, matches):
    assert texts_match(texts, targets) == matches


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        *[(word, "length") for word in ("max_tokens", "MAX_TOKENS", "length", "token_limit")],
        *[(word, "length") for word in ("FinishReason.MAX_TOKENS", "LENGTH", "model_length")],
        *[(word, "stop") for word in ("stop", "STOP", "end_turn", "eos_token", "COMPLETE")],
        *[(word, None) for word in ("", None, "odd", "2", "unknown", "error")],
    ],
)
def test_a_finish_reason_means_cut_off_or_ended_or_nothing(reason, kind):
    assert read_finish_reason(reason) == kind


def test_an_unknown_finish_reason_gives_no_rate_and_is_named(tmp_path, right):
    said: list[str] = []
    for words, rates in (["max_tokens", "end_turn"], [20.0]), (["odd", "stop"], []):
        rows = [{**row, "stop_reason": words[at > 0]} for at, row in enumerate(right)]
        file = json_lines(tmp_path / f"{words[0]}.jsonl", rows)
        out = score_predictions(TASK, [file], limit=COUNT, out=tmp_path / words[0], say=said.append)
        metrics = read_run(out.path).metrics
        values = metrics[metrics["metric"] == "truncation_rate"]["value"].dropna().tolist()
        assert values == rates
    assert "'odd' means cut off" in said[-1]


def test_an_answer_that_reasoning_used_up_is_empty(tmp_path):
    row = {"uid": "a", "completion": None, "reasoning_content": "so far"}
    assert read_predictions(json_lines(tmp_path / "a.jsonl", [row])).rows[0].completion == ""


def test_an_inspect_log_in_json_is_read_as_the_packed_one(tmp_path):
    packed = read_predictions(DATA / "inspect" / "easy.eval")
    samples = [
        {
            "id": int(row.ids["id"]) + 1,
            "epoch": epoch,
            "input": row.prompts["input"],
            "target": row.targets["target"],
            "output": {
                "completion": row.completion if epoch == 1 else "9",
                "choices": [{"stop_reason": row.finish_reason}],
            },
        }
        for epoch in (1, 2)
        for row in packed.rows
    ]
    log = {"version": 2, "status": "success", "eval": {}, "samples": samples}
    (tmp_path / "a.json").write_text(json.dumps(log, indent=1))
    rows = read_predictions(tmp_path / "a.json").rows
    assert [(row.ids, row.completion, row.finish_reason, row.targets) for row in rows] == [
        (row.ids, row.completion, row.finish_reason, row.targets) for row in packed.rows
    ]


@pytest.fixture
def table(tmp_path):
    """A task of 12 questions, whose own order is that of a hash."""
    lines = [f"What is {at} times 3?,{3 * at},test" for at in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["question,answer,split", *lines, "a,1,train"]))
    return f"table[path={tmp_path / 't.csv'},split=split]"


@pytest.mark.parametrize(
    ("columns", "by"),
    [
        (lambda at: {}, "order of the rows"),
        (lambda at: {"index": at}, "position"),
        (lambda at: {"question": f"What is {at} times 3?"}, "prompt"),
        (lambda at: {"item": f"table-{at + 1}"}, "uid"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_rows_of_a_table_are_matched_in_the_order_of_its_file(tmp_path, table, columns, by, turned):
    rows = [{**columns(at), "completion": str(3 * at)} for at in range(12)]
    if turned and columns(0):
        rows = rows[::-1]
    said: list[str] = []
    file = json_lines(tmp_path / "a.jsonl", rows)
    out = score_predictions(table, [file], out=tmp_path / "out", say=said.append)
    assert read_run(out.path).completions["exact"].all()
    assert by in said[0]


def test_numbers_that_may_be_an_order_are_not_passed_over(tmp_path, table):
    rows = [{"nr": 11 - at, "completion": "3"} for at in range(12)]
    with pytest.raises(UserError, match=r"column nr that may say another order .*--id-column"):
        score_predictions(table, [json_lines(tmp_path / "a.jsonl", rows)], out=tmp_path / "out")


def test_uids_are_found_in_any_column_and_an_order_is_proven_or_refused(tmp_path, examples):
    def score(rows):
        file = json_lines(tmp_path / "a.jsonl", rows)
        out = score_predictions(TASK, [file], limit=COUNT, out=tmp_path / "out")
        return read_run(out.path).completions["exact"].all()

    assert score([{"custom_id": e.uid, "output": e.target} for e in examples[::-1]])
    assert score([{"output": e.target, "gold": e.target} for e in examples])
    for columns in ({}, {"gold": "see file"}, {"prompt": "Answer:"}):
        with pytest.raises(UserError, match=r"prove.* `smmd-bench sample .* --split test --json"):
            score([{**columns, "output": e.target} for e in examples])
    with pytest.raises(UserError, match="row 2: its custom_id 'x' is no uid"):
        score([{"custom_id": "x" if at == 1 else e.uid, "output": "1"}
               for at, e in enumerate(examples)])  # fmt: skip
