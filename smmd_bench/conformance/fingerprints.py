"""What identifies examples, wherever their pictures lie; in this process and in another one.

The other process has another PYTHONHASHSEED and, for a task that makes its data itself, an empty
cache, so that a check finds out what depends on either.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..contracts import Example, Split, Task
from ..plugin_system.registry import load_plugin_file, load_task
from ..storage.addresses import address
from .checks import UncheckedError


def content(example: Example) -> tuple[str, ...]:
    """The prompt and the digests of the pictures: what a model is asked."""
    pictures = (hashlib.blake2b(path.read_bytes(), digest_size=8) for path in example.images)
    return (example.prompt, *(digest.hexdigest() for digest in pictures))


def fingerprint(examples: Iterable[Example]) -> str:
    """One digest of examples in their order: ids, texts, answers, attributes and pictures."""
    rows = [
        [e.uid, *content(e), e.target, str(e.answer), e.answer_start,
         {k: str(v) for k, v in e.attributes.items()}]
        for e in examples
    ]  # fmt: skip
    return address({"examples": rows})


def fingerprints(task: Task, sizes: Mapping[Split, int], seed: int) -> dict[str, list[str]]:
    """By split, the digests of the first examples and of the identity."""
    return {
        split: [
            fingerprint(task.examples(split, seed, size)),
            address(task.identity(split, seed)),
        ]
        for split, size in sizes.items()
    }


def fingerprints_elsewhere(
    spec: str, files: Sequence[Path], sizes: Mapping[Split, int], seed: int, *, made_here: bool
) -> dict[str, list[str]]:
    """`fingerprints` in another process. Raises UncheckedError if that fails."""
    request = json.dumps([spec, [str(file) for file in files], dict(sizes), seed])
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    with tempfile.TemporaryDirectory() as folder:
        cache = {"SMMD_BENCH_CACHE": folder} if made_here else {}
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
    spec, files, sizes, seed = json.loads(sys.argv[1])
    for file in files:
        load_plugin_file(Path(file))
    print(json.dumps(fingerprints(load_task(spec), sizes, seed)))
