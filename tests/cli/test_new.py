"""What `smmd-bench new` writes works, is clean, and passes its own tests."""

import gzip
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from smmd_bench import load_plugin_file, load_task

from .conftest import run_here

BIN = Path(sys.executable).parent
KINDS = ("task", "loss", "report")


def run(line, cwd):
    """Run a command of this environment; what it prints."""
    command, *words = line.split()
    out = subprocess.run(
        [BIN / command, *words], cwd=cwd, capture_output=True, text=True
    )
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout


@pytest.mark.long
def test_what_is_written_works_is_clean_and_passes_its_own_tests(tmp_path):
    for kind in KINDS:
        assert run_here(f"new {kind} my_{kind}", cwd=tmp_path).returncode == 0
    lines = [f'{{"Problem": "{at}?", "label": "{at}"}}' for at in range(60)]
    (tmp_path / "n.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    lines = ["Problem\tlabel", *(f"{at}?\ta, {at}" for at in range(60))]
    (tmp_path / "words.tsv").write_text("\n".join(lines))
    for file in ("n.jsonl.gz", "words.tsv"):
        name = file.partition(".")[0]
        words = f"new task my_{name} --from {file}"
        assert run_here(words, cwd=tmp_path).returncode == 0

    rules = "--isolated --line-length 100 --quiet ."
    run(f"ruff check --select E,F,W,I,UP,B,N,RUF,SIM,PT {rules}", tmp_path)
    run(f"ruff format --check {rules}", tmp_path)
    # hypothesis takes three seconds of imports
    passed = run("python -m pytest -q -W error -p no:hypothesispytest .", tmp_path)
    assert passed.splitlines()[-1].startswith("17 passed")

    files = "".join(f" --plugin my_{kind}.py" for kind in KINDS)
    listed = run(f"smmd-bench ls{files}", tmp_path)
    for kind in KINDS:
        assert f"my_{kind} " in listed


FILES = [
    (
        "id,Question ,ANSWER",
        "1,{0}?,{0}",
        "",
        "the question is 'Question', the answer is 'ANSWER'.",
    ),
    (
        "id,Question,label,Split",
        "1,{0}?,{0},train",
        "",
        "'label', the split is 'Split'.",
    ),
    (
        "id,what,that",
        "1,{0}?,{0}",
        "--question what --answer that",
        "is 'what', the answer is 'that'",
    ),
    ("a,b,split", "{0}?,{0},test", "--question=a --answer=b", "the split is 'split'."),
]


def new_task(folder, header, row, more):
    """Write a task for a file of 50 rows."""
    lines = [header, *map(row.format, range(50))]
    (folder / "a.csv").write_text("\n".join(lines))
    return run_here(f"new task mine --from a.csv {more}", cwd=folder)


@pytest.mark.parametrize(("header", "row", "more", "said"), FILES)
def test_columns_have_usual_names_or_are_named_and_the_choice_is_printed(
    header, row, more, said, tmp_path
):
    out = new_task(tmp_path, header, row, more)
    assert out.returncode == 0, out.stderr
    assert said in out.stdout


UNKNOWN = [
    (
        "id,what,answer",
        "",
        "a.csv has no column with a usual name for the question, of id, what, an",
    ),
    (
        "question,prompt,answer",
        "",
        "a.csv has question and prompt for the question, of question, pr",
    ),
    (
        "id,question,split",
        "",
        "for the answer, of id, question, split: name it with --answer",
    ),
    (
        "question,answer",
        "--answer ansver",
        "has no column 'ansver': did you mean answer?",
    ),
]


@pytest.mark.parametrize(("header", "more", "said"), UNKNOWN)
def test_a_column_is_never_guessed(header, more, said, tmp_path):
    row = ",".join(["{0}"] * len(header.split(",")))
    out = new_task(tmp_path, header, row, more)
    assert out.returncode == 2, out.stderr
    assert said in out.stderr, out.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_task_of_a_file_has_the_rows_of_table(tmp_path):
    places = [
        (f"Q {at}?", at * 1e-05, "test" if at < 9 else "train") for at in range(60)
    ]
    frame = pd.DataFrame(places, columns=["Question", "answer", "split"])
    frame["answer"] = frame["answer"].astype("float32")
    frame.to_parquet(tmp_path / "a.parquet")
    out = run_here("new task as_code --from a.parquet", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    load_plugin_file(tmp_path / "as_code.py")
    table = load_task(f"table[path={tmp_path}/a.parquet,question=Question,split=split]")
    assert table.select_by == load_task("as_code").select_by == "mean_absolute_error"

    for split in ("train", "validation", "test"):
        assert [(e.prompt, e.target, e.answer) for e in table.examples(split, 0)] == [
            (e.prompt, e.target, e.answer)
            for e in load_task("as_code").examples(split, 0)
        ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("task arithmetic", "choose another, such as my_arithmetic"),
        ("loss Earth-Mover", "take a-z, 0-9 and _"),
        ("loss class", "'class' is no name"),
        ("task 2nd", "a letter first"),
        ("report json", "would hide the module json"),
        ("task there", "there.py exists already"),
        ("loss mine --from there.py", "is for a task"),
        (
            "task mine --answer a",
            "--answer names a column of a file: give the file with --from",
        ),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(words, said, tmp_path):
    (tmp_path / "there.py").write_text("mine")
    out = run_here(f"new {words}", cwd=tmp_path)
    assert out.returncode == 2, out.stderr
    assert said in out.stderr, out.stderr
    assert {path.name for path in tmp_path.rglob("*")} == {"there.py"}
