"""The examples of a task that the checks look at, and what identifies them. Nothing is fetched.

A fingerprint does not depend on where pictures lie. It is also taken in another process, with
another PYTHONHASHSEED and an empty cache, so that a check finds out what depends on either.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import get_args

from ..contracts import Example, Modality, Split, Task
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import load_plugin_file, load_task, plugin_files
from ..storage.addresses import address
from .checks import UncheckedError

_MOST = {Modality.TEXT: 2000, Modality.VISION: 24}
"""Examples of a split; of texts from a file `_MOST_OF_A_FILE`."""
_MOST_OF_A_FILE = 20_000
_FEW = {Modality.TEXT: 200, Modality.VISION: 6}
"""Examples that the checks ask for again."""


@dataclass(frozen=True)
class TaskData:
    """A task and the first examples of every split that it has, made once."""

    task: Task

    @property
    def made_here(self) -> bool:
        """Whether the examples come from no file."""
        return not getattr(self.task, "sources", ())

    @property
    def splits(self) -> list[Split]:
        """Those that are not empty by `paper_sizes`."""
        return [split for split in get_args(Split) if self.task.paper_sizes.get(split, 0)]

    @property
    def few(self) -> dict[Split, int]:
        """How many examples the checks ask for again, by split."""
        most = _FEW[self.task.modality]
        return {split: min(most, len(found)) for split, found in self.examples.items()}

    @property
    def asked(self) -> dict[Split, int]:
        """How many examples of each split are looked at, where there are so many."""
        whole = not self.made_here and self.task.modality is Modality.TEXT
        most = _MOST_OF_A_FILE if whole else _MOST[self.task.modality]
        return {split: min(most, self.task.paper_sizes[split]) for split in self.splits}

    @cached_property
    def examples(self) -> dict[Split, list[Example]]:
        """The first of every split. Raises UncheckedError or UserError if they are not here."""
        for source in getattr(self.task, "sources", ()):
            where = getattr(source, "local_file", lambda split: split)
            absent = [split for split in source.local if where(split) is None]
            if absent:
                raise UncheckedError(
                    f"the data are not here ({', '.join(absent)}) and nothing is fetched: run "
                    f"`smmd-bench prepare {self.task.name}`, or give --data-dir"
                )
        return {s: list(self.task.examples(s, 0, size)) for s, size in self.asked.items()}

    @property
    def all_examples(self) -> list[Example]:
        """The examples of all splits."""
        return [example for found in self.examples.values() for example in found]


def content(example: Example) -> tuple[str, ...]:
    """The prompt and the digests of the pictures: what a model is asked."""
    pictures = (hashlib.blake2b(path.read_bytes(), digest_size=8) for path in example.images)
    return (example.prompt, *(digest.hexdigest() for digest in pictures))


def fingerprints(task: Task, sizes: Mapping[Split, int], seed: int = 0) -> dict[str, list[str]]:
    """By split, a digest of the first examples in their order, and one of the identity."""
    found = {}
    for split, size in sizes.items():
        rows = [
            [e.uid, *content(e), e.target, str(e.answer), e.answer_start,
             {k: str(v) for k, v in e.attributes.items()}]
            for e in task.examples(split, seed, size)
        ]  # fmt: skip
        found[str(split)] = [address({"examples": rows}), address(task.identity(split, seed))]
    return found


def fingerprints_elsewhere(data: TaskData) -> dict[str, list[str]]:
    """`fingerprints` in another process. Raises UncheckedError if that fails."""
    request = json.dumps([canonical(data.task), [str(file) for file in plugin_files()], data.few])
    with tempfile.TemporaryDirectory() as folder:
        cache = {"SMMD_BENCH_CACHE": folder} if data.made_here else {}
        done = subprocess.run(
            [sys.executable, "-m", __name__, request],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": "12345", **cache},
        )
    if done.returncode:
        raise UncheckedError(f"the second process ended early: {done.stderr.strip()[-200:]}")
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    spec, files, sizes = json.loads(sys.argv[1])
    for file in files:
        load_plugin_file(Path(file))
    print(json.dumps(fingerprints(load_task(spec), sizes)))
