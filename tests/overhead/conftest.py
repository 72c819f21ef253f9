"""Small settings of the tiny geometry."""

from smmd_bench.overhead.settings import OverheadSettings, named_geometries


def tiny_settings(**changes):
    """The tiny geometry: 4 steps of 2 rows of 16 tokens."""
    tiny = named_geometries()["tiny"]
    values = {
        "geometry": tiny.name, "config": tiny.config, "losses": {"ce": 1},
        "numeric_tokens": 10, "device": "cpu", "steps": 4, "repeats": 1,
        "batch_size": 2, "length": 16,
    }  # fmt: skip
    return OverheadSettings(**{**values, **changes})
