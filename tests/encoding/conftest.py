"""The model of a tiny checkpoint of each architecture, loaded once."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def model(tiny_vlm: Callable[[str], Path]) -> Callable[[str], Any]:
    """By architecture."""
    from transformers import AutoModelForImageTextToText

    return cache(lambda name: AutoModelForImageTextToText.from_pretrained(tiny_vlm(name)).eval())
