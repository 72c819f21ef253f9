"""A job as it is sent to a node of a Ray cluster, and what the node says before it begins."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smmd_bench.contracts import Job, PerCell
from smmd_bench.models.circumstances import versions
from smmd_bench.run.process import environment_of

_PASSED_ON = ("SMMD_BENCH_", "HF_", "VLLM_")
"""Beginnings of the names of variables that a job has from the process that plans it."""
_ONE = PerCell()


@dataclass(frozen=True)
class Order:
    """A job as it is sent to a node: nothing in it needs this machine but the run's folder."""

    name: str
    module: str
    request: dict[str, Any]
    folder: Path
    planned: bool
    environment: dict[str, str]
    plugins: Mapping[str, bytes]
    versions: Mapping[str, str]

    @classmethod
    def of(cls, job: Job, folder: Path, per_cell: PerCell = _ONE) -> Order:
        """A job of the run in a folder."""
        passed_on = {k: v for k, v in os.environ.items() if k.startswith(_PASSED_ON)}
        return cls(
            name=job.name,
            module=job.module,
            request=job.request(folder),
            folder=folder.resolve(),
            planned=(folder / "manifest.json").exists(),
            environment={**passed_on, **environment_of(job, job.resources.threads, per_cell)},
            plugins={file: Path(file).read_bytes() for file in job.payload["plugins"]},
            versions=versions(),
        )

    def refusal(self) -> str | None:
        """Why this node cannot do it, in one sentence."""
        node, mine = platform.node(), versions()
        other = {k: v for k, v in self.versions.items() if mine.get(k) != v}
        if other:
            has = ", ".join(f"{package} {mine.get(package, 'missing')}" for package in other)
            wanted = ", ".join(f"{package} {version}" for package, version in other.items())
            return f"the node {node} has {has}: install {wanted}, as on the first one"
        if self.planned and not (self.folder / "manifest.json").exists():
            return (
                f"the node {node} does not see {self.folder}: give --out a folder on a disk that "
                "all nodes share"
            )
        return None

    @contextmanager
    def plugin_files(self) -> Iterator[list[str]]:
        """The plugin files on this node; as they were sent where it has none or others."""
        with tempfile.TemporaryDirectory(prefix="smmd-bench-plugins-") as sent:
            files = []
            for at, (name, content) in enumerate(self.plugins.items()):
                file = Path(name)
                if not file.exists() or file.read_bytes() != content:
                    file = Path(sent, str(at), file.name)
                    file.parent.mkdir()
                    file.write_bytes(content)
                files.append(str(file))
            yield files
