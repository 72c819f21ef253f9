"""A page in a real browser, which may not complain."""

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.contracts import Artefact
from smmd_bench.plugin_system.registry import load
from tests.publishing.published import Told, publish
from tests.runs import write_run

VALUES = ["10 [9, 11]", "–", "−2.5 ± 1", "1,000", "9.5", "failed", "<0.001", "2.1M", "1.2e+39"]
N = 40


def values():
    """A table of every kind of cell, so wide that a phone has to scroll it."""
    table = pd.DataFrame({"Value": VALUES, "Name": [f"row {at}" for at in range(len(VALUES))]})
    table = table.assign(**{f"Column {at}": "a long text in a cell" for at in range(8)})
    table.loc[0, [f"Column {at}" for at in range(8)]] = "another one"
    table.attrs["bold"] = [(0, "Value")]
    return Artefact("A caption.", table)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A run of two tasks and two seeds, with its page."""
    path = tmp_path_factory.mktemp("browser") / "run"
    write_run(path, tasks=("arithmetic", "clock_time"), n=N, steps=20, resamples=20)
    publish(sb.read_run(path), [Told("values", values), load("reports", "overview")])
    return path


@pytest.fixture
def open_page(browser, folder):
    """Opens a page once its completions are shown; at the end nothing may have gone wrong."""
    contexts, wrong = [], []

    def opened(file=None, width=1280, height=800, hash="", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda request: wrong.append(request.url) if "http" in request.url else 0
        )
        page.goto((file or folder / "reports" / "index.html").as_uri() + hash)
        page.wait_for_selector("#completions tbody tr")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
