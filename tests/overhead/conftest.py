"""Small settings, and one finished measurement of them with real processes."""

import pytest

from smmd_bench.overhead.geometry import named_geometries
from smmd_bench.overhead.measure import measure
from smmd_bench.overhead.settings import OverheadSettings


def tiny_settings(**changes):
    """The tiny geometry: 4 steps of 2 rows of 16 tokens, on one thread."""
    tiny = named_geometries()["tiny"]
    values = {
        "geometry": tiny.name, "config": tiny.config, "losses": {"ce": 1},
        "numeric_tokens": 10, "device": "cpu", "steps": 4, "drop": 1, "repeats": 1,
        "batch_size": 2, "length": 16, "threads": 1,
    }  # fmt: skip
    return OverheadSettings(**{**values, **changes})


def silent(what, done, total):
    """Progress for nobody."""


def recorded():
    """Progress for a test: what was reported, and the function that reports."""
    calls: list[tuple[str, int, int]] = []
    return calls, lambda *call: calls.append(call)


@pytest.fixture(scope="session")
def measured_folder(tmp_path_factory):
    """Stock, ce and smmd, one repeat. Only to be read."""
    folder = tmp_path_factory.mktemp("overhead") / "tiny"
    measure(tiny_settings(losses={"ce": 1, "smmd": 1}), folder, silent)
    return folder
