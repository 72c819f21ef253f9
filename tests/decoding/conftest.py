"""Sessions of the transformers engine, which the tests of this folder share."""

from contextlib import ExitStack
from functools import cache

import pytest
from smmd_bench.plugins.engines.transformers import TransformersEngine

from smmd_bench.contracts import EngineSettings


@pytest.fixture(scope="package")
def open_session():
    """`open_session(base)`: a session on that checkpoint, opened once."""
    with ExitStack() as stack:
        settings = EngineSettings(max_model_length=256)
        yield cache(
            lambda base: stack.enter_context(TransformersEngine().open(base, settings))
        )
