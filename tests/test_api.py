"""The stable Python API; `tests/training/test_trainer_loss.py` runs what its page shows."""

import smmd_bench as sb


def test_every_name_resolves():
    for name in sb.__all__:
        assert getattr(sb, name) is not None
    assert {*sb._API, "__version__"} == {*sb.__all__} <= {*dir(sb)}
