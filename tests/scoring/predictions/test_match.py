"""Which completion is which example's."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from smmd_bench.tasks.arithmetic import Arithmetic

from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import read_run
from smmd_bench.run.predictions import score_predictions

from .conftest import COUNT, TASK, json_lines


def scored(tmp_path: Path, rows: Sequence[Any], **options: Any) -> tuple[pd.DataFrame, list[str]]:
    """The completions of a scored file with their scores, and what was said."""
    said: list[str] = []
    file = json_lines(tmp_path / "a.jsonl", rows)
    options = {"limit": COUNT, **options}
    outcome = score_predictions(TASK, [file], out=tmp_path / "out", say=said.append, **options)
    return read_run(outcome.path).completions, said


@pytest.mark.parametrize("ids", [True, False])
def test_a_limit_scores_the_first_of_a_whole_file(tmp_path, examples, ids):
    rows = [{**({"uid": e.uid} if ids else {}), "output": e.target} for e in examples]
    frame, said = scored(tmp_path, rows, limit=2)
    assert frame["uid"].tolist() == [example.uid for example in examples[:2]]
    assert " 2 completions " in said[0]


def test_a_limit_beyond_the_files_and_the_split_makes_no_more_examples(
    tmp_path, examples, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        Arithmetic, "examples", lambda self, *given: asked.append(given) or examples
    )
    _, said = scored(tmp_path, [{"output": e.target} for e in examples], limit=10**11)
    assert asked == [("test", 0, 10_000)]
    assert said


BY_POSITION = "5 completions by id, as the position of the example in the split (from 0)."


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (lambda at, uid: {"uid": uid}, "5 completions by uid."),
        (lambda at, _: {"id": at}, BY_POSITION),
        (lambda at, _: {"id": str(at).zfill(3)}, BY_POSITION),
        (lambda at, _: {"id": float(at)}, BY_POSITION),
    ],
    ids=["uid", "integer", "text", "float"],
)
def test_ids_are_uids_or_positions_in_any_order(tmp_path, examples, ids, said):
    rows = [{**ids(at, e.uid), "output": e.target} for at, e in enumerate(examples)]
    frame, heard = scored(tmp_path, rows[::-1])
    assert frame["uid"].tolist() == [example.uid for example in examples]
    assert frame["exact"].all()
    assert heard == [f"{tmp_path / 'a.jsonl'}: JSON lines, {said}"]


SHUFFLED = [3, 1, 4, 0, 2]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (lambda at, e, row: {"index": at, "prompt": e.prompt}, "by id, as the position"),
        (lambda at, e, row: {"index": row, "prompt": e.prompt}, "by prompt; 'index': another"),
        (lambda at, e, row: {"id": row, "prompt": e.prompt}, "by prompt; 'id': another order"),
        (lambda at, e, row: {"id": f"q{row}", "prompt": e.prompt}, "by prompt; 'id': another"),
        (lambda at, e, row: {"Question": f" {e.prompt.upper()}"}, "by prompt."),
        (lambda at, e, row: {"messages": [{"role": "user", "content": e.prompt}]}, "by prompt."),
        (lambda at, e, row: {"idx": at}, "(from 0); the column is 'idx'."),
        (lambda at, e, row: {"meta": {"index": f"{at}.0"}}, "the column is 'index'."),
        (lambda at, e, row: {"doc": {"question": e.prompt.split("\n")[0]}}, "by prompt."),
        (lambda at, e, row: {"": str(at)}, "(from 0); the column is ''."),
        (lambda at, e, row: {"sample_id": e.uid, "answer": e.target}, "by uid."),
        (lambda at, e, row: {"uid": e.uid, "index": row, "prompt": e.prompt}, "by uid."),
        (lambda at, e, row: {"uid": e.uid, "prompt": f"1 + 1 = 2\n\n{e.prompt}"}, "by uid."),
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
        (lambda e: {"prompt": f"1 + 1 = 2\n\n{e.prompt}"}, r"line 1: its prompt .* test-0-0"),
        (lambda e: {"Ground Truth": e.target}, r"line 1: its Ground Truth '3' differs"),
        (lambda e: {"target": e.target}, r"line 1: its target '3' differs .* test-0-0"),
        (lambda e: {"index": 7, "answer": [e.target]}, r"line 1: its answer '3' differs"),
        (lambda e: {"input": "Translate this"}, r"line 1: its input .* check --task"),
    ],
)
def test_rows_of_another_order_or_task_without_an_id_are_refused(
    tmp_path, examples, columns, words
):
    rows = [{**columns(examples[at]), "completion": examples[at].target} for at in SHUFFLED]
    with pytest.raises(UserError, match=words):
        scored(tmp_path, rows)


def test_ids_of_another_data_seed_or_level_are_refused_by_their_prompts(tmp_path, right):
    for task, seed in ((TASK, 1), ("arithmetic", 0)):
        others = load_task(task).examples("test", seed, COUNT)
        rows = [{**row, "prompt": e.prompt} for row, e in zip(right, others, strict=True)]
        with pytest.raises(UserError, match=r"line 1: its prompt .* --data-seed"):
            scored(tmp_path, rows)


@pytest.mark.parametrize("before", ["", "<pad> ", "Calculate 1 + 1.\nAnswer: 2\n", "user\n"])
def test_a_prompt_that_each_completion_repeats_is_taken_off(tmp_path, examples, before):
    after = "assistant\n" if "user" in before else ""
    texts = [
        f"{before * (1 + at * ('<' in before))}{e.prompt}\n {after}{e.target}"
        for at, e in enumerate(examples)
    ]
    rows = [{"id": at, "generated_text": text} for at, text in enumerate(texts)]
    frame, said = scored(tmp_path, rows)
    assert frame["completion"].str.strip().tolist() == [e.target for e in examples]
    assert "repeats its prompt" in said[0]
    rows[0]["generated_text"] = examples[0].target
    frame, said = scored(tmp_path, rows)
    assert frame["completion"].tolist() == [examples[0].target, *texts[1:]]
    assert "4 completions repeat their prompt" in said[0]


def test_a_model_that_asks_itself_again_keeps_its_answers(tmp_path, examples):
    texts = [f"{e.target}\n{e.prompt} 999" for e in examples]
    frame, said = scored(tmp_path, [{"id": at, "output": text} for at, text in enumerate(texts)])
    assert frame["exact"].all()
    assert "5 completions repeat their prompt and stay" in said[0]


def test_without_ids_the_rows_are_taken_in_order_and_that_is_said(tmp_path, examples):
    frame, said = scored(tmp_path, [{"output": e.target} for e in examples])
    assert frame["exact"].all()
    assert said[0].endswith("5 completions without ids, matched in the order of the examples.")


def test_the_completions_of_a_run_can_be_scored_again(tmp_path, right):
    rows = [{**row, "finish_reason": "length"} for row in right]
    scored(tmp_path, rows)
    (kept,) = (tmp_path / "out").glob("cells/*/completions.parquet")
    outcome = score_predictions(TASK, [kept], ["ce"], limit=COUNT, out=tmp_path / "again")
    frame = read_run(outcome.path).completions
    assert frame["exact"].all()
    assert frame["truncated"].all()
    assert frame["operations"].notna().all()


def test_partial_scores_the_examples_that_every_file_has_and_says_how_many(tmp_path, right):
    said = []
    files = [
        json_lines(tmp_path / "a.jsonl", right[:4]),
        json_lines(tmp_path / "b.jsonl", right[2:]),
    ]
    outcome = score_predictions(
        TASK, files, limit=COUNT, partial=True, out=tmp_path / "out", say=said.append
    )
    frame = read_run(outcome.path).completions
    assert frame["uid"].tolist() == [right[2]["uid"], right[3]["uid"]] * 2
    assert said[-1] == (
        f"Scored are the 2 of the 5 examples of {TASK}, test with --limit 5 that every file has."
    )


def test_a_target_of_another_spelling_is_no_other_target(tmp_path, right, examples):
    assert examples[1].target == "1/5"
    rows = [{**row, "target": row["completion"]} for row in right]
    rows[1]["target"] = str(float(Fraction(1, 5)))
    rows[2]["target"] = "what the parser cannot read"
    frame, _ = scored(tmp_path, rows)
    assert frame["exact"].all()


def test_truncation_is_known_only_where_the_file_says_it(tmp_path, right):
    frame, _ = scored(tmp_path, right)
    assert "truncated" not in frame.columns
    rows = [{**row, "finish_reason": "stop"} for row in right]
    rows[0]["finish_reason"] = "length"
    frame, _ = scored(tmp_path, rows)
    assert frame["truncated"].tolist() == [True, False, False, False, False]
