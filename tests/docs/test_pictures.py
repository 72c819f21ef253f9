"""The pictures of the pages are what `scripts/draw_docs.py` draws."""

import numpy as np
import pytest
from PIL import Image

from scripts.draw_docs import IMAGES, draw

CLEAR, FEW = 32, 100
"""Of 255: a difference that one sees; pixels that may differ so, as along an edge."""


def count_differing(*files):
    picture, kept = (np.asarray(Image.open(file).convert("RGB")) for file in files)
    # Pictures of other sizes raise here.
    differences = abs(picture.astype(int) - kept)
    return (differences > CLEAR).any(-1).sum()


@pytest.mark.docs
def test_pictures_that_need_no_run_are_those_of_the_command(tmp_path, monkeypatch):
    """With the versions of the lock, which decide how letters and charts are drawn."""
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))
    draw(tmp_path / "images")
    drawn = list((tmp_path / "images").iterdir())
    assert len(drawn) == 4
    for file in drawn:
        count = count_differing(file, IMAGES / file.name)
        assert count <= FEW, f"{file.name}: run python -m scripts.draw_docs"
