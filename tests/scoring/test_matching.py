"""Which completion is which example's, and the run folder that is made of them."""

from fractions import Fraction

import pytest

from smmd_bench.maintenance.foreign_completions import score_predictions
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import read_run
from tests.conftest import expect_user_error

from .conftest import COUNT, TASK, json_lines, score_files


def scored(tmp_path, rows, **options):
    """The completions of a file of these rows with their scores, and what was said."""
    file = json_lines(tmp_path / "a.jsonl", rows)
    run, sentences = score_files(tmp_path / "out", file, **options)
    return run.completions, sentences


SHUFFLED = [3, 1, 4, 0, 2]


@pytest.mark.parametrize(
    ("columns", "way"),
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
def test_shuffled_rows_are_matched_by_whatever_tells_them_apart(
    tmp_path, examples, columns, way
):
    rows = [
        {**columns(at, examples[at], row), "completion": examples[at].target}
        for row, at in enumerate(SHUFFLED)
    ]
    frame, (sentence,) = scored(tmp_path, rows)
    assert frame["uid"].tolist() == [example.uid for example in examples]
    assert frame["exact"].all()
    assert way in sentence


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            lambda e: {"prompt": f"1 + 1 = 2\n\n{e.prompt}"},
            r"row 1: its prompt is .* test-0-0",
        ),
        (
            lambda e: {"Ground Truth": e.target},
            r"row 1: its Ground Truth is not that of",
        ),
        (lambda e: {"answer": [e.target]}, r"row 1: its answer is"),
    ],
)
def test_rows_of_another_order_without_an_id_are_refused(
    tmp_path, examples, columns, words
):
    rows = [
        {**columns(examples[at]), "completion": examples[at].target} for at in SHUFFLED
    ]
    with expect_user_error(words):
        scored(tmp_path, rows)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [{"uid": f"test-0-{at}"} for at in (0, 1, 2, 3, 1)],
            "row 5: the example test-0-1 is alr",
        ),
        ([{"id": 1}, {"id": "1"}], "row 2: the example test-0-1 is already in .*row 1"),
        (
            [{"uid": "test-0-0"}, {"uid": "test-0-7"}],
            "row 2: its uid 'test-0-7' is no uid or pos",
        ),
        ([{"id": 1}, {"id": 5}], "row 2: its id '5' is no uid or position"),
        ([{"id": None}], "row 1: its id .* is no uid"),
        (
            [{"uid": f"test-0-{at}"} for at in (0, 1, 3, 4)],
            r"1 of .* \(the first: test-0-2\)",
        ),
        ([{}] * 4, "has 4 rows for the 5 examples of .*add the column uid"),
        ([{"id": at} for at in (2, 1, 3)], "counts its id from 1"),
    ],
)
def test_ids_that_are_wrong_are_refused(tmp_path, cache, rows, words):
    with expect_user_error(words):
        scored(
            tmp_path, [{**row, "output": "1"} for row in rows], partial="id" in rows[0]
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("task", "seed"), [(TASK, 1), ("arithmetic", 0)])
def test_ids_of_another_data_seed_or_level_are_refused_by_their_prompts(
    tmp_path, right, task, seed
):
    other_examples = load_task(task).examples("test", seed, COUNT)
    rows = [
        {**row, "prompt": e.prompt}
        for row, e in zip(right, other_examples, strict=True)
    ]
    with expect_user_error(r"row 1: its prompt .* --data-seed"):
        scored(tmp_path, rows)


def repeat_prompts(examples, without):
    """Rows whose completions begin with their prompts, but so many."""
    prompts = ["" if at < without else f"{e.prompt} " for at, e in enumerate(examples)]
    rows = zip(prompts, examples, strict=True)
    return [{"uid": e.uid, "generated_text": prompt + e.target} for prompt, e in rows]


@pytest.mark.parametrize("without", [0, 1])
def test_a_prompt_that_most_completions_repeat_is_taken_off(
    tmp_path, examples, without
):
    frame, _ = scored(tmp_path, repeat_prompts(examples, without))
    assert frame["exact"].all()


def test_prompts_that_few_completions_repeat_are_refused(tmp_path, examples):
    with expect_user_error(r"2 of 5 completions begin with their prompt \(the first"):
        scored(tmp_path, repeat_prompts(examples, 3))


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
    rows = []
    for e in examples:
        turns = template.replace("8", e.target).format(e.prompt.strip() + blank)
        rows.append({"uid": e.uid, "output": turns})
    # One that repeats nothing changes no other one.
    rows[2]["output"] = examples[2].target
    frame, _ = scored(tmp_path, rows)
    assert frame["exact"].all()


def test_a_limit_scores_the_first_of_a_whole_file(tmp_path, examples):
    rows = [{"output": e.target, "answer": e.target} for e in examples]
    frame, (sentence,) = scored(tmp_path, rows, limit=2)
    assert frame["uid"].tolist() == [example.uid for example in examples[:2]]
    assert " 2 completions " in sentence


def test_partial_scores_the_examples_that_every_file_has_and_says_how_many(
    tmp_path, right
):
    files = [json_lines(tmp_path / f"{at}.jsonl", right[at : at + 4]) for at in (0, 1)]
    run, sentences = score_files(tmp_path / "out", *files, partial=True)
    assert run.completions["uid"].tolist() == [row["uid"] for row in right[1:4]] * 2
    assert "Scored are the 3 of the 5 examples" in sentences[-1]


def test_the_completions_of_a_run_can_be_scored_again(tmp_path, right):
    scored(tmp_path, [{**row, "finish_reason": "length"} for row in right])
    (stored,) = (tmp_path / "out").rglob("completions.parquet")
    run, _ = score_files(tmp_path / "again", stored)
    assert run.completions[["exact", "truncated"]].all(axis=None)
    assert run.completions["operations"].notna().all()


@pytest.fixture
def two_files(tmp_path, right):
    """Completions of `smmd`, 80 % of them right, and of `ours`, 40 %."""
    wrong = [
        {**row, "completion": str(Fraction(row["completion"]) + 1)} for row in right
    ]
    return [
        json_lines(tmp_path / "smmd.jsonl", [*right[:4], wrong[4]]),
        json_lines(tmp_path / "ours.jsonl", [*wrong[:3], *right[3:]]),
    ]


def test_two_files_are_compared_with_the_first(tmp_path, two_files):
    run, _ = score_files(tmp_path / "out", *two_files)
    values = run.metrics.query("metric == 'exact_match'")["value"]
    assert values.tolist() == [80.0, 40.0]
    exact = run.comparisons.query("metric == 'exact_match'").iloc[0]
    assert exact[["loss", "against_loss"]].tolist() == ["ours", "smmd"]
    assert exact[["difference", "b", "c"]].tolist() == [-40.0, 1, 3]
    assert exact["p"] == pytest.approx(0.625)  # 2 * (1 + 4) / 2^4


def test_two_files_are_scored_again_only_where_one_changed(tmp_path, two_files, right):
    def score_again():
        outcome = score_predictions(TASK, two_files, limit=COUNT, out=tmp_path / "out")
        return outcome.worked

    assert score_again()
    lines = two_files[1].read_text().splitlines()
    json_lines(two_files[1], lines[::-1])  # the same rows in another order
    assert not score_again()

    json_lines(two_files[1], right)
    assert score_again()
    assert read_run(tmp_path / "out").comparisons["difference"].iloc[0] == 20.0


def test_a_run_of_other_files_is_not_overwritten(tmp_path, two_files):
    score_files(tmp_path / "out", *two_files)
    with expect_user_error("belongs to another command"):
        score_files(tmp_path / "out", *two_files, labels=["a", "b"])


@pytest.mark.parametrize(
    ("labels", "words"),
    [(["ce"], "given 1 times"), (["CE", "ce"], "have one label, in capitals")],
)
def test_labels_name_each_file(tmp_path, two_files, labels, words):
    with expect_user_error(words):
        score_files(tmp_path / "out", *two_files, labels=labels)


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
    paths = [tmp_path / file for file in files]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        json_lines(path, right)
    run, _ = score_files(tmp_path / "out", *paths)
    assert run.cells["loss"].tolist() == labels
