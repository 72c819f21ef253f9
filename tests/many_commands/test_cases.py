"""Sequences that once left a folder wrong, or stuck, each in a few steps.

Some are right only because of one part of a folder's name: without it the checks here must fail.
"""

import shutil
from contextlib import suppress
from dataclasses import replace

import pytest

from smmd_bench.contracts import ExactMatch
from smmd_bench.errors import UserError
from smmd_bench.maintenance.foreign_completions import score_predictions
from smmd_bench.plugin_system import plugin_source, registry
from smmd_bench.results.frames import read_run
from smmd_bench.storage.cell import StoredCell
from smmd_bench.storage.files import write_text

from ..conftest import expect_user_error, read_files
from .folders import Asked, Killed, killed_at, run
from .test_folder import ManyCommands

pytestmark = pytest.mark.slow
CE = Asked(("ce",))
BOTH = Asked(("ce", "smmd"))
OTHER = "stub[flavour=2]"
CLEAN = ("clean", "one", "weights")
MOVE = ("move_to_another_machine", 1)


def tuned(losses, rates, **more):
    """`--tune learning_rate=...`."""
    return Asked(tuple(losses.split(",")), tune=(f"learning_rate={rates}",), **more)


def no_source(patch):
    """Plugins from outside are known by name and version."""
    patch.setattr(plugin_source, "source_digest", lambda plugin: None)


def no_weights(patch):
    """Folders are named by what was asked for, not by what came before."""
    patch.setattr(
        StoredCell,
        "_folder",
        lambda cell, stage, _: cell.run / stage / cell.parts[stage],
    )


SEQUENCES = {
    "an edited plugin": [
        Asked(("mine",)), ("edit_a_plugin", "mine.py", 1), Asked(("mine",)),
        ("edit_a_comment", "mine.py"), Asked(("mine",)), ("edit_a_plugin", "mine.py", 0),
    ],
    "new weights inherit nothing": [CE, CLEAN, MOVE, replace(CE, size=5)],
    "one training, two selected epochs": [
        Asked(("ce", "mine", "smmd")), Asked(("ce", "mine", "smmd"), engine=OTHER)
    ],
    "a tuned loss beside its plain rows": [
        tuned("ce,smmd", "0.1,0.2,0.4"), BOTH, tuned("ce,smmd", "0.1,0.2,0.4")
    ],
    "a row that becomes a trial": [
        replace(CE, rate=0.2), tuned("ce", "0.1,0.2"), replace(CE, rate=0.2, size=5)
    ],
    "a tuned loss whose trials are killed": [
        *(("killed_train_eval", "one", tuned("ce", "0.1,0.2"), count) for count in range(0, 40, 5)),
        tuned("ce", "0.1,0.2"),
    ],
    "trials with other weights": [
        tuned("ce", "0.1,0.2"), CLEAN, MOVE, tuned("ce", "0.1,0.2"), tuned("ce", "0.1,0.2", size=5)
    ],
    "beams of other weights": [BOTH, CLEAN, MOVE, replace(BOTH, decoders=("greedy", "mean"))],
    "a test of transfer": [
        replace(BOTH, transfers=True), CLEAN, replace(BOTH, transfers=True, size=5),
        tuned("ce", "0.1,0.2", transfers=True),
    ],
    "a newer version of the scoring": [
        BOTH, tuned("ce", "0.1,0.2"), ("upgrade", "statistics", 2), BOTH, tuned("ce", "0.1,0.2"),
    ],
    "a choice by another validation": [
        tuned("mine", "0.1,0.2,0.4"), tuned("mine", "0.1,0.2,0.4", engine=OTHER),
        ("edit_a_plugin", "mine.py", 1), tuned("mine", "0.1,0.2,0.4"),
    ],
}  # fmt: skip
TAKEN_OUT = {"an edited plugin": no_source, "new weights inherit nothing": no_weights}


def play(steps):
    """Do the steps, and after each of them what the stateful test does."""
    commands = ManyCommands()
    try:
        for step in steps:
            words = ("train_eval", "one", step) if isinstance(step, Asked) else step
            getattr(commands, words[0])(*words[1:])
            commands.folders_say_what_fresh_ones_say()
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


def weights_of(commands, asked):
    """The folders with selected weights of the cells in the first folder."""
    checkpoints = (
        cell.stored(commands.root / "one").checkpoint for cell in asked.experiment.cells
    )
    return [folder for folder in checkpoints if folder is not None]


def test_weights_that_were_removed_come_back_only_when_they_are_asked_for(commands):
    for asked in (BOTH, tuned("ce", "0.1,0.2")):
        commands.train_eval("one", asked)
        checkpoints = weights_of(commands, asked)
        commands.clean("one", "weights")
        assert not run(asked, commands.root / "one").worked
        assert not weights_of(commands, asked)
        assert run(asked, commands.root / "one", restore=True).worked
        assert {*weights_of(commands, asked)} <= {*checkpoints}
        assert weights_of(commands, asked)
        assert not run(asked, commands.root / "one", restore=True).worked


def test_going_back_trains_nothing(commands, monkeypatch):
    commands.train_eval("one", CE)
    commands.train_eval("one", replace(CE, rate=0.2))
    monkeypatch.setattr(commands.workshop.edge, "train", None)
    commands.train_eval("one", CE)


def test_a_new_metric_is_measured_for_the_cells_of_earlier_commands_too(
    commands, monkeypatch
):
    commands.train_eval("one", CE)
    commands.train_eval("one", Asked(("smmd",)))
    monkeypatch.setattr(ExactMatch, "version", 99)
    commands.train_eval("one", Asked(("smmd",)))
    frames = read_run(commands.root / "one")
    assert (
        len({frames.current(a).parts["measure"] for a in frames.cells["address"]}) == 1
    )
    assert (frames.cells["status"] == "done").all()


@pytest.mark.parametrize("count", range(0, 40, 3))
def test_a_new_folder_that_was_killed_is_the_same_commands(commands, count):
    command = replace(BOTH, base=True)
    with suppress(Killed), killed_at(count):
        run(command, commands.root / "one")
    commands.train_eval("one", command)
    commands.folders_say_what_fresh_ones_say()


@pytest.mark.parametrize("harm", ["cut", "delete"])
@pytest.mark.parametrize("file", ["receipt.json", "selection.json", "completions.parquet",
                                  "scores.parquet", "metrics.json", "comparison.json"])  # fmt: skip
def test_a_damaged_file_is_made_again(commands, file, harm, caplog):
    commands.train_eval("one", BOTH)
    damage(commands, file, harm)
    files = read_files(commands.root / "one")
    with suppress(UserError):
        _ = read_run(commands.root / "one").completions
    assert read_files(commands.root / "one") == files  # reading moves nothing

    run(BOTH, commands.root / "one")
    commands.touched.add("one")
    commands.folders_say_what_fresh_ones_say()
    assert "is set aside and made again" in caplog.text


@pytest.mark.parametrize(
    ("file", "frame"), [("log", "train_log"), ("probes", "probes")]
)
def test_what_nothing_is_made_from_repeats_nothing_where_it_is_damaged(
    commands, file, frame
):
    commands.train_eval("one", BOTH)
    damage(commands, f"{file}.parquet")
    with expect_user_error(f"{file}.parquet is damaged .* delete it"):
        getattr(read_run(commands.root / "one"), frame)
    assert not run(BOTH, commands.root / "one").worked

    for found in (commands.root / "one").glob(f"*/*/{file}.parquet"):
        found.unlink()
    assert getattr(read_run(commands.root / "one"), frame).empty
    assert not run(BOTH, commands.root / "one").worked


def damage(commands, file, harm="cut"):
    """Cut every file of that name after a few bytes, or delete it."""
    for found in (commands.root / "one").glob(f"*/*/{file}"):
        found.write_bytes(found.read_bytes()[:7]) if harm == "cut" else found.unlink()


def test_a_parser_that_raises_fails_its_cells_each_time_and_the_others_go_on(
    commands, monkeypatch
):
    def parse(_, completion):
        raise ValueError("no such completion")

    with monkeypatch.context() as patch:
        patch.setattr(type(registry.load_task("toy")), "parse", parse)
        patch.setattr("smmd_bench.run.pipeline.preflight", lambda *_: None)
        for _ in range(2):
            outcome = run(CE, commands.root / "one")
            assert "no such completion" in "".join(outcome.failed.values())

    commands.train_eval("one", CE)


def test_files_of_completions_are_scored_as_in_a_fresh_folder(commands):
    def scored(folder, answers):
        files = []
        for name, answer in answers.items():
            lines = [
                f'{{"id": "test-{at}", "completion": "{answer}"}}' for at in range(9)
            ]
            files.append(commands.root / f"{name}.jsonl")
            write_text(files[-1], "\n".join(lines))
        out = score_predictions("toy", files, out=commands.root / folder).path
        return read_run(out).comparisons.drop(columns=["address", "against"]).to_csv()

    first = {"old": 1, "new": 2}
    second = {"old": 1, "new": 3}
    expected = scored("fresh", first)
    assert scored("many", first) == expected
    assert scored("many", second) != expected
    assert scored("many", first) == expected

    shutil.rmtree(commands.root / "many")
