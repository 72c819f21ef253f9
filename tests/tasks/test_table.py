"""A task from a file: what its rows become, its keys, its mistakes, and a run from elsewhere."""

import json
import shlex
import shutil
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.contracts import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.plugin_system.parameters import canonical
from smmd_bench.plugin_system.registry import load_task

from ..in_process import call

COLUMNS = "question=Question,answer=Answer"
SPLITS = ("train", "validation", "test")


def rows(count=60):
    return [{"Question": f"What is {at} plus 0.5?", "Answer": f"{at}.5"} for at in range(count)]


def write(path, rows):
    """The rows as CSV, JSON lines or Parquet; the path."""
    frame = pd.DataFrame(rows)
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        frame.to_csv(path, index=False, encoding="utf-8-sig")  # as Excel does
    return path


def table(file, more=""):
    return load_task(f"table[path={file},{COLUMNS}{more}]")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_rows_of_every_format_are_the_same_examples(ending, tmp_path):
    task = table(write(tmp_path / f"mine.{ending}", rows()))
    examples = {split: task.examples(split, 0) for split in SPLITS}
    assert {split: len(found) for split, found in examples.items()} == task.paper_sizes
    every = {example.uid: example for found in examples.values() for example in found}
    assert len(every) == 60
    fourth = every["table-4"]
    assert (fourth.prompt, fourth.target) == ("What is 3 plus 0.5?\nAnswer: ", "3.5")
    assert task.parse(" 3.5\nWhat") == fourth.answer
    assert sb.violations(f"table[path={tmp_path / f'mine.{ending}'},{COLUMNS}]") == []


def test_a_row_stays_in_its_split_whatever_the_other_rows_are(tmp_path):
    few, more = table(write(tmp_path / "a.csv", rows(30))), table(write(tmp_path / "b.csv", rows()))
    for split in SPLITS:
        assert {e.uid for e in few.examples(split, 0)} <= {e.uid for e in more.examples(split, 0)}
    backwards = table(write(tmp_path / "c.csv", rows()[::-1]))
    prompts = [[e.prompt for e in task.examples("train", 0, 9)] for task in (more, backwards)]
    assert prompts[0] == prompts[1]


def test_numbers_are_read_as_numbers_and_other_answers_as_text(tmp_path):
    numbers = [{"Question": f"{at}?", "Answer": at / 2} for at in range(60)]
    task = table(write(tmp_path / "n.parquet", numbers))
    assert {e.target for e in task.examples("train", 0)} <= {f"{at / 2:g}" for at in range(60)}
    assert task.parse("1/2").value == Fraction(1, 2)
    assert task.metrics()[0].name == "exact_match"
    words = table(write(tmp_path / "w.csv", [*rows(), {"Question": "Why?", "Answer": "No, 1"}]))
    assert [metric.name for metric in words.metrics()] == ["text_match", "truncation_rate"]
    assert words.parse("1") is None
    assert sb.violations(f"table[path={tmp_path / 'w.csv'},{COLUMNS}]") == []


def test_a_column_says_the_split_and_a_template_the_prompt(tmp_path):
    told = [{**row, "Unit, SI": "m", "part": SPLITS[at % 3]} for at, row in enumerate(rows(9))]
    write(tmp_path / "a,b.csv", told)
    prompt = r'prompt="In {Unit, SI}, [{part}]\n{Question} A:"'
    task = load_task(f'table[path="{tmp_path}/a,b.csv",{COLUMNS},split=part,{prompt}]')
    assert task.paper_sizes == dict.fromkeys(SPLITS, 3)
    (example,) = task.examples("test", 0, 1)
    assert example.prompt.startswith("In m, [test]\nWhat is ")
    assert example.prompt.endswith(" A: ")
    assert load_task(canonical(task)) == task


BLANK = [{"Question": " ", "Answer": 1}]
OTHER = [{"Question": "?", "Answer": "x"}]
TWINS = [{"Question": "?", "Answer": 1, "part": split} for split in SPLITS]


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        (None, "", "There is no file "),
        ([], "", "a.csv is not a readable csv file (No columns to parse"),
        (
            BLANK,
            "",
            "a.csv, row 1: its Question or Answer is empty: correct it, or remove the row.",
        ),
        ([*rows(3), *OTHER], ",answers=numbers", "a.csv, row 4: its Answer is no number: "),
        (rows(3), ",split=Qestion", "has no column 'Qestion': did you mean Question?"),
        (rows(3), ",prompt={Unit}", "has no column 'Unit': known: Answer, Question"),
        (rows(3), ",split=Answer", "row 1: its Answer is '0.5', not train, validation or test: "),
        (rows(1), "", "has no row for test: add rows, or name a split=COLUMN"),
        (TWINS, ",split=part", "a.csv, row 2: its question is in another split, too: "),
    ],
)
def test_a_mistake_is_named_with_its_place(content, more, said, tmp_path):
    if content is not None:
        write(tmp_path / "a.csv", content)
    with pytest.raises(UserError) as error:
        table(tmp_path / "a.csv", more).examples("test", 0)
    assert said in str(error.value)


def test_the_content_of_a_file_is_in_the_keys_of_its_cells_and_its_place_is_not(tmp_path):
    def parts(path):
        asked = Experiment(tasks=(f"table[path={path},{COLUMNS}]",), losses=("ce",))
        return [cell.parts for cell in asked.cells]

    file = write(tmp_path / "a.csv", rows())
    before, moved = parts(file), tmp_path / "b.csv"
    moved.write_bytes(file.read_bytes())
    assert [p["train"] for p in parts(moved)] == [p["train"] for p in before]
    write(moved, [*rows(59), {"Question": "What is 59 plus 0.5?", "Answer": "60.5"}])
    for mine, theirs in zip(parts(moved), before, strict=True):
        assert all(mine[stage] != theirs[stage] for stage in ("train", "decode"))


@pytest.mark.engine
def test_a_run_goes_on_in_another_folder_and_its_reports_need_no_file(tmp_path):
    first, other = (tmp_path / name for name in "ab")
    for folder in (first, other):
        folder.mkdir()
    file = write(first / "mine.csv", rows())
    asked = shlex.split(
        f"train-eval --task table[path=mine.csv,{COLUMNS}] --losses ce,smmd --engine transformers "
        "--executor in_process --train-examples 16 --validation-examples 4 --test-examples 4 "
        "--epochs 1 --set batch_size=8 --set micro_batch_size=8 --out ../run"
    )
    assert call(asked, first).status == 0
    moved = Path(shutil.move(file, other))
    assert "all are done" in call([*asked, "--extend", "--dry-run"], other).output
    moved.unlink()
    assert call(["report", "../run"], other).status == 0
    (label,) = sb.read_run(tmp_path / "run").cells["task"].unique()
    assert label == "table[answer=Answer,answers=numbers,path=mine.csv,question=Question]"
    made = {path.stem for path in (tmp_path / "run" / "reports").glob("*/*")}
    assert {"task_table", "overview", "verdict"} <= made
