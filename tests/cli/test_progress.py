"""Progress where there is no terminal: a line now and then, with the rate and the time left."""

import io

import pytest
from rich.console import Console

from smmd_bench.cli import progress


@pytest.fixture
def say(monkeypatch):
    """`say(seconds, what, done, total)`: the lines that are new so many seconds later."""
    clock, file = [1000.0], io.StringIO()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with progress.show_progress(Console(file=file, width=20)) as tell:

        def after(seconds, *told):
            clock[0] += seconds
            length = len(file.getvalue())
            (tell.show_plan if len(told) == 1 else tell)(*told)
            return file.getvalue()[length:].splitlines()

        yield after


def test_the_first_line_comes_at_once_and_the_next_after_a_while(say):
    assert say(0, "train", 2, 100) == ["train: 2 of 100"]
    assert say(14.9, "train", 5, 100) == []
    assert say(0.1, "train", 32, 100) == ["train: 32 of 100, 2.0/s, 34 s left"]
    assert say(1, "decode", 0, 9) == ["decode: 0 of 9"]
    assert say(13.9, "train", 40, 100) == []


def test_the_end_is_said_at_once(say):
    say(0, "train", 0, 10)
    assert say(5, "train", 10, 10) == ["train: 10 of 10, 2.0/s"]


def test_reports_that_arrive_together_have_no_rate(say):
    assert say(0, "tokenise", 1000, 5000) == ["tokenise: 1000 of 5000"]
    assert say(1e-4, "tokenise", 5000, 5000) == ["tokenise: 5000 of 5000"]


def test_a_message_stands_on_a_line_of_its_own_however_long(say):
    assert say(0, "a note of [red]: " + "long " * 9, 0, 0) == [
        "a note of [red]: " + "long " * 9
    ]


def test_the_plan_has_a_line_now_and_then_and_as_a_training_ends(say):
    assert say(0, "Plan: 0 of 2 trainings done") == ["Plan: 0 of 2 trainings done"]
    assert say(61, "Plan: 0 of 2 trainings done") == []
    left = "Plan: 0 of 2 trainings done, about 9 min left, ends about 10:30"
    assert say(0, left) == [left]
    assert say(59, left.replace("9", "8")) == []
    assert say(1, left.replace("9", "8")) == [left.replace("9", "8")]
    assert say(1, left.replace("0 of", "1 of")) == [left.replace("0 of", "1 of")]


def test_on_a_terminal_the_plan_stands_above_the_bars_and_the_last_bars_are_seen():
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80, height=8)
    with progress.show_progress(terminal) as tell:
        for number in range(9):
            tell(f"train {number}", 2, 2)
        tell("train 9", 1, 2)
        tell.show_plan("Plan: 9 of 10 trainings done")
        paper = Console(file=io.StringIO(), width=80)
        paper.print(*tell.get_renderables(), sep="\n")
    first, *bars = paper.file.getvalue().splitlines()
    assert first == "Plan: 9 of 10 trainings done"
    assert [bar[:7] for bar in bars] == [f"train {number}" for number in range(4, 10)]
