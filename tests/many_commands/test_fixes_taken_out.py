"""Each way in which a folder once said something stale is found when its fix is taken out."""

from collections.abc import Callable
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pytest

from smmd_bench.decoding.selection import select_again
from smmd_bench.experiment import experiment
from smmd_bench.plugin_system import plugin_source
from smmd_bench.publishing import report_stamp
from smmd_bench.results.frames import RunFrames
from smmd_bench.run import pipeline
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.addresses import address
from smmd_bench.storage.current import CurrentCell
from smmd_bench.storage.files import read_json

from .test_folder import ManyCommands

pytestmark = pytest.mark.slow

Patch = pytest.MonkeyPatch
Step = tuple[str, *tuple[Any, ...]]


def asked(losses, rate=0.1, engine="stub", *, base=False):
    """A step: `train-eval --extend` in the first folder."""
    return ("train_eval", "one", losses.split(","), base, rate, engine, 9, False)


def unchecked_comparisons(patch):
    """comparison.json counts whatever it was made of."""

    def comparisons(run):
        rows = []
        for identity, cell in run._done_cells():
            content = read_json(cell.folder / "comparison.json") or {"metrics": {}}
            for metric, values in content["metrics"].items():
                other = {name: content[name] for name in ("against", "against_loss")}
                rows.append({**identity, **other, "metric": metric, **values})
        columns = ["address", "model", "task", "loss", "seed", "against", "against_loss", "metric"]
        return run._frame(rows, [*columns, "difference", "low", "high", "n", "b", "c", "p"], ())

    found = cached_property(comparisons)
    found.__set_name__(RunFrames, "comparisons")
    patch.setattr(RunFrames, "comparisons", found)


def stamp_of_files(patch):
    """Reports are stamped with the measurements of all folders alone."""

    def stamp(folder):
        files = sorted((folder / "cells").glob("*/metrics.json"))
        return address({f.parent.name: (read_json(f) or {})["address"] for f in files})

    patch.setattr(report_stamp, "report_stamp", stamp)


def no_source(patch):
    """Plugins from outside are addressed by name and version."""
    patch.setattr(plugin_source, "source_digest", lambda plugin: None)


def no_delivery(patch):
    """The decode stage alone makes `checkpoint/`, and is left out where nothing else is missing."""
    whole = RunDirectory.missing

    def missing(run, cell):
        now = run.current(cell.source or cell)
        if now.tested is not None and not cell.is_base and now.has_epoch(now.tested.epoch):
            return [] if run.current(cell).metrics is not None else whole(run, cell)
        return whole(run, cell)

    def only_select(cell, run):
        if not cell.is_base and cell.source is None:
            select_again(cell, cell.files(run))

    patch.setattr(RunDirectory, "missing", missing)
    patch.setattr(pipeline, "settle", only_select)


def no_weights(patch):
    """Completions are stamped with the epoch, not with its weights."""

    def decode_stamp(cell):
        epoch = None if cell.tested is None else cell.tested.epoch
        decode = cell.addresses["decode"]
        return None if epoch is None else address({"decode": decode, "epoch": epoch})

    patch.setattr(CurrentCell, "decode_stamp", property(decode_stamp))
    stamp = property(lambda cell: cell.addresses["validate"])
    patch.setattr(CurrentCell, "validation_stamp", stamp)


def no_engine(patch):
    """The engine is no part of what selects an epoch."""
    whole = experiment.Cell._selection

    def selection(cell, train, greedy):
        return whole(cell, train, {k: v for k, v in greedy.items() if k != "engine"})

    patch.setattr(experiment.Cell, "_selection", selection)


def unchecked_probes(patch):
    """Probes are read of every cell that has the file."""

    def read(run, file, columns=None, addresses=None):
        from smmd_bench.results.cell_files import columns_of

        cells = run.cells if file == "probes" else run.having(file)
        if addresses is not None:
            cells = cells[cells["address"].isin(list(addresses))]
        return run._concatenated(cells, lambda f: columns_of(f / f"{file}.parquet", columns))

    patch.setattr(RunFrames, "read", read)


CASES: dict[str, tuple[Callable[[Patch], None], list[Step]]] = {
    "1 a difference to a CE that is not in the table": (
        unchecked_comparisons,
        [asked("ce,smmd"), asked("ce", 0.2)],
    ),
    "2 reports of another state count as current": (
        stamp_of_files,
        [asked("ce"), asked("ce", 0.2), ("report", "one", 10**6), asked("ce")],
    ),
    "3 an edited plugin keeps its results": (
        no_source,
        [asked("mine"), ("edit_a_plugin", "mine.py", 1), asked("mine")],
    ),
    "4 training again delivers nothing": (
        no_delivery,
        [asked("ce"), ("clean", "one", "checkpoints"), asked("ce")],
    ),
    "5 new weights inherit old completions": (
        no_weights,
        [
            asked("ce"), ("clean", "one", "checkpoints"), ("move_to_another_machine", 1),
            asked("ce"),
        ],
    ),
    "7 one address, two selected epochs": (
        no_engine,
        [asked("ce,mine,smmd"), asked("ce,mine,smmd", engine="stub[flavour=2]")],
    ),
    "8 probes of a failed cell": (
        unchecked_probes,
        [asked("ce"), asked("ce", engine="stub[flavour=3]")],
    ),
}  # fmt: skip


@contextmanager
def machine():
    """Two folders; everything is as before afterwards."""
    commands = ManyCommands()
    try:
        yield commands
    finally:
        commands.teardown()


def play(steps):
    """Do the steps, and after each of them what the stateful test does."""
    with machine() as commands:
        for name, *arguments in steps:
            getattr(commands, name)(*arguments)
            commands.reports_are_those_of_a_fresh_folder()


@pytest.mark.parametrize("case", CASES)
def test_the_sequence_is_right_and_its_fix_is_needed(case):
    take_out, steps = CASES[case]
    play(steps)
    with pytest.MonkeyPatch.context() as patch:
        take_out(patch)
        with pytest.raises(AssertionError):
            play(steps)
