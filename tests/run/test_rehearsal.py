"""What scoring would refuse is found on the first targets of a split, before training."""

import re
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from smmd_bench.tasks.samsum import METRICS

from smmd_bench.contracts import Answer, ExactMatch, Example
from smmd_bench.models.recipe import Recipe
from smmd_bench.run.preflight import rehearse
from tests.conftest import expect_user_error

LACKING = {"name": "m", "columns": ("x",), "subset": None, "better": "higher"}


class Doubling:
    """A task of five examples, with the attributes of the class."""

    attributes: ClassVar[dict[str, Any]] = {"digits": 1}
    name = "doubling"

    def examples(self, split, seed, limit):
        return [
            Example(
                f"{n}",
                f"Double {n}.",
                f"{2 * n}",
                Answer(Fraction(2 * n)),
                (),
                self.attributes,
            )
            for n in range(limit)
        ]

    def parse(self, completion):
        return Answer(Fraction(completion))

    def metrics(self):
        return [ExactMatch()]


def rouge(*_):
    return {"rougeL": 1.0}


def by_zero(*_):
    raise ZeroDivisionError("by zero")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"attributes": {"prompt_tokens": 1}},
            "attribute 'prompt_tokens' is a column of completions",
        ),
        (
            {"parse": by_zero},
            "doubling, test: the target of example 0 or of one after it cannot be scored "
            "(ZeroDivisionError: by zero): correct the task, for which `smmd-bench validate",
        ),
        (
            {"metrics": lambda _: [SimpleNamespace(**LACKING)]},
            "cannot be scored (KeyError: None of [Index(['x']",
        ),
        ({"attributes": {"digits": 2**70}}, "cannot be scored (OverflowError"),
        (
            {"attributes": {"value": Fraction(1, 2)}},
            "Conversion failed for column value",
        ),
        (
            {"parse": lambda *_: None},
            "doubling, test: the task reads None in the target of example 0, '0', whose answer is "
            "0: let parse() of the task read it, or correct the answer; `smmd-bench",
        ),
        (
            {"parse": lambda _, text: Answer(Fraction(min(text, "7")))},
            "reads 7 in the target of example 4, '8', whose answer is 8",
        ),
        (
            {
                "parse": lambda *_: None,
                "metrics": lambda _: METRICS[:1],
                "annotate": rouge,
            },
            None,
        ),
        ({}, None),
    ],
)
def test_what_scoring_would_refuse_is_refused_before_training(changes, said):
    task = type("Changed", (Doubling,), changes)()
    cell = SimpleNamespace(task="doubling", task_plugin=task, recipe=Recipe())
    examples = task.examples("test", 0, 5)
    if said is None:
        rehearse(cell, "test", examples)
        return

    with expect_user_error(re.escape(said)):
        rehearse(cell, "test", examples)
