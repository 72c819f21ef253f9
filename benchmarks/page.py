"""The page of 100,000 completions in Chromium: bytes, and seconds until it can be used.

    python -m benchmarks.page [--run DIR] [--repeats 5]

Without `--run` a run of 10,000 examples, two tasks and five losses is written first (not measured),
and its page with two reports. Each repeat opens the page in a new context, which caches nothing.
Budget: 2 s from opening to the first rows of completions, 3 MB for the page of a replication.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.reports import embedded

SECONDS = 2.0
LOSSES = ("ce", "gce", "ntl", "ntil", "smmd")
SHOWS = "(text) => document.getElementById('where').textContent.startsWith(text)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a run with a page, in place of a synthetic one")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.run or make(Path(temporary) / "run")
        file = folder / "reports" / "index.html"
        opened = [opening(file) for _ in range(options.repeats)]
        result = {
            "page_MB": round(file.stat().st_size / 1e6, 2),
            "completions": embedded(folder),
            **{key: round(statistics.median(one[key] for one in opened), 3) for key in opened[0]},
        }
    print(json.dumps(result))
    sys.exit(0 if result["seconds_to_rows"] <= SECONDS else 1)


def make(folder: Path) -> Path:
    """A run with a table and a figure on its page."""
    from smmd_bench.plugin_system.registry import load
    from tests.publishing.published import publish
    from tests.runs import write_run

    run = write_run(
        folder, tasks=("arithmetic", "gsm8k"), losses=LOSSES, seeds=(0,), n=10_000, base=False,
        resamples=None,
    )  # fmt: skip
    publish(run, [load("reports", "arithmetic_table"), load("reports", "scale_errors")])
    return folder


def opening(file: Path) -> dict[str, Any]:
    """Seconds until the headings and the first rows are there, and of a search and a sort."""
    from tests.chromium import chromium

    with chromium() as browser:
        page = browser.new_page(reduced_motion="reduce")  # no time goes by in scrolling
        start = time.perf_counter()
        page.goto(file.resolve().as_uri(), wait_until="commit")
        page.wait_for_selector("h2")
        found = {"seconds_to_headings": time.perf_counter() - start}
        page.wait_for_selector("#completions tbody tr")
        found["seconds_to_rows"] = time.perf_counter() - start
        start = time.perf_counter()
        page.fill("#search", "no such text anywhere")
        page.wait_for_function(SHOWS, arg="no example")
        found["seconds_to_search"] = time.perf_counter() - start
        page.fill("#search", "")
        page.wait_for_function(SHOWS, arg="1–")
        start = time.perf_counter()
        page.click("#completions th:nth-child(4) button")
        page.wait_for_selector("#completions th:nth-child(4)[aria-sort]")
        page.wait_for_function("() => new Promise((done) => requestAnimationFrame(done))")
        found["seconds_to_sort"] = time.perf_counter() - start
        browser.close()
    return found


if __name__ == "__main__":
    main()
