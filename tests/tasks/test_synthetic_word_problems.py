"""Word problems and dialogues made here: their arithmetic, splits and tasks."""

import re

import pytest
from smmd_bench.tasks._word_problems import _content, made_problem

from smmd_bench.conformance.tasks import check_task
from smmd_bench.plugin_system.registry import load_task

NOTE = re.compile(r"([0-9+*/-]+) = \$?<<([0-9+*/-]+)=(\d+)>>(\d+)")


@pytest.mark.parametrize("kind", ["gsm8k", "svamp"])
def test_every_step_is_right_and_the_last_is_the_answer(kind):
    made = [made_problem(kind, "train", 0, at) for at in range(400)]
    assert {p.template for p in made} == {*_content()[kind]}
    for problem in made:
        *lines, last = problem.answer.splitlines()
        notes = [match.groups() for line in lines for match in NOTE.finditer(line)]
        assert "[" not in problem.answer
        assert "{" not in problem.question
        for written, formula, result, shown in notes:
            assert written == formula
            assert eval(formula) == int(result) == int(shown) > 0
        assert last == f"#### {notes[-1][2]}" == f"#### {problem.value}"
        given = set(re.findall(r"\d+", problem.question))
        results = {note[2] for note in notes}
        used = {number for note in notes for number in re.findall(r"\d+", note[1])}
        assert used <= given | results | {"2"}  # a half is nowhere written as a number


def test_splits_share_no_template_with_the_same_values():
    def found(split, seed):
        made = [made_problem("gsm8k", split, seed, at) for at in range(2_000)]
        return {(p.template, tuple(re.findall(r"\d+", p.question))) for p in made}

    train, validation, test = (found(s, i) for i, s in enumerate(("train", "validation", "test")))
    assert not train & validation | train & test | validation & test


def test_the_same_arguments_give_the_same_problem():
    assert made_problem("gsm8k", "train", 0, 7).question == (
        "Felix sold 189 beads on Wednesday, 67 on Saturday and 35 on Sunday. "
        "How many beads did Felix sell on the three days?"
    )


@pytest.mark.parametrize("name", ["gsm8k", "svamp", "samsum"])
def test_examples_need_no_data_and_keep_the_contract(name):
    task = load_task(f"{name}[source=synthetic]")
    assert task.sources == ()
    assert "synthetic" in task.licence
    assert task.identity("test", 0)["source"] == "synthetic"
    assert task.identity("test", 0) != task.identity("test", 1)
    assert {finding.state for finding in check_task(task)} == {"passed"}
    assert not any("<<" in example.target for example in task.examples("test", 0, 50))
