"""Completions of other programs: reasoning, labels in brackets, finish reasons, and order."""

import json
from dataclasses import replace

import pytest

import smmd_bench as sb
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.scoring.foreign_logs import find_samples
from smmd_bench.scoring.predictions import read_finish_reason, read_predictions
from smmd_bench.scoring.score import texts_match

from ..conftest import DATA, expect_user_error
from .conftest import COUNT, json_lines, score_files

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
def test_closed_reasoning_is_no_answer_and_open_reasoning_leaves_none(
    name, opened, closed
):
    task = load_task(name)
    answer = task.parse("18")
    assert answer is not None
    assert task.parse(f"{opened}\nIs it #### 7?\n{closed}\n\n18") == answer
    assert task.parse(f"{opened}\nIs it #### 7?\n18") is None
    assert task.parse(f"18<|im_end|>\n{opened}7") == answer
    # A template may have opened the reasoning in the prompt; <|end|> is the end of any text.
    if "<|end|>" not in closed:
        assert task.parse(f"Is it #### 7?\n{closed}\n\n18") == answer


def test_reasoning_counts_where_it_is_kept():
    frame = sb.score("gsm8k", ["<think>4</think>18", "<think>4 and"], ["18", "4"])
    assert frame["exact"].tolist() == [True, False]
    with_reasoning = sb.score(
        "gsm8k", ["<think>#### 4</think> so 18"], [4], keep_reasoning=True
    )
    assert with_reasoning["exact"].all()


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
        *[
            (word, "length")
            for word in ("max_tokens", "MAX_TOKENS", "length", "token_limit")
        ],
        *[
            (word, "length")
            for word in ("FinishReason.MAX_TOKENS", "LENGTH", "model_length")
        ],
        *[
            (word, "stop")
            for word in ("stop", "STOP", "end_turn", "eos_token", "COMPLETE")
        ],
        *[(word, None) for word in ("", None, "odd", "2", "unknown", "error")],
    ],
)
def test_a_finish_reason_means_cut_off_or_ended_or_nothing(reason, kind):
    assert read_finish_reason(reason) == kind


def score_with_reasons(tmp_path, right, first, other):
    """The truncation rate of completions that end for these reasons, and what was said."""
    reasons = [first, *[other] * (COUNT - 1)]
    rows = [
        {**row, "stop_reason": reason}
        for row, reason in zip(right, reasons, strict=True)
    ]
    run, sentences = score_files(
        tmp_path / "out", json_lines(tmp_path / "a.jsonl", rows)
    )
    rates = run.metrics.query("metric == 'truncation_rate'")["value"].dropna()
    return rates.tolist(), sentences


def test_known_finish_reasons_give_the_truncation_rate(tmp_path, right):
    rates, sentences = score_with_reasons(tmp_path, right, "max_tokens", "end_turn")
    assert rates == [20.0]
    assert len(sentences) == 1


def test_an_unknown_finish_reason_gives_no_rate_and_is_named(tmp_path, right):
    rates, sentences = score_with_reasons(tmp_path, right, "odd", "stop")
    assert rates == []
    assert "'odd' means cut off" in sentences[-1]


def test_an_answer_that_reasoning_used_up_is_empty(tmp_path):
    row = {"uid": "a", "completion": None, "reasoning_content": "so far"}
    assert (
        read_predictions(json_lines(tmp_path / "a.jsonl", [row])).rows[0].completion
        == ""
    )


def test_the_output_folder_of_lm_eval_holds_the_newest_samples_of_each_model(tmp_path):
    def write(name):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}\n")
        return file

    with expect_user_error("has no samples_TASK_DATE.jsonl: run lm-eval with --log_"):
        find_samples(tmp_path, "gsm8k")
    first, second = "2026-11-21T08-00-00.5.jsonl", "2026-11-22T08-00-00.5.jsonl"
    write(f"a/results_{second}")
    write(f"a/samples_gsm8k_{first}")
    newest = [write(f"{model}/samples_gsm8k_{second}") for model in "ab"]
    assert find_samples(tmp_path, "gsm8k") == newest
    assert find_samples(tmp_path, "other") == newest

    write(f"b/samples_gsm8k_cot_{first}")
    assert find_samples(tmp_path, "gsm8k") == newest
    named = (
        r"samples of gsm8k, gsm8k_cot, and none of svamp: give the files of one of them, such as "
        rf"--predictions {newest[0]} --predictions {newest[1]}\."
    )
    with expect_user_error(named):
        find_samples(tmp_path, "svamp")


def test_an_inspect_log_in_json_is_read_as_the_packed_one(tmp_path):
    packed = read_predictions(DATA / "inspect/easy.eval").rows
    samples = []
    for row in packed:
        choices = [{"stop_reason": row.finish_reason}]
        sample = {
            "id": int(row.ids["id"]) + 1,
            "epoch": 1,
            "input": row.prompts["input"],
            "target": row.targets["target"],
            "output": {"completion": row.completion, "choices": choices},
        }
        second_epoch = {
            **sample,
            "epoch": 2,
            "output": {"completion": "9", "choices": choices},
        }
        samples += [sample, second_epoch]

    file = tmp_path / "a.json"
    log = {"version": 2, "status": "success", "eval": {}, "samples": samples}
    file.write_text(json.dumps(log, indent=1))
    # Only the names of the files differ, and columns that only one of them has.
    for row, expected in zip(read_predictions(file).rows, packed, strict=True):
        assert replace(row, place="", cells={}) == replace(expected, place="", cells={})


@pytest.fixture
def table(tmp_path):
    """A task of 12 questions, whose own order is that of a hash."""
    lines = [f"What is {at} times 3?,{3 * at},test" for at in range(12)]
    (tmp_path / "t.csv").write_text(
        "\n".join(["question,answer,split", *lines, "a,1,train"])
    )
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
def test_rows_of_a_table_are_matched_in_the_order_of_its_file(
    tmp_path, table, columns, by, turned
):
    rows = [{**columns(at), "completion": str(3 * at)} for at in range(12)]
    # Without a column that tells, only the order of the file does.
    if turned and columns(0):
        rows.reverse()
    file = json_lines(tmp_path / "a.jsonl", rows)
    run, (sentence,) = score_files(tmp_path / "out", file, task=table, limit=None)
    assert run.completions["exact"].all()
    assert by in sentence


def test_numbers_that_may_be_an_order_are_not_passed_over(tmp_path, table):
    rows = [{"nr": 11 - at, "completion": "3"} for at in range(12)]
    file = json_lines(tmp_path / "a.jsonl", rows)
    with expect_user_error(r"column nr that may say another order .*--id-column"):
        score_files(tmp_path / "out", file, task=table, limit=None)


@pytest.fixture
def score_rows(tmp_path):
    def score(rows):
        file = json_lines(tmp_path / "a.jsonl", rows)
        run, _ = score_files(tmp_path / "out", file)
        return run.completions["exact"]

    return score


def test_uids_are_found_in_any_column(score_rows, examples):
    rows = [{"custom_id": e.uid, "output": e.target} for e in examples[::-1]]
    assert score_rows(rows).all()
    rows[1]["custom_id"] = "x"
    with expect_user_error("row 2: its custom_id 'x' is no uid"):
        score_rows(rows)


def test_an_order_is_proven_by_targets(score_rows, examples):
    assert score_rows([{"output": e.target, "gold": e.target} for e in examples]).all()


@pytest.mark.parametrize("columns", [{}, {"gold": "see file"}, {"prompt": "Answer:"}])
def test_an_order_without_a_proof_is_refused(score_rows, examples, columns):
    with expect_user_error(r"prove.* `smmd-bench sample .* --split test --json"):
        score_rows([{**columns, "output": e.target} for e in examples])
