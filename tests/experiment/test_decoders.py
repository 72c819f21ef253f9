"""Decoders: what a cell is asked to answer with beside greedy decoding."""

from dataclasses import replace

import pytest

from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment, each_once
from smmd_bench.experiment.file import ExperimentFile
from smmd_bench.run.cell_json import cell_from_json, cell_to_json

PLAIN = Experiment(("arithmetic",), ("ce",))
BOTH = Experiment(("arithmetic",), ("ce",), decoders=("median", "mean"))


def decoders(cells):
    return [cell.decoders for cell in cells]


def test_greedy_is_always_there_and_changes_nothing():
    assert Experiment(("arithmetic",), ("ce",), decoders=("greedy",)) == PLAIN
    assert BOTH.decoders == ("greedy", "mean", "median")
    assert decoders(BOTH.cells) == [("mean", "median")] * 2
    assert Experiment(**BOTH.to_dict()) == BOTH
    assert decoders(ExperimentFile(None, (BOTH,)).cells) == decoders(BOTH.cells)


def test_an_unknown_decoder_is_named():
    with pytest.raises(
        UserError, match=r"decoders\[0\] must be 'greedy', 'mean' or 'median', not 'medain'"
    ):
        Experiment(("arithmetic",), ("ce",), decoders=("medain",))


def test_decoders_add_beams_and_change_the_measurement_alone():
    for plain, both in zip(PLAIN.cells, BOTH.cells, strict=True):
        changed = {s for s in both.parts if both.parts[s] != plain.parts.get(s)}
        assert changed == {"beams", "measure"}
        mean = replace(both, decoders=("mean",))
        assert mean.parts["beams"] == both.parts["beams"]
        assert mean.parts["measure"] != both.parts["measure"]


def test_a_worker_gets_the_cell_that_was_planned():
    for cell in BOTH.cells:
        assert cell_from_json(cell_to_json(cell)).parts == cell.parts


def test_a_cell_that_two_parts_ask_for_has_the_decoders_of_both():
    mean = Experiment(("arithmetic",), ("ce",), decoders=("mean",))
    median = Experiment(("arithmetic",), ("ce",), decoders=("median",))
    cells = each_once([*PLAIN.cells, *median.cells, *mean.cells])
    assert cells == PLAIN.cells == BOTH.cells
    assert decoders(cells) == decoders(BOTH.cells)


def test_trials_of_a_tuned_loss_are_those_without_decoders():
    tune = ("ce: learning_rate=1e-4,3e-4",)
    plain = Experiment(("arithmetic",), ("ce",), tune=tune).cells
    both = Experiment(("arithmetic",), ("ce",), tune=tune, decoders=("mean",)).cells
    assert [cell.label for cell in plain] == [cell.label for cell in both]
    for one, other in zip(plain, both, strict=True):
        assert one.parts.get("select") == other.parts.get("select")
    assert not any(cell.decoders for cell in both if cell.trial is not None)


def test_a_trial_that_is_a_row_as_well_is_the_row_with_its_decoders():
    plain = Experiment(("arithmetic",), ("ce",), base=False)
    row = replace(plain, recipe={"learning_rate": 1e-4}, decoders=("mean",))
    tuned = replace(plain, tune=("ce: learning_rate=1e-4,3e-4",))
    for parts in ((row, tuned), (tuned, row)):
        cells = each_once(cell for part in parts for cell in part.cells)
        folders = [cell.address for cell in cells]
        assert len(folders) == len({*folders})
        (mine,) = [c for c in cells if c.address == row.cells[-1].address]
        assert (mine.trial, mine.decoders) == (None, ("mean",))
