"""An environment with the lowest versions that pyproject.toml allows of what reports need.

It is a folder of packages, made once for each content of requirements-floors.txt (20 to 60 seconds,
600 MB) and kept in `.cache/floors`. What those packages need besides has the version of the lock.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from .wheels import ROOT

FLOORS, LOCK = ROOT / "requirements-floors.txt", ROOT / "requirements-cpu.lock"
NO_NETWORK = ("NewConnectionError", "NameResolutionError", "ConnectTimeout", "ProxyError")
_NAME = re.compile(r"^([\w.-]+)==(\S+)$", re.MULTILINE)


def floors() -> dict[str, str]:
    """The versions of requirements-floors.txt by name."""
    return dict(_NAME.findall(FLOORS.read_text(encoding="utf-8")))


def floor_packages() -> Path:
    """The folder of the packages, made now if it is not there; without a network the test skips."""
    pinned = {_plain(name) for name in floors()} | {"pydantic-core"}  # pydantic pins its own
    locked = _NAME.findall(LOCK.read_text(encoding="utf-8"))
    constraints = "".join(f"{n}=={v}\n" for n, v in locked if _plain(n) not in pinned)
    content = f"{sys.version_info[:2]} {floors()} {constraints}"
    kept = ROOT / ".cache" / "floors"
    folder = kept / hashlib.sha256(content.encode()).hexdigest()[:16]
    kept.mkdir(parents=True, exist_ok=True)
    with FileLock(kept / "lock"):
        if not folder.is_dir():
            for old in kept.glob("*/"):
                shutil.rmtree(old)
            (kept / "constraints.txt").write_text(constraints)
            _install(folder.with_suffix(".part"), kept / "constraints.txt")
            folder.with_suffix(".part").rename(folder)
    return folder


def _install(folder: Path, constraints: Path) -> None:
    """Wheels from the network, of which pip checks that they go together; only rouge-score has
    none, and is built with this environment's setuptools."""
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder),
            "--only-binary", ":all:", "--no-binary", "rouge-score", "--no-build-isolation",
            "--retries", "1", "-r", str(FLOORS), "-c", str(constraints), "pytest",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )  # fmt: skip
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        if any(name in done.stderr for name in NO_NETWORK):
            pytest.skip("the lowest versions cannot be installed: there is no network")
        raise AssertionError(done.stdout + done.stderr)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
