"""The model of a tiny checkpoint of each architecture, loaded once."""

from functools import cache

import pytest


@pytest.fixture(scope="session")
def model(tiny_vlm):
    """By architecture."""
    from transformers import AutoModelForImageTextToText

    return cache(lambda name: AutoModelForImageTextToText.from_pretrained(tiny_vlm(name)).eval())
