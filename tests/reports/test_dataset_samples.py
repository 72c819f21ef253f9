"""Dataset samples: the pictures that are drawn."""

from itertools import product

import numpy as np
import pytest
from PIL import Image
from smmd_bench.reports import datasets
from smmd_bench.reports.datasets import DatasetSamples

from tests.broken_pictures import torn_png
from tests.changed_runs import changed


def pictures(figure):
    return [
        np.asarray(image.get_array()) for axis in figure.axes for image in axis.images
    ]


def test_pictures_are_those_of_examples_that_are_spread_over_the_test_split(
    runs, monkeypatch
):
    run = runs("samples")
    monkeypatch.setattr(datasets, "ROWS", 1)
    artefact = DatasetSamples().build(run)
    sizes = artefact.data.groupby("task", observed=True).size()
    assert sizes.tolist() == [4, 4, 4]

    examples = product(("clock_time", "chartqa"), (6, 18, 31, 43))
    drawn = pictures(artefact.figure)
    for pixels, (task, at) in zip(drawn, examples, strict=True):
        file = run.path / "pictures" / f"{task}-{at}.png"
        with Image.open(file) as picture:
            assert np.array_equal(pixels, np.asarray(picture))


@pytest.mark.parametrize("torn", [True, False])
def test_a_picture_that_is_gone_or_broken_leaves_an_empty_frame(
    runs, tmp_path, torn, monkeypatch
):
    lost = tmp_path / "lost.png"
    if torn:
        torn_png(lost)

    def move_pictures(frame):
        return frame.assign(image=str(lost)) if "image" in frame else frame

    run = changed(
        runs("samples"), tmp_path / "run", "completions.parquet", move_pictures
    )
    monkeypatch.setattr(datasets, "ROWS", 1)
    figure = DatasetSamples().build(run).figure
    assert not pictures(figure)

    texts = [text.get_text() for axis in figure.axes for text in axis.texts]
    assert texts.count("picture not found") == 8
