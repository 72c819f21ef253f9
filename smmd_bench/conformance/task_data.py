"""The examples of a task that the checks look at, and what identifies them.

Nothing is fetched. A fingerprint does not depend on where pictures lie. It is also taken in another
process, with another PYTHONHASHSEED and, for a task that makes its data itself, an empty cache, so
that a check finds out what depends on either.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import get_args

from ..contracts import Example, Modality, Split, Task
from ..errors import UserError
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import load_plugin_file, load_task, plugin_files
from ..storage.addresses import address
from .checks import UncheckedError, fail

_MOST = {Modality.TEXT: 2000, Modality.VISION: 24}
"""Generated examples of a split; from a file of texts, as many as `_MOST_OF_A_FILE`."""
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
    def is_generated(self) -> bool:
        """Whether the task draws its examples, as its identity says: no data can be absent."""
        try:
            return self.made_here and "generator" in self.task.identity(self.splits[0], 0)
        except UserError:
            return False

    @property
    def splits(self) -> list[Split]:
        """Those that are not empty by `paper_sizes`."""
        return [split for split in get_args(Split) if self.task.paper_sizes.get(split, 0)]

    @property
    def few(self) -> dict[Split, int]:
        """How many examples the checks ask for again, by split."""
        most = _FEW[self.task.modality]
        return {split: min(most, len(found)) for split, found in self.examples.items()}

    @cached_property
    def examples(self) -> dict[Split, list[Example]]:
        """Raises UncheckedError or UserError if they are not here, and ViolationError if the task
        draws them and cannot draw enough."""
        for source in getattr(self.task, "sources", ()):
            if hasattr(source, "local_file"):
                absent = [split for split in source.local if source.local_file(split) is None]
                if absent:
                    raise UncheckedError(
                        f"the data are not here ({', '.join(absent)}) and nothing is fetched: run "
                        f"`smmd-bench prepare {self.task.name}`, or give --data-dir"
                    )
        whole = not self.made_here and self.task.modality is Modality.TEXT
        most = _MOST_OF_A_FILE if whole else _MOST[self.task.modality]
        return {s: self._first(s, min(most, self.task.paper_sizes[s])) for s in self.splits}

    def _first(self, split: Split, size: int) -> list[Example]:
        try:
            return list(self.task.examples(split, 0, size))
        except (ConnectionError, ImportError) as error:
            raise UncheckedError(f"the data are not available here: {error}") from error
        except UserError as error:
            absent = isinstance(error.__cause__, OSError | ImportError)  # a font, a library, room
            if absent or not self.is_generated:
                raise
            fail(
                f"paper_sizes promises {self.task.paper_sizes[split]:,} examples of {split}, and "
                f"the task cannot make {size:,}: {error}"
            )

    @property
    def filled(self) -> dict[Split, tuple[int, int]]:
        """How many examples of each split there are, and were asked for: texts up to
        `_MOST_OF_A_FILE`, pictures as many as are looked at."""
        text = self.task.modality is Modality.TEXT
        most = _MOST_OF_A_FILE if text else _MOST[self.task.modality]
        found = {}
        for split, examples in self.examples.items():
            there, asked = len(examples), min(most, int(self.task.paper_sizes[split]))
            if text and there < asked:
                there = len(self._first(split, asked))
            found[split] = there, asked
        return found

    def all_examples(self) -> Iterator[Example]:
        """The examples of all splits."""
        for found in self.examples.values():
            yield from found

    def tested(self, most: int) -> list[Example]:
        """The first examples of the test split, or of the last one that there is."""
        return self.examples["test" if "test" in self.examples else self.splits[-1]][:most]

    def counts(self) -> str:
        """`2,000 train, 300 validation, 1,000 test`."""
        return ", ".join(f"{len(found):,} {split}" for split, found in self.examples.items())


def content(example: Example) -> tuple[str, ...]:
    """The prompt and the digests of the pictures: what a model is asked."""
    pictures = (hashlib.blake2b(path.read_bytes(), digest_size=8) for path in example.images)
    return (example.prompt, *(digest.hexdigest() for digest in pictures))


def fingerprints(task: Task, sizes: Mapping[Split, int], seed: int = 0) -> dict[str, list[str]]:
    """By split, a digest of the first examples in their order, and one of the identity.

    That of the examples covers ids, texts, answers, attributes and pictures.
    """
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
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    with tempfile.TemporaryDirectory() as folder:
        cache = {"SMMD_BENCH_CACHE": folder} if data.made_here else {}
        done = subprocess.run(
            [sys.executable, "-m", __name__, request],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, **cache},
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["without a message"])[-1]
        raise UncheckedError(f"the second process ended early: {last}")
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    spec, files, sizes = json.loads(sys.argv[1])
    for file in files:
        load_plugin_file(Path(file))
    print(json.dumps(fingerprints(load_task(spec), sizes)))
