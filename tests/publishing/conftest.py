"""A run of two tasks and two seeds with its page, one report of which is hostile."""

import logging

import pandas as pd
import pytest
from smmd_bench.reports.verdict import Verdict

import smmd_bench as sb
from smmd_bench.contracts import Artefact, ReportSkippedError
from smmd_bench.publishing.page import write_page
from smmd_bench.publishing.write_reports import make_report
from smmd_bench.storage.files import write_parquet
from tests.runs import write_run

HOSTILE = "</script><img src=x onerror=alert(1)>"
VALUES = ["10 [9, 11]", "–", "−2.5 ± 1", "1,000", "9.5", "<0.001"]
N = 40


class Told:
    """A report that builds, or says, what it is told."""

    paper = "Table 0"

    def __init__(self, name, build, title=""):
        self.name, self.title, self.make = name, title or name, build

    def build(self, run):
        return self.make()


def publish(run, reports):
    """Build the reports, and write their files and the page."""
    write_page(run, [make_report(run, report) for report in reports])


def both():
    """A figure and a table."""
    figure = sb.new_figure()
    figure.subplots().plot([1, 2])
    table = pd.DataFrame({"<b>": ["<i>&</i>"]})
    return Artefact("A caption.", table, figure, pd.DataFrame({"x": [1, 2]}))


def values():
    """A table of every kind of cell, so wide that a phone has to scroll it."""
    table = pd.DataFrame(
        {"Value": VALUES, "Name": [f"row {at}" for at in range(len(VALUES))]}
    )
    table = table.assign(**{f"Column {at}": "a long text in a cell" for at in range(8)})
    table.loc[0, [f"Column {at}" for at in range(8)]] = "another one"
    table.attrs.update(title="A title that names the level", bold=[(0, "Value")])
    return Artefact(
        "A caption.", table, data=pd.DataFrame({"value": [1 / 3]}), notes=["A note."]
    )


def skipping():
    """It has nothing to show."""
    raise ReportSkippedError("nothing to show")


def failing():
    """It raises."""
    raise ValueError("<script>boom</script>")


def failing_to_draw():
    """Its figure cannot be saved."""
    figure = sb.new_figure()
    figure.subplots().set_title("$\\frac{1}{$")
    return Artefact("A caption.", figure=figure)


REPORTS = (
    Told("values", values),
    Told("both", both, "Both <of> them"),
    Told("skipping", skipping, "A report that is skipped"),
    Told("failing", failing),
    Told("failing_to_draw", failing_to_draw),
    Verdict(),
)


@pytest.fixture(scope="package")
def run(tmp_path_factory):
    """The run, published; a completion of it holds HTML."""
    folder = tmp_path_factory.mktemp("publish") / "runs/mine"
    write_run(folder, tasks=("arithmetic", "clock_time"), n=N, steps=20, resamples=20)
    run = sb.read_run(folder)
    completions = run.current(run.cells["address"].iloc[1]).place("completions")
    write_parquet(completions, pd.read_parquet(completions).assign(completion=HOSTILE))
    run = sb.read_run(folder)
    logging.disable(logging.CRITICAL)
    publish(run, REPORTS)
    logging.disable(logging.NOTSET)
    return run
