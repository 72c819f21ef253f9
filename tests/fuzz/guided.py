"""The search of one target, in this process: `python -m tests.fuzz.guided TARGET FOUND SECONDS`."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["smmd_bench", "yaml", "csv", "fractions"]):
    from smmd_bench.plugin_system import registry

    from . import targets

    for group in ("tasks", "losses", "engines"):
        registry.entries(group)  # they are imported late, and would not count

from .corpus import folder_of, name_of, smaller

SLOWEST = 20
"""Seconds that one input may take before it counts as hanging."""
MEMORY = 3_000
"""Megabytes that the process may grow to."""


def main() -> None:
    name, found, seconds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    known: set[str] = set()

    def once(data: bytes) -> None:
        place = failure_of(name, data)
        if place is not None and place not in known:
            known.add(place)
            least = smaller(data, lambda less: failure_of(name, less) == place)
            folder = folder_of(name)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"failed-{name_of(least)}").write_bytes(least)
            print(f"{name}: {place}: {least[:200]!r}", flush=True)

    options = [
        f"-max_total_time={seconds}", f"-timeout={SLOWEST}", f"-rss_limit_mb={MEMORY}",
        f"-artifact_prefix={folder_of(name)}/failed-", "-report_slow_units=60",
        "-max_len=4096", "-verbosity=0", "-print_final_stats=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(found), str(folder_of(name))], once)
    atheris.Fuzz()


def failure_of(name: str, data: bytes) -> str | None:
    """The error of a target and the line that raised it; None: there is none."""
    call: Callable[[str, bytes], None] = targets.call
    try:
        call(name, data)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)
        ours = [f for f in last if "site-packages" not in f.filename and "/lib/" not in f.filename]
        where = (ours or last)[-1]
        return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
    return None


if __name__ == "__main__":
    main()
