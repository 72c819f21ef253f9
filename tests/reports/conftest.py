"""Runs that several files of reports read, each made once for all workers. Only to be read."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest
from filelock import FileLock

from smmd_bench.results.frames import read_run
from tests.regression_checks import write_checks
from tests.runs import write_run

SMALL, TEXT, VISION = (
    "Qwen/Qwen2.5-0.5B",
    "Qwen/Qwen2.5-1.5B",
    "Qwen/Qwen2.5-VL-3B-Instruct",
)
PAPER: dict[str, Any] = {
    "losses": ("ce", "gce", "ntl", "ntil", "smmd"), "seeds": (0,), "recipe": {},
}  # fmt: skip
TWO = ("ce", "smmd")
TERMS = ("ce", "smmd[term=mmd]", "smmd[term=smooth]", "smmd")
KERNELS = ("smmd[kernel=random,term=mmd]", "smmd[kernel=shuffled,term=mmd]")
BANDWIDTHS = ("smmd[sigma=1+2+3]", "smmd[sigma=1.7+2+2.3]", "smmd[sigma=4]")
ABLATED = (*TERMS, *KERNELS, *BANDWIDTHS, "smmd[lambda=9,sigma=1+2]")
MMLU = {
    "tasks": ("gsm8k",),
    "losses": ("ce", "ntl", "smmd"),
    "n": 20,
    "steps": 5,
    "recipe": {},
}
RUNS: dict[str, list[dict[str, Any]]] = {
    "easier": [{"n": 200}],
    "arithmetic": [
        {"models": (SMALL,), "tasks": ("arithmetic",), "n": 10_000, **PAPER, "losses": TWO},
    ],
    "math": [
        {"models": (TEXT,), "tasks": ("gsm8k",), "n": 1319, **PAPER},
        {"models": (TEXT,), "tasks": ("svamp",), "n": 1000, **PAPER},
    ],
    "pictures": [
        {"models": (VISION,), "tasks": ("clock_time",), "n": 1440, "source": "kaggle", **PAPER},
        {"models": (VISION,), "tasks": ("chartqa",), "n": 1915, "source": "kaggle", **PAPER},
    ],
    "summaries": [
        {
            "models": (TEXT,), "tasks": ("samsum",), "n": 819, "seeds": (0,), "recipe": {},
            "losses": ("ce", "ntl", "smmd[sigma=2.0]", "smmd"),
        },
    ],
    "all tasks": [
        {
            "tasks": ("arithmetic", "gsm8k", "clock_time", "chartqa", "samsum", "halving"),
            "n": 12, "resamples": 5,
        },
    ],
    "math of as many": [
        {"models": (TEXT,), "tasks": ("gsm8k",), "n": 1319, **PAPER, "losses": TWO},
    ],
    "word problems of two losses": [
        {"models": (TEXT,), "tasks": ("gsm8k",), "losses": ("ce", "smmd"), "seeds": (0,), "n": 150},
    ],
    "word problems": [
        {"models": (TEXT,), "tasks": ("gsm8k",), "losses": ("ce", "ntl", "smmd"), "seeds": (0,),
         "n": 150, "steps": 5, "resamples": 20},
    ],
    "variants": [{"losses": ABLATED, "seeds": (0,), "n": 150}],
    "variants of the paper": [
        {"models": (TEXT, "builtin/tiny"), "tasks": (task,), "losses": (*TERMS, *KERNELS),
         "seeds": (0,), "n": n, "resamples": 50, "base": False, "recipe": {}}
        for task, n in (("gsm8k", 1319), ("svamp", 1000), ("arithmetic", 200))
    ],
    "mmlu": [{"models": (TEXT,), "seeds": (0,), **MMLU}],
    "a look at mmlu": [{**MMLU}],
    "samples": [
        {"models": ("builtin/tiny-vl",), "tasks": ("clock_time", "chartqa", "gsm8k"),
         "losses": ("ce", "smmd"), "n": 50, "steps": 5, "resamples": 20},
    ],
}  # fmt: skip
CHECKS: dict[str, list[dict[str, Any]]] = {
    "mmlu": [{}],
    "a look at mmlu": [{"limit": 10, "truncated": 3}, {"suite": "gsm8k", "limit": 50}],
}
"""What `smmd-bench regress` left in some of them."""


@pytest.fixture(scope="session")
def runs(run_folder, tmp_path_factory):
    """`runs(name)`: one of `RUNS`, made when it is first asked for, or the default one."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    @cache
    def make(name):
        if name == "default":
            return read_run(run_folder)
        folder = root / "shared" / name
        folder.parent.mkdir(exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not folder.exists():
                write(folder, name)
        return read_run(folder)

    def write(folder, name):
        for arguments in RUNS[name]:
            write_run(folder, **{"steps": 3, "resamples": 100, **arguments})
        for arguments in CHECKS.get(name, ()):
            write_checks(folder, **arguments)

    return make


@pytest.fixture(scope="session")
def run(runs):
    """The default synthetic run."""
    return runs("default")
