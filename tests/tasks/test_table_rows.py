"""Rows of `table` and the files that they are in: templates, splits, repeats, and all bad rows."""

import json

import pytest

import smmd_bench as sb
from smmd_bench.contracts import UserError
from smmd_bench.plugin_system.parameters import canonical
from tests.conftest import expect_user_error

from ..in_process import call


def rows(count=60, word="Q", **more):
    return [{"question": f"{word} {at}?", "answer": at, **more} for at in range(count)]


def write(file, rows):
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def table(file, rows, more=""):
    return sb.load_task(f'table[path="{write(file, rows)}"{more}]')


def uids(task, split):
    return {example.uid for example in task.examples(split, 0)}


@pytest.fixture
def files(tmp_path):
    """The spec of a task with a file for each of these splits."""

    def spec(**splits):
        places = (
            f"{s}={write(tmp_path / f'{s}.jsonl', rows)}" for s, rows in splits.items()
        )
        return f"table[{','.join(places)}]"

    return spec


def test_each_split_has_a_file(files):
    file_spec = files(train=rows(), validation=rows(9, "V"), test=rows(9, "T"))
    task = sb.load_task(file_spec)
    assert task.paper_sizes == {"train": 60, "validation": 9, "test": 9}
    assert uids(task, "test") == {f"table-test-{at}" for at in range(1, 10)}
    assert task.label == (
        "table[answers=numbers,test=test.jsonl,train=train.jsonl,validation=validation.jsonl]"
    )
    assert task.notes == []
    assert sb.load_task(canonical(task.resolved())).identity(
        "test", 0
    ) == task.identity("test", 0)
    assert sb.violations(file_spec) == []


def test_a_spec_that_is_kept_reads_no_file_again(files):
    task = sb.load_task(files(train=rows(), test=rows(9, "T")))
    kept = sb.load_task(canonical(task.resolved()))
    assert kept._content is task._content


def test_without_validation_a_tenth_of_train_is_drawn_and_said(files, tmp_path):
    by_files = sb.load_task(files(train=rows(), test=rows(9, "T")))
    content = [*rows(split="train"), *rows(9, "T", split="test")]
    by_column = table(tmp_path / "both.jsonl", content, ",split=split")
    validation_prompts = []
    for task in (by_files, by_column):
        examples = task.examples("validation", 0)
        validation_prompts.append({example.prompt for example in examples})
        assert 0 < len(examples) < 20
        assert task.paper_sizes["train"] + len(examples) == 60
        (note,) = task.notes
        assert f"no row for validation: {len(examples)} of its train rows" in note
    assert validation_prompts[0] == validation_prompts[1]


def test_files_and_columns_say_splits_but_not_both(files):
    pair = files(train=rows(), test=rows(9, "T")).replace("]", ",split=part]")
    with expect_user_error("table has train and test and split: name one file by"):
        sb.load_task(pair).examples("test", 0)
    with expect_user_error("table has path and test: name one file by path"):
        sb.load_task(files(path=rows(), test=rows(9, "T"))).examples("test", 0)
    with expect_user_error(r"no row for train: add rows, or .* or train=FILE"):
        sb.load_task(files(test=rows())).examples("train", 0)


def test_all_bad_rows_are_named_at_once(files):
    train, test = rows(), rows(9, "T")
    train[3]["answer"], test[2]["question"], test[5]["question"] = None, " ", "Q 7?"
    with pytest.raises(UserError) as error:
        sb.load_task(files(train=train, test=test)).examples("test", 0)
    message = str(error.value).replace("question or answer is empty", "…")

    assert message.partition("train.jsonl, ")[2] == (
        "row 4: its …: correct it, or remove the row (3 rows are wrong, the next being test.jsonl, "
        "row 3: its …; row 6: its prompt 'Q 7?\\nAnswer: ' is in another split, too)."
    )
    with expect_user_error(r"62 rows are wrong.*row 10: [^;]*\)\.$"):
        sb.load_task(files(train=rows(answer=""), test=test)).examples("test", 0)


REPEATS = [
    ([0, 1, 0], [5, 6, 5], "row 3: its prompt is that of row 1, with the same answer"),
    ([0, 1, 1], [5, 6, 7], "row 3: its prompt is that of row 2, with another answer"),
]


@pytest.mark.parametrize(("numbers", "answers", "message"), REPEATS)
def test_a_question_twice_in_the_test_is_refused_before_training_and_scoring(
    numbers, answers, message, files, tmp_path
):
    pairs = zip(numbers, answers, strict=True)
    test = [{"question": f"T {number}?", "answer": answer} for number, answer in pairs]
    spec = files(train=rows(), test=test)
    write(tmp_path / "made.jsonl", [{"completion": "5"}] * 3)

    for command in (
        f"train-eval --task {spec} --losses ce --dry-run",
        f"score --task {spec} --predictions made.jsonl",
    ):
        with expect_user_error(message):
            call(command, tmp_path)


def test_a_question_twice_in_train_is_said_before_training_and_by_sample(
    files, tmp_path
):
    spec = files(train=[*rows(), *rows(2)], validation=rows(5, "V"), test=rows(9, "T"))
    train = f"train-eval --task {spec} --losses ce --dry-run"
    for words in (train, f"sample {spec} -n 1"):
        outcome = call(words, tmp_path)
        assert outcome.status == 0
        output = " ".join(outcome.output.split())
        assert "2 rows have the prompt of another, such as row" not in output
        assert "row 61: its prompt is that of row 1, with the same answer." in output


FLATS = ',answer=price,prompt="{area} m2, {rooms} rooms:"'


def flats(rooms=(1, 2, 3, 4)):
    return [
        {"area": area, "rooms": room, "price": area * room}
        for area in range(20, 60)
        for room in rooms
    ]


def test_rows_of_a_template_are_split_by_the_whole_prompt(tmp_path):
    task = table(tmp_path / "flats.jsonl", flats(), FLATS)
    areas = {
        split: {example.prompt.partition(" ")[0] for example in examples}
        for split in ("train", "test")
        if (examples := task.examples(split, 0))
    }
    assert areas["test"] & areas["train"]
    sizes = [*task.paper_sizes.values()]
    assert sum(sizes) == 160
    assert min(sizes) >= 8

    # A column of one value once put all rows in one split.
    same = table(tmp_path / "one.jsonl", flats(), f"{FLATS},question=rooms")
    assert uids(same, "test") == uids(task, "test")


def test_many_equal_prompts_are_refused_in_one_short_sentence(tmp_path):
    file = tmp_path / "flats.jsonl"
    same = [dict(row, price=row["rooms"]) for row in flats()]
    with pytest.raises(UserError) as error:
        table(file, same, ',answer=price,prompt="{area} m2:"').examples("test", 0)
    message = str(error.value)
    assert message.count("flats.jsonl") == 1
    assert message.count("; row ") == 8
    assert "or add a column that differs to prompt= (" in message
    assert len(message) < 750 + len(str(file))


def test_a_template_names_columns(tmp_path):
    with expect_user_error("The prompt 'Price:' names no column: write {COLUMN}"):
        table(tmp_path / "a.jsonl", rows(), ",prompt=Price:").examples("train", 0)


def test_a_cell_that_the_prompt_needs_is_never_empty(tmp_path):
    content = rows(50, unit="m")
    del content[0]["unit"]
    file, prompt = tmp_path / "a.jsonl", ',prompt="In { unit }: {question}"'
    with expect_user_error(r"a\.jsonl, row 1: its unit is empty, and the prompt nee"):
        table(file, content, prompt).examples("train", 0)

    assert (
        table(file, content[1:], prompt)
        .examples("train", 0)[0]
        .prompt.startswith("In m: ")
    )
    assert len(table(file, content).examples("train", 0)) > 30


def test_doubled_braces_are_refused_and_others_are_themselves(tmp_path):
    with expect_user_error(r"The prompt '\{\{question\}\}' has doubled braces"):
        table(tmp_path / "a.jsonl", rows(), ",prompt={{question}}").examples("train", 0)
    task = table(tmp_path / "a.jsonl", rows(), r",prompt=\boxed{} {question}")
    assert task.examples("train", 0)[0].prompt.startswith(r"\boxed{} Q ")


def test_an_example_knows_its_row(tmp_path):
    for example in table(tmp_path / "a.jsonl", rows()).examples("train", 0):
        assert example.uid == f"table-{example.attributes['row']}"
        assert example.target == str(example.attributes["row"] - 1)


def test_parameters_of_reading_reach_the_file(tmp_path):
    file = tmp_path / "a.csv"
    lines = ["question;answer|x", *(f"Qué {at}?;{at}" for at in range(60))]
    file.write_text("\n".join(lines), encoding="cp1252")
    spec = f"table[path={file},answer=answer|x,separator=;,encoding=cp1252]"
    assert sb.load_task(spec).examples("test", 0)[0].prompt.startswith("Qué ")
