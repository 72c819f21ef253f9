"""Where the test tokenizers are."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tokenizers() -> Path:
    return Path(__file__).parents[1] / "data" / "tokenizers"
