"""What a command says at its end."""

from smmd_bench.cli.outcome import group_reasons


def test_notes_and_failures_that_say_the_same_are_one_line():
    notes = [("a", "too near."), ("b", "slow."), ("c", "too near."), ("b", "too near.")]
    assert [*group_reasons(notes)] == ["a and 2 more: too near.", "b: slow."]
