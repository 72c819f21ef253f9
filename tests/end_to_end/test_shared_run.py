"""Several processes in the folder of one run: `plan`, `work` and, for the report, `run`."""

import json
import signal
import subprocess
import time

import pytest

import smmd_bench as sb

from .conftest import COMMAND

pytestmark = [pytest.mark.engine, pytest.mark.slow]
EXPERIMENT = """
name: shared
tasks: ["arithmetic[level=easy,operations=1..2]"]
losses: [ce, ntl, smmd]
seeds: [0, 1]
recipe: {train_examples: 512, epochs: 2, validation_examples: 20, test_examples: 40}
"""


@pytest.fixture(scope="module")
def planned(finish, tmp_path_factory):
    """The folder of a planned run, its file, and the addresses of its cells."""
    folder = tmp_path_factory.mktemp("shared")
    file, run = folder / "experiment.yaml", folder / "run"
    file.write_text(EXPERIMENT)
    said = finish("plan --json --out", run, file).stdout
    plan = json.loads(said)
    assert plan["run"] == str(run)
    addresses = [cell["address"] for cell in plan["cells"]]
    assert len(addresses) == 7
    assert all((run / "cells" / address / "cell.json").exists() for address in addresses)
    return run, file, addresses


def start(smmd_bench, run, *more):
    return subprocess.Popen(
        [COMMAND, "work", "--run", str(run), *more], env=smmd_bench.environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def wait_for(file, process):
    deadline = time.monotonic() + 300
    while not file.exists():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_workers_share_a_run_and_one_that_is_killed_loses_little(smmd_bench, finish, planned):
    run, file, addresses = planned
    named = start(smmd_bench, run, "--cell", addresses[1], "--cell", addresses[2])
    wait_for(run / "leases" / f"{addresses[1]}.1.json", named)
    others = [start(smmd_bench, run) for _ in range(2)]
    wait_for(run / "cells" / addresses[1] / "epochs" / "1", named)
    named.send_signal(signal.SIGKILL)
    for process in [*others, named]:
        said, _ = process.communicate(timeout=600)
        assert process is named or process.returncode == 0, said
    again = finish("work --json --run", run)
    assert json.loads(again.stdout)["failed"] == {}
    done = finish("run --out", run, file).stdout
    assert "Nothing to do" not in done.splitlines()[0]
    frames = sb.read_run(run)
    assert set(frames.cells["status"]) == {"done"}
    trained = [p.name.split("-")[1].split(".")[0] for p in (run / "logs").glob("train-*.json")]
    assert sorted(trained) == sorted(addresses)
    assert not list((run / "cells").glob("*/FAILED.json"))
    assert "Nothing to do" in finish("work --run", run).stdout


def test_what_is_not_in_the_plan_is_refused(smmd_bench, planned, tmp_path):
    run, _, addresses = planned
    none = smmd_bench("work --run", tmp_path)
    assert (none.returncode, "holds no plan: make one with" in none.stderr) == (2, True)
    wrong = smmd_bench("work --cell", addresses[0][:-1] + "0", "--run", run)
    assert wrong.returncode == 2
    assert f"did you mean {addresses[0]}" in wrong.stderr
