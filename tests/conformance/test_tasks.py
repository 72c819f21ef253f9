"""Each defect of a task is found by the check that is for it, and by no other."""

from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from examples.own_task import Doubling
from smmd_bench.conformance import tasks
from smmd_bench.conformance.tasks import check_task
from smmd_bench.contracts import Answer, ExactMatch, RSquared, parse_number, plain_text
from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_task

from ..conftest import DATA

_calls = count()

Good = type(
    "Good", (Doubling,), {"paper_sizes": {"train": 40, "validation": 20, "test": 30}}
)


def but(**attributes):
    """The good task, but for these attributes."""
    return type("Changed", (Good,), attributes)()


def examples(change, **attributes):
    """The good task with these fields of its examples, by the example."""

    def changed(self, *of):
        return [
            replace(example, **change(example)) for example in Good.examples(self, *of)
        ]

    return but(examples=changed, **attributes)


def read(completion):
    """The answer of a text that is a number."""
    value = parse_number(completion)
    return None if value is None else Answer(value)


def metric(base, **attributes):
    """The good task with a metric, changed, besides exact match."""
    changed = type("Changed", (base,), attributes)()
    return but(metrics=lambda self: (ExactMatch(), changed))


def rationale(start):
    """The good task with targets that begin with other numbers than the answer."""
    return examples(
        lambda e: {"target": f"7 + 1 = {e.target}", "answer_start": start},
        parse=lambda self, completion: read(plain_text(completion.rpartition("=")[2])),
    )


WITH_START = rationale(len("7 + 1 ="))


def train_as_test(self, split, *of):
    """The examples of training are those of the test, under other names."""
    of_train = Good.examples(self, "train" if split == "test" else split, *of)
    return [replace(example, uid=f"{split} {example.uid}") for example in of_train]


IDENTITY_WITHOUT_SEED = but(
    identity=lambda self, split, seed: {"generator": 1, "split": split}
)
EXAMPLES_WITHOUT_SEED = but(
    examples=lambda self, split, seed, limit=None: Good.examples(self, split, 0, limit)
)
IN_PERCENT_TWICE = {"statistic": lambda self, x, axis=-1: 200 * np.mean(x, axis=axis)}
DEFECTS = [
    ("contract", but(licence="")),
    ("parse", but(parse=lambda self, completion: Answer(Fraction(completion)))),
    ("examples", but(examples=lambda self, *given: Good.examples(self, *given)[:12])),
    ("examples", examples(lambda e: {"uid": e.uid[:-1]})),
    ("splits", but(examples=train_as_test)),
    ("reproducible", but(examples=lambda self, *of: Good.examples(self, *of)[::-1])),
    ("reproducible", IDENTITY_WITHOUT_SEED),
    ("reproducible", EXAMPLES_WITHOUT_SEED),
    ("reproducible", but(identity=lambda self, split, seed: {"call": next(_calls)})),
    ("parse(target)", examples(lambda e: {"target": f"it is {e.target}"})),
    ("parse(target)", rationale(0)),
    ("parse(target)", examples(lambda _: {"answer_start": 50})),
    ("parse(target)", but(parse=lambda self, text: read(text.partition("\n")[0]))),
    ("examples", examples(lambda _: {"images": (Path(__file__),)})),
    (
        "metrics",
        metric(
            ExactMatch, statistic=lambda self, x, axis=-1: np.asarray(100 * x.mean())
        ),
    ),
    ("metrics", metric(RSquared, name="inverted", better="lower")),
    ("metrics", metric(ExactMatch, **IN_PERCENT_TWICE)),
]
CONSEQUENCES = {"parse(target)": {"metrics"}, "parse": {"metrics", "parse(target)"}}


@pytest.fixture
def _in_this_process(monkeypatch):
    """The task of a test has no file from which another process could load it."""
    monkeypatch.setattr(tasks, "digests_elsewhere", tasks.digests)


def states(task):
    return {finding.check: finding.state for finding in check_task(task)}


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize(
    "task", [Good(), WITH_START], ids=["plain", "with a rationale"]
)
def test_a_task_without_a_fault_passes_every_check(task):
    assert set(states(task).values()) == {"passed"}


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize(("check", "task"), DEFECTS)
def test_a_defect_is_found_by_its_check(check, task):
    failed = {name for name, state in states(task).items() if state == "failed"}
    assert check in failed
    assert failed <= {check} | CONSEQUENCES.get(check, set())


def test_data_that_are_not_here_are_no_failure():
    def elsewhere(*_, **__):
        raise UserError("The data cannot be fetched: run `smmd-bench prepare good`.")

    def of_a_file(_, split, seed):
        return {"digest": "of the file", "split": split}

    findings = check_task(but(examples=elsewhere, identity=of_a_file))
    assert {f.state for f in findings} == {"passed", "unchecked"}
    assert "smmd-bench prepare good" in next(
        f.detail for f in findings if f.check == "examples"
    )


@pytest.mark.parametrize(
    "name", ["arithmetic", "gsm8k", "svamp", "samsum", "chartqa[source=official]"]
)
def test_the_tasks_here_pass(name, monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))
    outcomes = states(load_task(name))
    assert "failed" not in outcomes.values()
    assert outcomes["parse(target)"] == "passed"
