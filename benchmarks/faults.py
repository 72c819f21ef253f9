"""Faults, injected one by one into real commands: was anything lost, and how long is the recovery?

    python -m benchmarks.faults FOLDER [--every N] [--processes 2] [--commands train-eval,report]

Each trial gives a command one fault, calls it again, and holds what the folder says to what it says
after an undisturbed command: results, weights and reports, byte for byte but for the time of steps.
Trainings are real (transformers' Trainer on the built-in checkpoints), completions come from
transformers, jobs run in the process of the command. Faults:

killed   SIGKILL at a change of a file, at each in turn (see `benchmarks.injected`)
full     no space from a change on (an error at the edge)
broken   an input/output error at a change
unread   an input/output error at a file that is read
disk     a disk of too few kilobytes, which gets room for the second call (a real one; needs root)
clock    the clock of the process jumps by a day at a change, forwards or backwards
moment   SIGKILL at a random moment
cut      a file of a finished run has lost its second half
flipped  a file of a finished run has another bit

Slow commands get every n-th fault alone, by default as `COMMANDS` says. What is done already is
kept in FOLDER/trials.jsonl. Printed: a table by command and fault. The exit status is 1 where
anything was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import random
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from smmd_bench.plugin_system import registry
from smmd_bench.publishing import write_reports
from tests.in_process import as_a_process, coarse_figures

from .fault_commands import COMMANDS, INPUTS, Command
from .injected import Ended, Fault, disk_of, forked, grow_disk, half_written, result_of

DAMAGES = ("cut", "flipped")
FAULTS = ("killed", "full", "broken", "unread", "disk", "clock", "moment", *DAMAGES)
MOMENTS = 100
DISKS = 50
REPORTS = ("arithmetic_table", "clock_table", "training_curves")
"""Drawing takes most of a small run: a table and a figure stand for all."""


@dataclass(frozen=True)
class Trial:
    """A command and its fault; `at`: number of a change, kilobytes, or thousandths of the time."""

    command: str
    fault: str
    at: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, help="every n-th change alone (default: by command)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--faults", default=",".join(FAULTS))
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["SMMD_BENCH_CACHE"] = str(folder / "cache")
    import_libraries()
    trials = []
    for name in options.commands.split(","):
        references(folder, name)
        faults = [f for f in options.faults.split(",") if f != "disk" or os.geteuid() == 0]
        trials += [Trial(name, f, at) for f in faults for at in places(folder, name, f, options)]
    file = folder / "trials.jsonl"
    done = {Trial(*(row[k] for k in ("command", "fault", "at"))) for row in rows_of(file)}
    left = [trial for trial in trials if trial not in done]
    random.Random(0).shuffle(left)
    children = [
        _start(folder, left[n :: options.processes], file) for n in range(options.processes)
    ]
    assert not any(os.waitpid(child, 0)[1] for child in children), "a trial could not be made"
    rows = [row for row in rows_of(file) if row["command"] in options.commands.split(",")]
    print(table(rows))
    sys.exit(any(row["lost"] for row in rows))


def _start(folder: Path, trials: list[Trial], file: Path) -> int:
    """A process that makes these trials, one after the other."""
    child, status = os.fork(), 1
    if child:
        return child
    try:
        for at, trial in enumerate(trials):
            row = json.dumps(attempt(folder, trial))
            with file.open("a") as lines:
                lines.write(f"{row}\n")
            if at % 10 == 0:
                print(f"{at} of {len(trials)} in process {os.getpid()}", file=sys.stderr)
        status = 0
    finally:
        traceback.print_exc() if status else None
        os._exit(status)


def import_libraries() -> None:
    """What commands import, once, and with no thread that a fork would lose."""
    import accelerate  # noqa: F401
    import lm_eval.tasks  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import peft  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.metrics  # noqa: F401
    import transformers  # noqa: F401

    import smmd_bench.run.pipeline
    import smmd_bench.training.stage  # noqa: F401


@contextlib.contextmanager
def in_small(folder: Path, **environment: str) -> Iterator[None]:
    """Jobs in this process, figures of few pixels, few reports."""
    found = registry.entries
    write_reports.entries = lambda group: [  # type: ignore[attr-defined]
        entry for entry in found(group) if group != "reports" or entry.name in REPORTS
    ]
    with as_a_process(folder, **environment), coarse_figures():
        yield


def references(folder: Path, name: str) -> Ended:
    """Make the undisturbed folder of a command, unless it is there; how it ended."""
    command, place = COMMANDS[name], folder / "undisturbed" / name
    ended = place / "ended.json"
    if not ended.exists():
        if command.before is not None:
            references(folder, command.before)
        begin(folder, command, place)
        found = call(command, place)
        assert found.status == 0, found.said
        ended.write_text(json.dumps(dataclasses.asdict(found)))
    return Ended(**json.loads(ended.read_text()))


def begin(folder: Path, command: Command, place: Path) -> None:
    """The folder as the command finds it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, content in INPUTS.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(content)
    if command.before is not None:
        shutil.copytree(folder / "undisturbed" / command.before, place, dirs_exist_ok=True)
        (place / "ended.json").unlink()
        if command.words.startswith("report run --quiet"):
            shutil.rmtree(place / "run" / "reports")


def call(command: Command, place: Path, fault: Fault | None = None, **more: Any) -> Ended:
    cache = {} if command.cache is None else {"SMMD_BENCH_CACHE": str(place / command.cache)}
    around: Callable[[], Any] = lambda: in_small(place, **cache)  # noqa: E731
    return forked(command.words.split(), place, fault, around=around, **more)


def places(folder: Path, name: str, fault: str, options: argparse.Namespace) -> list[int]:
    """Where a fault is injected into a command."""
    undisturbed, every = references(folder, name), options.every or COMMANDS[name].every
    if fault == "moment":
        rng = random.Random(1)
        return sorted(rng.sample(range(1000), max(1, MOMENTS // every)))
    if fault in DAMAGES:
        if not name.startswith("train-eval"):
            return []  # only what made a file makes it again
        finished = folder / "undisturbed" / name
        return [*range(0, len(_files_of(finished)), max(1, every // 16))]
    if fault == "disk":
        return [*range(0, 100 * DISKS, 100)[::every]]
    count = undisturbed.reads if fault == "unread" else undisturbed.changes
    return [*range(0, count, every)]


def attempt(folder: Path, trial: Trial) -> dict[str, Any]:
    """Disturb a command, call it again, and compare."""
    command, undisturbed = COMMANDS[trial.command], references(folder, trial.command)
    place = folder / "trials" / f"{os.getpid()}"
    begin(folder, command, place)
    with contextlib.ExitStack() as stack:
        if trial.fault == "disk":
            stack.enter_context(_small_disk(place, trial.at))
            first = call(command, place)
            grow_disk(place / "run")
        elif trial.fault in DAMAGES:
            shutil.copytree(folder / "undisturbed" / trial.command, place, dirs_exist_ok=True)
            _damage(_files_of(place)[trial.at], trial.fault)
            first = call(COMMANDS["report"], place)  # which reads what it shows
        elif trial.fault == "moment":
            seconds = undisturbed.seconds * trial.at / 1000
            first = call(command, place, kill_after=seconds)
        else:
            first = call(command, place, Fault(trial.fault, trial.at))
        for leftover in place.rglob("*.part"):  # an hour passes, after which they may go
            os.utime(leftover, (0, 0))
        again = call(command, place)
        undisturbed_runs = folder / "undisturbed" / trial.command
        differ = []
        for run in ("run", "merged"):
            by_byte = trial.fault not in DAMAGES
            expected, found = (
                result_of(at / run, by_byte=by_byte) for at in (undisturbed_runs, place)
            )
            differ += sorted(n for n in {*found, *expected} if found.get(n) != expected.get(n))
        left = half_written(place)
    return {
        **dataclasses.asdict(trial),
        "status": first.status,
        "traceback": "Traceback" in first.said,
        "said": first.said[-600:],
        "again": again.status,
        "again_said": again.said[-600:] if again.status else "",
        "differ": differ[:5],
        "half_written": left[:5],
        "lost": first.status is None or again.status != 0 or bool(differ),
        "recovery": round(again.seconds / undisturbed.seconds, 2),
    }


@contextlib.contextmanager
def _small_disk(place: Path, kilobytes: int) -> Iterator[None]:
    """Inside, the run is on a disk with so much room besides what it has already."""
    run, kept = place / "run", place / "kept"
    run.mkdir(exist_ok=True)
    run.rename(kept)
    used = sum(4096 + file.stat().st_size for file in kept.rglob("*"))
    with disk_of(run, 200 + used // 1024 + kilobytes):
        shutil.copytree(kept, run, dirs_exist_ok=True)
        yield


def _files_of(place: Path) -> list[Path]:
    """What a finished run holds of its cells, without what no command reads again (weights,
    validation) or makes again alone (a training's log, the notes on decoding)."""
    files = sorted(place.glob("run/cells/*/*.*"))
    left_out = ("train_log", "validation", "decode")
    return [f for f in files if f.suffix in (".json", ".parquet") and f.stem not in left_out]


def _damage(file: Path, how: str) -> None:
    content = bytearray(file.read_bytes())
    if how == "cut":
        del content[len(content) // 2 :]
    else:
        content[len(content) // 2] ^= 4
    file.write_bytes(content)


def rows_of(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: command, fault, tried, lost, and the time of the second call."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    groups = frame.groupby(["command", "fault"], sort=False)
    found = groups.agg(
        tried=("lost", "size"), lost=("lost", "sum"), tracebacks=("traceback", "sum"),
        left=("half_written", lambda c: int(c.map(bool).sum())), recovery=("recovery", "median"),
    ).reset_index()  # fmt: skip
    return str(found.to_markdown(index=False))


if __name__ == "__main__":
    main()
