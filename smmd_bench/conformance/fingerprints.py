"""What identifies examples, wherever the pictures lie; also of another process.

    python -m smmd_bench.conformance.fingerprints < request.json

The other process has another PYTHONHASHSEED and, where a task makes its data itself, an empty
cache, so that what hangs on either is found out.
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
from typing import Any

from ..contracts import Example, Split, Task
from ..storage.addresses import address
from .checks import UncheckedError


def content(example: Example) -> tuple[str, ...]:
    """The prompt and the bytes of the pictures: what a model is asked."""
    return (example.prompt, *(_digest(path) for path in example.images))


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


def elsewhere(
    spec: str, files: Sequence[Path], sizes: Mapping[Split, int], seed: int, *, made_here: bool
) -> dict[str, list[str]]:
    """`fingerprints` in another process. Raises UncheckedError where that fails."""
    request = {"spec": spec, "files": [str(f) for f in files], "sizes": dict(sizes), "seed": seed}
    other = {
        **os.environ,
        "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2",
    }
    with tempfile.TemporaryDirectory() as folder:
        if made_here:
            other["SMMD_BENCH_CACHE"] = folder
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            env=other,
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise UncheckedError(f"the second process ended early: {last}")
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


def _main() -> None:
    from ..plugin_system.registry import load_plugin_file, load_task

    request: dict[str, Any] = json.load(sys.stdin)
    for file in request["files"]:
        load_plugin_file(Path(file))
    found = fingerprints(load_task(request["spec"]), request["sizes"], request["seed"])
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
