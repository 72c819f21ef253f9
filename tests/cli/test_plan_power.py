"""`smmd-bench plan --power` from the command line."""

import json

import pytest
from click.testing import CliRunner

from smmd_bench.cli.plan import command
from smmd_bench.errors import UserError
from tests.runs import planted_run, quick_run


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pilot")
    quick_run(folder, seeds=(0, 1), n=60)
    return str(folder)


def run(*args):
    return CliRunner().invoke(command, args)


def test_the_table_says_what_each_number_of_seeds_shows(pilot):
    text = run("--power", pilot, "--difference", "4").stdout
    assert "Seeds for 4" in text
    assert text.count("SMMD") == 4
    assert "20 seeds" in text
    assert "(seeds: 2)" in text


def test_a_pilot_of_one_seed_says_that_it_knows_no_more(tmp_path):
    quick_run(tmp_path, n=30)
    text = " ".join(run("--power", str(tmp_path)).stdout.split())
    assert "One seed says nothing of how seeds differ" in text


def test_machines_get_the_rows(pilot):
    found = json.loads(run("--power", pilot, "--difference", "4", "--json").stdout)
    assert found["metric"] == "exact_match"
    assert {row["n"] for row in found["rows"]} == {60, 120, 300, 600}
    assert all(row["needed"] is None or row["needed"] >= 2 for row in found["rows"])


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), "Give a YAML FILE"),
        (("experiment.yaml", "--difference", "2"), "go with --power RUN"),
        (("--power", "PILOT", "--difference", "-2"), "no size above 0"),
        (("--power", "PILOT", "--difference", "nan"), "no size above 0"),
        (("experiment.yaml", "--power", "PILOT"), "one of them"),
    ],
)
def test_a_mistake_is_named(pilot, args, named):
    result = run(*(pilot if arg == "PILOT" else arg for arg in args))
    assert isinstance(result.exception, UserError)
    assert named in str(result.exception)


def test_a_loss_that_answers_as_cross_entropy_is_named_and_has_no_row(tmp_path):
    planted_run(tmp_path, ["1", "2"], {"ce": ["1", "3"], "ntl": ["1", "3"], "smmd": ["4", "2"]})
    text = " ".join(run("--power", str(tmp_path), "--difference", "2").stdout.split())
    assert "the pilot shows no spread of their differences: NTL." in text
