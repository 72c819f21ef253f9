"""The pictures of the pages are what `scripts/draw_docs.py` draws."""

import numpy as np
import pytest
from PIL import Image

from scripts.draw_docs import IMAGES, draw

CLEAR, FEW = 32, 100
"""Of 255: a difference that one sees; pixels that may differ so, as along an edge."""


def pixels(file):
    return np.asarray(Image.open(file).convert("RGB"), dtype=int)


@pytest.mark.docs
def test_pictures_that_need_no_run_are_those_of_the_command(tmp_path, monkeypatch):
    """With the versions of the lock, which decide how letters and charts are drawn."""
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))
    draw(tmp_path / "images")
    drawn = sorted((tmp_path / "images").iterdir())
    assert [file.stem for file in drawn] == [
        "loss_shapes",
        "loss_shapes_others",
        "sample_chartqa",
        "sample_clock_time",
    ]

    for file in drawn:
        picture, kept = pixels(file), pixels(IMAGES / file.name)
        assert picture.shape == kept.shape, f"python -m scripts.draw_docs: {file.name}"
        differing = (abs(picture - kept) > CLEAR).any(axis=-1)
        assert differing.sum() <= FEW, f"python -m scripts.draw_docs: {file.name}"
