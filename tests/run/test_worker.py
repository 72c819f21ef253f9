"""A worker trains and decodes what was planned, or nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.plugin_system.registry import load_plugin_file
from smmd_bench.run import worker
from smmd_bench.run.cell_json import cell_to_json
from smmd_bench.run.worker import run
from smmd_bench.storage.files import read_json, write_json
from tests.conftest import silent

LOSS = Path(__file__).parents[2] / "examples/own_loss.py"


@pytest.mark.long
@pytest.mark.parametrize("stage", ["train", "decode"])
def test_a_plugin_that_is_edited_after_planning_fails_its_cells(tmp_path, stage):
    file = tmp_path / "mine.py"
    source = LOSS.read_text(encoding="utf-8")
    source = source.replace('"huber"', '"edited_meanwhile"')
    file.write_text(source)
    load_plugin_file(file)
    (cell,) = Experiment(("arithmetic",), ("edited_meanwhile",), base=False).cells
    run_folder = tmp_path / "run"
    request = {"stage": stage, "run": str(run_folder), "plugins": [str(file)]}
    write_json(tmp_path / "request.json", {**request, "cells": [cell_to_json(cell)]})
    planned = cell.stored(run_folder)
    file.write_text(source.replace("return loss,", "return 2 * loss,"))

    assert work(tmp_path / "request.json") == 1

    failure = read_json(run_folder / "failed" / f"{planned.key}.json")
    assert failure["stage"] == stage
    assert failure["error"] == (
        f"A plugin, data or a library of {cell.label} has changed since the run was planned (it "
        "alters the stage train): run the same command again."
    )
    assert [path.name for path in run_folder.iterdir()] == ["failed"]


@pytest.mark.parametrize("stage", ["train", "decode"])
def test_a_job_with_a_gpu_that_torch_cannot_use_does_not_take_the_cpu(
    tmp_path, monkeypatch, stage
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    (cell,) = Experiment(("arithmetic",), ("ce",), base=False).cells
    request = {"stage": stage, "run": str(tmp_path), "cells": [cell_to_json(cell)]}
    (failure,) = run(request, lambda *_: None).values()
    message = str(failure)
    assert message.startswith(
        "This job was given the GPU 7 (CUDA_VISIBLE_DEVICES), and torch"
    )
    assert not [*tmp_path.iterdir()]


def test_a_training_without_memory_beside_others_ends_as_if_it_were_killed(
    tmp_path, monkeypatch
):
    """So nothing is recorded as failed, and the executor runs it again, alone."""

    def fail(*_):
        raise UserError("Out of memory.") from torch.OutOfMemoryError()

    def kill(process, number):
        assert process == os.getpid()
        assert number == signal.SIGKILL
        raise SystemExit

    monkeypatch.setattr(worker, "_train", fail)
    monkeypatch.setattr(os, "kill", kill)
    (cell,) = Experiment(("arithmetic",), ("ce",), base=False).cells
    request = {"stage": "train", "run": str(tmp_path), "cells": [cell_to_json(cell)]}
    (failure,) = run(request, silent).values()
    assert str(failure) == "Out of memory."

    monkeypatch.setenv("SMMD_BENCH_SHARES_GPU", "1")
    with pytest.raises(SystemExit):
        run(request, silent)


def work(request):
    """The exit status of a worker process, whose events nobody reads."""
    with Path(os.devnull).open("w") as events:
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "smmd_bench.run.worker",
                str(request),
                str(events.fileno()),
            ],
            pass_fds=[events.fileno()],
            capture_output=True,
        ).returncode
