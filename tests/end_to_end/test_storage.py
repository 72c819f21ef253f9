"""Workers that share no disk: `plan`, `work` and `run` with a storage between them."""

import json
import signal
import subprocess
import time

import pytest

import smmd_bench as sb

from .conftest import COMMAND

pytestmark = [pytest.mark.engine, pytest.mark.slow]
EXPERIMENT = """
name: stored
tasks: ["arithmetic[level=easy,operations=1..2]", halves]
losses: [ce, smmd]
plugins: [PLUGIN]
recipe: {train_examples: 512, epochs: 2, validation_examples: 20, test_examples: 40}
"""
HALVES = """
from dataclasses import dataclass
from fractions import Fraction

from smmd_bench.contracts import Answer, ExactMatch, Example, Modality, parse_number, plain_text


@dataclass(frozen=True)
class Halves:
    name = "halves"
    version = 1
    modality = Modality.TEXT
    max_new_tokens = 4
    paper_sizes = {"train": 100, "validation": 10, "test": 10}
    licence = "made here"

    def examples(self, split, seed, limit=None):
        start = {"train": 0, "validation": 5000, "test": 9000}[split]
        return [
            Example(f"{n}", f"What is the half of {2 * n}?\\nAnswer:", f" {n}", Answer(Fraction(n)))
            for n in range(start, start + (limit or self.paper_sizes[split]))
        ]

    def identity(self, split, seed):
        return {"split": split}

    def parse(self, completion):
        value = parse_number(plain_text(completion).strip())
        return None if value is None else Answer(value)

    def metrics(self):
        return (ExactMatch(),)
"""


def wait_for(find, process):
    deadline = time.monotonic() + 300
    while not (found := find()):
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_workers_without_a_shared_disk_do_what_one_does(smmd_bench, finish, tmp_path):
    stored, plugin = tmp_path / "stored", tmp_path / "here" / "halves.py"
    url = f"file://{stored}"
    plugin.parent.mkdir()
    plugin.write_text(HALVES)
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT.replace("PLUGIN", str(plugin)))
    plan = json.loads(finish(f"plan --json --storage {url} --out", tmp_path / "plan", file).stdout)
    assert len(plan["cells"]) == 6
    away = plugin.rename(plugin.with_suffix(".away"))  # as on a machine that does not have it

    def start(name, *more):
        return subprocess.Popen(
            [COMMAND, "work", "--run", str(tmp_path / name), "--storage", url, *more],
            env=smmd_bench.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    address = next(c["address"] for c in plan["cells"] if c["cell"].endswith("ce seed 0"))
    killed = start("killed", "--cell", address)
    epochs = stored / "cells" / address / "epochs"
    wait_for(lambda: [*epochs.glob("1/canary.json")], killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    workers = [start(f"worker{k}") for k in range(2)]
    for process in workers:
        said, _ = process.communicate(timeout=800)
        assert process.returncode == 0, said
    finish("work --run", tmp_path / "last", "--storage", url)
    assert "Nothing to do" in finish("work --run", tmp_path / "last", "--storage", url).stdout
    logs = [
        p.stem.removeprefix("train-")
        for name in ("worker0", "worker1", "last")
        for p in (tmp_path / name / "logs").glob("train-*.log")
    ]
    assert len({*logs}) == len(logs)
    assert {*logs, address} == {cell["address"] for cell in plan["cells"]}
    away.rename(plugin)
    done = finish(f"run --storage {url} --out", tmp_path / "gathered", file).stdout
    assert "Nothing to do" not in done.splitlines()[0]
    frames = sb.read_run(tmp_path / "gathered")
    assert set(frames.cells["status"]) == {"done"}
    assert not [*(tmp_path / "gathered").glob("cells/*/epochs")]
    assert not [*stored.glob("cells/*/epochs/*/*")]
    finish("run --out", tmp_path / "alone", file)
    alone = sb.read_run(tmp_path / "alone")
    for table in ("metrics", "comparisons"):
        assert getattr(frames, table).equals(getattr(alone, table)), table
