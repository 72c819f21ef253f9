"""A task from a file: what its rows become, its keys, its mistakes, and a run from elsewhere."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.plugin_system.parameters import canonical
from tests.conftest import expect_user_error

from ..in_process import call

COLUMNS = "question=Question,answer=Answer"
SPLITS = ("train", "validation", "test")


def rows(count=60):
    return [
        {"Question": f"What is {at} plus 0.5?", "Answer": f"{at}.5"}
        for at in range(count)
    ]


def spec(path, rows, more=""):
    """The task of a file with these rows: CSV, JSON lines or Parquet."""
    frame = pd.DataFrame(rows)
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, encoding="utf-8-sig")  # as Excel does
    return f'table[path="{path}",{COLUMNS}{more}]'


def prompts(task):
    return {
        split: [example.prompt for example in task.examples(split, 0)]
        for split in SPLITS
    }


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_rows_of_every_format_are_the_same_examples(ending, tmp_path):
    file_spec = spec(tmp_path / f"mine.{ending}", rows())
    task = sb.load_task(file_spec)
    examples = [example for split in SPLITS for example in task.examples(split, 0)]
    assert len(examples) == sum(task.paper_sizes.values()) == 60
    fourth = next(example for example in examples if example.uid == "table-4")
    assert fourth.prompt == "What is 3 plus 0.5?\nAnswer: "
    assert fourth.target == "3.5"
    assert task.parse(" 3.5\nWhat") == fourth.answer
    assert sb.violations(file_spec) == []


def test_a_row_stays_in_its_split_and_order_whatever_the_other_rows_are(tmp_path):
    few, more, backwards = (
        prompts(sb.load_task(spec(tmp_path / "mine.csv", content)))
        for content in (rows(30), rows(), rows()[::-1])
    )
    assert more == backwards
    for split in SPLITS:
        assert few[split] == [prompt for prompt in more[split] if prompt in few[split]]


def test_numbers_are_read_as_numbers(tmp_path):
    halves = [{"Question": f"{at}?", "Answer": at / 2} for at in range(60)]
    task = sb.load_task(spec(tmp_path / "n.parquet", halves))
    targets = {example.target for example in task.examples("train", 0)}
    assert targets <= {f"{at / 2:g}" for at in range(60)}
    assert task.metrics()[0].name == "exact_match"


def test_other_answers_are_texts(tmp_path):
    texts = [{"Question": f"Why {at}?", "Answer": "No, 1"} for at in range(200)]
    text_spec = spec(tmp_path / "w.csv", [*rows(), *texts])
    task = sb.load_task(text_spec)
    names = [metric.name for metric in task.metrics()]
    assert names == ["text_match", "truncation_rate"]
    assert task.parse("1") is None
    assert sb.violations(text_spec) == []


def test_a_title_is_how_tables_call_it_and_changes_no_key(tmp_path):
    plain, named = (
        sb.load_task(spec(tmp_path / "n.csv", rows(), t)) for t in ("", ",title=sums")
    )
    assert named.label == "table[answers=numbers,title=sums]"
    assert (plain.display_name, named.display_name) == ("n.csv", "sums")
    assert sb.load_task(named.label).metrics() == plain.metrics()
    assert named.identity("test", 0) == plain.identity("test", 0)


def test_a_column_says_the_split_and_a_template_the_prompt(tmp_path):
    frame = pd.DataFrame(rows(9))
    told = frame.assign(**{"Unit, SI": "m", "part": SPLITS * 3})
    more = r',split=part,prompt="In {Unit, SI}, [{part}]\n{Question} A:"'
    task = sb.load_task(spec(tmp_path / "a,b.csv", told, more))
    assert task.paper_sizes == dict.fromkeys(SPLITS, 3)
    assert "In m, [test]\nWhat is 2 plus 0.5? A: " in prompts(task)["test"]
    assert sb.load_task(canonical(task)) == task


BLANK, OTHER = {"Question": " ", "Answer": 1}, {"Question": "?", "Answer": "x"}
TWINS = [{"Question": "?", "Answer": 1, "part": split} for split in SPLITS]
MISTAKES = [
    ([], "", "a.csv is not a readable csv file (it has no rows"),
    (
        [BLANK],
        "",
        "a.csv, row 1: its Question or Answer is empty: correct it, or remove the row.",
    ),
    ([*rows(3), OTHER], ",answers=numbers", "a.csv, row 4: its Answer is no number: "),
    (
        [{"Question Answer": "1 2"}],
        "",
        "a.csv has one column, 'Question Answer': part two by a comma",
    ),
    (rows(3), ",split=Questions", "has no column 'Questions': did you mean Question?"),
    (rows(3), ",prompt={Unit}", "has no column 'Unit': known: Answer, Question"),
    (
        rows(3),
        ",split=Answer",
        "row 1: its Answer is '0.5', not train, validation or test: ",
    ),
    (rows(1), "", "has no row for test: add rows, or name a split=COLUMN"),
    (
        TWINS,
        ",split=part",
        "a.csv, row 2: its prompt '?\\nAnswer: ' is in another split, too: ",
    ),
]


@pytest.mark.parametrize(("content", "more", "message"), MISTAKES)
def test_a_mistake_is_named_with_its_place(content, more, message, tmp_path):
    file_spec = spec(tmp_path / "a.csv", content, more)
    with expect_user_error(re.escape(message)):
        sb.load_task(file_spec).examples("test", 0)


def test_the_content_of_a_file_is_in_the_keys_of_its_cells_and_its_place_is_not(
    tmp_path,
):
    def keys(name, rows):
        experiment = Experiment(tasks=(spec(tmp_path / name, rows),), losses=("ce",))
        return {
            cell.parts[stage]
            for cell in experiment.cells
            for stage in ("train", "decode")
        }

    original = keys("a.csv", rows())
    assert keys("b.csv", rows()) == original
    changed_row = {**rows()[59], "Answer": "60.5"}
    assert not keys("b.csv", [*rows(59), changed_row]) & original


@pytest.mark.long
def test_a_run_goes_on_in_another_folder_and_its_reports_need_no_file(tmp_path):
    first, other = tmp_path / "first", tmp_path / "other"
    first.mkdir()
    other.mkdir()
    spec(first / "mine.csv", rows())
    command = (
        f"train-eval --task table[path=mine.csv,{COLUMNS}] --losses ce,smmd --engine transformers "
        "--executor in_process --train-examples 16 --validation-examples 4 --test-examples 4 "
        "--epochs 1 --set batch_size=8 --set micro_batch_size=8 --out ../run"
    )
    assert call(command, first).status == 0

    moved = Path(shutil.move(first / "mine.csv", other))
    assert "all are done" in call(f"{command} --extend --dry-run", other).output

    moved.unlink()
    assert call("report ../run", other).status == 0
    (label,) = sb.read_run(tmp_path / "run").cells["task"].unique()
    assert (
        label == "table[answer=Answer,answers=numbers,path=mine.csv,question=Question]"
    )
    reports = {path.stem for path in (tmp_path / "run/reports").glob("*/*")}
    assert {"task_table", "overview", "verdict"} <= reports
    with expect_user_error(r"There is no file .*/other/mine\.csv: give"):
        call(command, other)
