"""Which completion is which example's, and the run folder that is made of them."""

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from smmd_bench.errors import UserError
from smmd_bench.maintenance.foreign_completions import score_predictions
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import read_run

from .conftest import COUNT, TASK, json_lines


def scored(tmp_path: Path, rows: Sequence[Any], **options: Any) -> tuple[pd.DataFrame, list[str]]:
    """The completions of a scored file with their scores, and what was said."""
    said: list[str] = []
    file = json_lines(tmp_path / "a.jsonl", rows)
    options = {"limit": COUNT, **options}
    outcome = score_predictions(TASK, [file], out=tmp_path / "out", say=said.append, **options)
    return read_run(outcome.path).completions, said


SHUFFLED = [3, 1, 4, 0, 2]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (lambda at, e, row: {"uid": e.uid, "index": row, "prompt": e.prompt}, "by uid."),
        (lambda at, e, row: {"uid": e.uid, "prompt": f"1 + 1 = 2\n\n{e.prompt}"}, "by uid."),
        (lambda at, e, row: {"index": row, "prompt": e.prompt}, "by prompt."),
        (lambda at, e, row: {"Question": f" {e.prompt.upper()}"}, "by prompt."),
        (lambda at, e, row: {"messages": [{"role": "user", "content": e.prompt}]}, "by prompt."),
        (lambda at, e, row: {"question": e.prompt.split("\n")[0]}, "by prompt."),
        (lambda at, e, row: {"id": float(at), "idx": row}, "by position."),
        (lambda at, e, row: {"Unnamed: 0": str(at)}, "by position."),
    ],
)  # fmt: skip
def test_shuffled_rows_are_matched_by_whatever_tells_them_apart(tmp_path, examples, columns, said):
    rows = [
        {**columns(at, examples[at], row), "completion": examples[at].target}
        for row, at in enumerate(SHUFFLED)
    ]
    frame, heard = scored(tmp_path, rows)
    assert frame["uid"].tolist() == [example.uid for example in examples]
    assert frame["exact"].all()
    assert said in heard[0]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (lambda e: {"prompt": f"1 + 1 = 2\n\n{e.prompt}"}, r"row 1: its prompt is .* test-0-0"),
        (lambda e: {"Ground Truth": e.target}, r"row 1: its Ground Truth is not that of"),
        (lambda e: {"answer": [e.target]}, r"row 1: its answer is"),
    ],
)
def test_rows_of_another_order_without_an_id_are_refused(tmp_path, examples, columns, words):
    rows = [{**columns(examples[at]), "completion": examples[at].target} for at in SHUFFLED]
    with pytest.raises(UserError, match=words):
        scored(tmp_path, rows)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"uid": f"test-0-{at}"} for at in (0, 1, 2, 3, 1)], "row 5: the example test-0-1 is alr"),
        ([{"id": 1}, {"id": "1"}], "row 2: the example test-0-1 is already in .*row 1"),
        ([{"uid": "test-0-0"}, {"uid": "test-0-7"}], "row 2: its uid 'test-0-7' is no uid or pos"),
        ([{"id": 1}, {"id": 5}], "row 2: its id '5' is no uid or position"),
        ([{"id": None}], "row 1: its id .* is no uid"),
        ([{"uid": f"test-0-{at}"} for at in (0, 1, 3, 4)], r"1 of .* \(the first: test-0-2\)"),
        ([{}] * 4, "has 4 rows for the 5 examples of .*add the column uid"),
        ([{"id": at} for at in (2, 1, 3)], "counts its id from 1"),
    ],
)
def test_ids_that_are_wrong_are_refused(tmp_path, cache, rows, words):
    with pytest.raises(UserError, match=words):
        scored(tmp_path, [{**row, "output": "1"} for row in rows], partial="id" in rows[0])
    assert not (tmp_path / "out").exists()


def test_ids_of_another_data_seed_or_level_are_refused_by_their_prompts(tmp_path, right):
    for task, seed in ((TASK, 1), ("arithmetic", 0)):
        others = load_task(task).examples("test", seed, COUNT)
        rows = [{**row, "prompt": e.prompt} for row, e in zip(right, others, strict=True)]
        with pytest.raises(UserError, match=r"row 1: its prompt .* --data-seed"):
            scored(tmp_path, rows)


def test_a_prompt_that_each_completion_repeats_is_taken_off(tmp_path, examples):
    rows = [{"id": at, "generated_text": f"{e.prompt} {e.target}"} for at, e in enumerate(examples)]
    assert scored(tmp_path, rows)[0]["exact"].all()
    rows[0]["generated_text"] = examples[0].target
    assert scored(tmp_path, rows)[0]["exact"].all()  # row by row
    for at in range(1, 3):
        rows[at]["generated_text"] = examples[at].target
    with pytest.raises(UserError, match=r"2 of 5 completions begin with their prompt \(the first"):
        scored(tmp_path, rows)


@pytest.mark.parametrize(
    "template",
    [
        "<s> {}8", "<|begin_of_text|>{}8</s>", "User: {}\nAssistant: 8", "user\n{}\nassistant\n8",
        "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n8<|im_end|>",
        "<s>[INST] {} [/INST] 8", "<start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n8",
        "Be brief.\n\n### Instruction:\n{}\n\n### Response:\n8",
        "<|im_start|>system\nYou are Qwen.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n8",
    ],
)  # fmt: skip
@pytest.mark.parametrize("blank", ["", " "])
def test_a_prompt_is_taken_off_behind_markers_roles_and_templates(
    tmp_path, examples, template, blank
):
    rows = [
        {"uid": e.uid, "output": template.replace("8", e.target).format(e.prompt.strip() + blank)}
        for e in examples
    ]  # fmt: skip
    rows[2]["output"] = examples[2].target
    assert scored(tmp_path, rows)[0]["exact"].all()


def test_a_limit_scores_the_first_of_a_whole_file(tmp_path, examples):
    frame, said = scored(
        tmp_path, [{"output": e.target, "answer": e.target} for e in examples], limit=2
    )
    assert frame["uid"].tolist() == [example.uid for example in examples[:2]]
    assert " 2 completions " in said[0]


def test_partial_scores_the_examples_that_every_file_has_and_says_how_many(tmp_path, right):
    files = [json_lines(tmp_path / f"{at}.jsonl", right[at : at + 4]) for at in (0, 1)]
    said: list[str] = []
    options: dict[str, Any] = {"limit": COUNT, "partial": True, "say": said.append}
    outcome = score_predictions(TASK, files, out=tmp_path / "out", **options)
    frame = read_run(outcome.path).completions
    assert frame["uid"].tolist() == [row["uid"] for row in right[1:4]] * 2
    assert "Scored are the 3 of the 5 examples" in said[-1]


def test_the_completions_of_a_run_can_be_scored_again(tmp_path, right):
    rows = [{**row, "finish_reason": "length"} for row in right]
    scored(tmp_path, rows)
    (kept,) = (tmp_path / "out").rglob("completions.parquet")
    outcome = score_predictions(TASK, [kept], ["ce"], limit=COUNT, out=tmp_path / "again")
    frame = read_run(outcome.path).completions
    assert frame["exact"].all()
    assert frame["truncated"].all()
    assert frame["operations"].notna().all()


def test_two_files_are_compared_again_only_where_one_changed(tmp_path, right):
    def wrong(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "completion": str(Fraction(row["completion"]) + 1)}

    files = [
        json_lines(tmp_path / "smmd.jsonl", [*right[:4], wrong(right[4])]),
        json_lines(tmp_path / "ours.jsonl", [*map(wrong, right[:3]), *right[3:]]),
    ]
    options: dict[str, Any] = {"limit": COUNT, "out": tmp_path / "out"}
    assert score_predictions(TASK, files, **options).worked
    run = read_run(tmp_path / "out")
    exact = run.metrics[run.metrics["metric"] == "exact_match"]
    assert exact["value"].tolist() == [80.0, 40.0]
    compared = run.comparisons[run.comparisons["metric"] == "exact_match"].iloc[0]
    assert (compared["loss"], compared["against_loss"]) == ("ours", "smmd")
    assert (compared["difference"], compared["b"], compared["c"]) == (-40.0, 1, 3)
    assert compared["p"] == pytest.approx(0.625)  # 2 * (1 + 4) / 2^4
    json_lines(files[1], [json.loads(line) for line in files[1].read_text().splitlines()][::-1])
    assert not score_predictions(TASK, files, **options).worked
    json_lines(files[1], right)
    assert score_predictions(TASK, files, **options).worked
    assert read_run(tmp_path / "out").comparisons["difference"].iloc[0] == 20.0
    with pytest.raises(UserError, match="belongs to another command"):
        score_predictions(TASK, files, ["a", "b"], **options)


def test_labels_name_each_file(tmp_path, right):
    files = [json_lines(tmp_path / name, right) for name in ("a.jsonl", "b.jsonl")]
    for labels, words in (["ce"], "given 1 times"), (["CE", "ce"], "have one label, in capitals"):
        with pytest.raises(UserError, match=words):
            score_predictions(TASK, files, labels, limit=COUNT, out=tmp_path / "out")


@pytest.mark.parametrize(
    ("files", "labels"),
    [
        (["a/samples_gsm8k_2026-11-20T10-31-09.123456.jsonl"], ["gsm8k"]),
        (["a/samples_x_2026-11-20T10-31-09.1.jsonl", "b/samples_x_2026-11-21T09-00-00.2.jsonl"],
         ["a", "b"]),
        (["a/one.jsonl", "b/samples_mine.jsonl"], ["one", "samples_mine"]),
    ],
)  # fmt: skip
def test_a_file_without_a_label_is_called_by_its_name(tmp_path, right, files, labels):
    for path in (paths := [tmp_path / file for file in files]):
        path.parent.mkdir(exist_ok=True)
        json_lines(path, right)
    out = score_predictions(TASK, paths, limit=COUNT, out=tmp_path / "out")
    assert read_run(out.path).cells["loss"].tolist() == labels
