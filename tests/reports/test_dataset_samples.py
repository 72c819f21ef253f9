"""Dataset samples: the pictures that are drawn."""

from itertools import product

import numpy as np
import pandas as pd
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
def test_pictures_that_are_gone_or_broken_leave_no_frames(
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

    headings = [part._suptitle.get_text() for part in figure.subfigs]
    assert [heading.endswith(": pictures not found") for heading in headings] == [
        True, True, False,
    ]  # fmt: skip


def test_the_answer_is_a_line_of_its_own_and_rows_are_as_high_as_their_texts():
    short = {"prompt": "Question: 1 + 1?\nAnswer:", "target": "2"}
    assert datasets._write_text(short) == "Question: 1 + 1?\nAnswer:\n→ 2"

    long = {"prompt": "word " * 99 + "\nAnswer:", "target": f"{'step ' * 20}#### 7"}
    lines = datasets._write_text(long).splitlines()
    assert len(lines) == datasets.LINES + datasets.TRUTH
    assert lines[-5:-3] == ["…", "Answer:"]
    assert lines[-3].startswith("→ step")
    assert lines[-3].endswith(" …")
    assert lines[-1].endswith("#### 7")

    wrapped = {"prompt": "A:", "target": f"{'3' * 30} 40*12 = 480.\n#### 480"}
    assert datasets._write_text(wrapped) == (f"A:\n→ {'3' * 30}\n40*12 = 480. #### 480")
    assert max(map(len, lines)) <= datasets.LETTERS + 2

    texts = [datasets._write_text(short)] * 5 + [datasets._write_text(long)]
    first, second = datasets._measure_rows(
        pd.DataFrame({"text": texts, "picture": None})
    )
    assert second > 1.5 * first
