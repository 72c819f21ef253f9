"""Word problems and dialogues made here: their arithmetic, splits and tasks."""

import re

import pytest
from smmd_bench.tasks._word_problems import _content, made_problem

from smmd_bench.conformance.tasks import check_task
from smmd_bench.plugin_system.registry import load_task

NOTE = re.compile(r"([0-9+*/-]+) = \$?<<([0-9+*/-]+)=(\d+)>>(\d+)")


@pytest.mark.parametrize("kind", ["gsm8k", "svamp"])
def test_every_step_is_right_and_the_last_is_the_answer(kind):
    problems = [made_problem(kind, "train", 0, at) for at in range(400)]
    assert {problem.template for problem in problems} == {*_content()[kind]}
    for problem in problems:
        assert "[" not in problem.answer
        assert "{" not in problem.question
        # 2: of "half as many"
        known_numbers = {*re.findall(r"\d+", problem.question), "2"}
        notes = NOTE.findall(problem.answer)
        for text, formula, result, printed_result in notes:
            assert text == formula
            assert eval(formula) == int(result) == int(printed_result) > 0
            assert known_numbers.issuperset(re.findall(r"\d+", formula))
            known_numbers.add(result)
        last_line = problem.answer.splitlines()[-1]
        assert last_line == f"#### {result}" == f"#### {problem.value}"


def test_splits_share_no_template_with_the_same_values():
    def keys(split, seed):
        problems = [made_problem("gsm8k", split, seed, at) for at in range(2_000)]
        return {(p.template, *re.findall(r"\d+", p.question)) for p in problems}

    train, validation, test = keys("train", 0), keys("validation", 1), keys("test", 2)
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
