"""Sequences that once left a folder wrong, or stuck, each in a few steps.

Some are right only because of one line of the harness: without it the checks here must fail.
"""

from contextlib import suppress

import pytest

from smmd_bench.contracts import ExactMatch
from smmd_bench.experiment.cell import Cell
from smmd_bench.plugin_system import plugin_source, registry
from smmd_bench.results.frames import read_run
from smmd_bench.run.predictions import score_predictions
from smmd_bench.storage.current import CurrentCell
from smmd_bench.storage.files import write_text

from .folders import Killed, killed_at, run
from .test_folder import ManyCommands

pytestmark = pytest.mark.slow

PLAIN = (True, 0.1, "stub", 9, False, (), ("greedy",))


def asked(losses, rate=0.1, engine="stub"):
    """A step: `train-eval --extend` in the first folder, without the base."""
    return ("train_eval", "one", losses.split(","), False, rate, engine, 9, False)


def fewer(losses, *tune):
    """The same with fewer test examples, for which the weights are needed again."""
    return ("train_eval", "one", losses.split(","), False, 0.1, "stub", 5, False, tune)


def ruled(*rules):
    """The same of CE and SMMD with `--decoders`."""
    return (*asked("ce,smmd"), (), ("greedy", *rules))


def tuned(losses, rates, engine="stub"):
    """The same with `--tune learning_rate=...`."""
    return (*asked(losses, engine=engine), (f"learning_rate={rates}",))


def no_source(patch):
    """Plugins from outside are addressed by name and version."""
    patch.setattr(plugin_source, "source_digest", lambda plugin: None)


def no_weights(patch):
    """Completions are stamped with what was asked for, not with the weights."""
    for stamp, stage in (("decode_stamp", "decode"), ("validation_stamp", "validate")):
        of_stage = property(lambda cell, stage=stage: cell.addresses[stage])
        patch.setattr(CurrentCell, stamp, of_stage)


def no_engine(patch):
    """The engine is no part of what selects an epoch."""
    whole = Cell._selection

    def selection(cell, train, greedy):
        return whole(cell, train, {k: v for k, v in greedy.items() if k != "engine"})

    patch.setattr(Cell, "_selection", selection)


def no_trials(patch):
    """A choice is stamped with what was asked for, not with the weights of the trials."""
    whole = vars(CurrentCell)["choice_stamp"].func
    asked_for = property(lambda cell: cell.addresses["select"] if whole(cell) else None)
    patch.setattr(CurrentCell, "choice_stamp", asked_for)


SEQUENCES = {
    "a difference to a CE that is not in the table": [asked("ce,smmd"), asked("ce", 0.2)],
    "reports of another state count as current": [
        asked("ce"), asked("ce", 0.2), ("report", "one", 10**6), asked("ce")
    ],
    "an edited plugin keeps its results": [
        asked("mine"), ("edit_a_plugin", "mine.py", 1), asked("mine")
    ],
    "training again delivers nothing": [
        asked("ce"), ("clean", "one", "checkpoints"), asked("ce")
    ],
    "what is measured is not trained again": [
        asked("ce"), ("clean", "one", "checkpoints"), ("move_to_another_machine", 1),
        asked("ce,smmd"), ("clean", "one", "checkpoints"), fewer("ce,smmd"),
    ],
    "new weights inherit old completions": [
        asked("ce"), ("clean", "one", "checkpoints"), ("move_to_another_machine", 1), fewer("ce")
    ],
    "one address, two selected epochs": [
        asked("ce,mine,smmd"), asked("ce,mine,smmd", engine="stub[flavour=2]")
    ],
    "probes of a failed cell": [asked("ce"), asked("ce", engine="stub[flavour=3]")],
    "a tuned loss": [tuned("ce,smmd", "0.1,0.2,0.4"), tuned("ce,smmd", "0.1,0.2,0.4")],
    "a grid that changes": [tuned("ce", "0.1,0.2"), tuned("ce", "0.4,0.2"), tuned("ce", "0.1,0.2")],
    "a row that becomes a trial": [asked("ce", 0.2), tuned("ce", "0.1,0.2"), asked("ce", 0.2)],
    "a trial that becomes a row": [
        tuned("ce", "0.1,0.2"), asked("ce", 0.2), tuned("ce", "0.1,0.4")
    ],
    "a tuned loss whose trials are killed": [
        ("killed_train_eval", "one", ["ce"], 0.1, "stub", 9, count, ("learning_rate=0.1,0.2",))
        for count in range(0, 40, 5)
    ] + [tuned("ce", "0.1,0.2")],
    "a trial that fails": [tuned("ce", "0.1,0.3"), tuned("ce", "0.1,0.2")],
    "trials with other weights": [
        tuned("ce", "0.1,0.2"), ("clean", "one", "checkpoints"), ("move_to_another_machine", 1),
        tuned("ce", "0.1,0.2"), fewer("ce", "learning_rate=0.1,0.2"),
    ],
    "a grid of which some trials have lost their weights": [
        tuned("ce", "0.1,0.2"), ("clean", "one", "checkpoints"), ("move_to_another_machine", 1),
        tuned("ce", "0.1,0.2,0.4"), fewer("ce", "learning_rate=0.1,0.2,0.4"),
        tuned("ce", "0.4,0.1"),
    ],
    "a row with another test that becomes a trial": [
        ("train_eval", "one", ["ce"], False, 0.2, "stub", 5, False), tuned("ce", "0.1,0.2"),
        ("train_eval", "one", ["ce"], False, 0.2, "stub", 5, False),
    ],
    "a trial that is validated otherwise as a row": [
        tuned("ce,mine", "0.2,0.1"), asked("ce", 0.2, "stub[flavour=3]"), asked("ce", 0.1),
        tuned("ce", "0.2,0.1", "stub[flavour=2]"),
    ],
    "decoders that come and go": [
        asked("ce,smmd"), ruled("mean"), ruled("mean", "median"), asked("ce,smmd"), ruled("median")
    ],
    "a ruled row that becomes a trial": [
        ("train_eval", "one", ["ce"], False, 0.2, "stub", 9, False, (), ("greedy", "mean")),
        tuned("ce", "0.1,0.2"),
        ("train_eval", "one", ["ce"], False, 0.2, "stub", 9, False, (), ("greedy", "mean")),
    ],
    "beams of other weights": [
        asked("ce,smmd"), ("clean", "one", "checkpoints"), ("move_to_another_machine", 1),
        ruled("mean"),
    ],
    "a choice by another validation": [
        tuned("mine", "0.1,0.2,0.4"), tuned("mine", "0.1,0.2,0.4", "stub[flavour=2]"),
        ("edit_a_plugin", "mine.py", 1), tuned("mine", "0.1,0.2,0.4"),
    ],
}  # fmt: skip
TAKEN_OUT = {
    "an edited plugin keeps its results": no_source,
    "new weights inherit old completions": no_weights,
    "one address, two selected epochs": no_engine,
    "trials with other weights": no_trials,
}


def play(steps):
    """Do the steps, and after each of them what the stateful test does."""
    commands = ManyCommands()
    try:
        for name, *arguments in steps:
            getattr(commands, name)(*arguments)
            commands.reports_are_those_of_a_fresh_folder()
    finally:
        commands.teardown()


@pytest.mark.parametrize("case", SEQUENCES)
def test_a_sequence_leaves_what_a_fresh_folder_has(case, monkeypatch):
    play(SEQUENCES[case])
    if case in TAKEN_OUT:
        TAKEN_OUT[case](monkeypatch)
        with pytest.raises(AssertionError):
            play(SEQUENCES[case])


@pytest.fixture
def commands():
    """Two folders; everything is as before afterwards."""
    machine = ManyCommands()
    yield machine
    machine.teardown()


def test_a_new_metric_is_measured_for_the_cells_of_earlier_commands_too(commands, monkeypatch):
    commands.train_eval("one", ["ce"], *PLAIN)
    commands.train_eval("one", ["smmd"], *PLAIN)
    monkeypatch.setattr(ExactMatch, "version", 99)
    commands.train_eval("one", ["smmd"], *PLAIN)
    asked = commands.books.ask("one", (["ce", "smmd"], *PLAIN))
    found = read_run(commands.root / "one")
    assert {c.addresses["measure"] for c in asked.cells} == {
        found.current(address).addresses["measure"] for address in found.cells["address"]
    }
    assert (found.cells["status"] == "done").all()


def test_answers_to_other_questions_are_not_compared(commands):
    commands.train_eval("one", ["ce"], False, *PLAIN[1:])
    commands.edit_a_plugin("toy_task.py", 1)
    commands.train_eval("one", ["smmd"], False, *PLAIN[1:])
    assert read_run(commands.root / "one").comparisons.empty
    commands.train_eval("one", ["ce"], False, *PLAIN[1:])
    assert set(read_run(commands.root / "one").comparisons["against_loss"]) == {"ce"}


def test_a_setting_without_effect_on_scores_leaves_the_comparison(commands):
    commands.train_eval("one", ["ce", "smmd"], *PLAIN)
    commands.train_eval("one", ["ce"], True, 0.1, "stub", 9, True)
    found = read_run(commands.root / "one").comparisons
    assert set(found.loc[found["loss"] == "smmd", "against_loss"]) == {"ce"}


@pytest.mark.parametrize("count", range(8))
def test_a_new_folder_that_was_killed_is_the_same_commands(commands, count):
    experiment = commands.books.ask("one", (["ce"], *PLAIN))
    with suppress(Killed), killed_at(count):
        run(experiment, commands.root / "one")
    assert not run(experiment, commands.root / "one").failed
    commands.books.require_finished("one")


def test_a_parser_that_raises_fails_its_cells_each_time_and_the_others_go_on(commands, monkeypatch):
    def parse(_, completion):
        raise ValueError("no such completion")

    experiment = commands.books.ask("one", (["ce"], *PLAIN))
    with monkeypatch.context() as patch:
        patch.setattr(type(registry.load_task("toy")), "parse", parse)
        patch.setattr("smmd_bench.run.pipeline.preflight", lambda *_: None)
        for _ in range(2):
            outcome = run(experiment, commands.root / "one")
            assert "no such completion" in "".join(outcome.failed.values())
    assert not run(experiment, commands.root / "one").failed
    commands.books.require_finished("one")


def test_files_of_completions_are_scored_as_in_a_fresh_folder(commands):
    def scored(folder, answers):
        files = [commands.root / f"{name}.jsonl" for name in answers]
        for file, answer in zip(files, answers.values(), strict=True):
            lines = [f'{{"id": "test-{at}", "completion": "{answer}"}}' for at in range(9)]
            write_text(file, "\n".join(lines))
        out = score_predictions("toy", files, out=commands.root / folder).path
        return read_run(out).comparisons.drop(columns=["address", "against"]).to_csv()

    first, second = {"old": 1, "new": 2}, {"old": 1, "new": 3}
    expected = scored("fresh", first)
    assert scored("many", first) == expected
    assert scored("many", second) != expected
    assert scored("many", first) == expected
