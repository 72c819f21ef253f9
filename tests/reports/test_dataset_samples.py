"""Dataset samples: the pictures, answers and marks that are drawn."""

import numpy as np
import pytest
from PIL import Image
from smmd_bench.reports.datasets import DatasetSamples, clipped, drawable

from tests.broken_pictures import torn_png
from tests.changed_runs import changed, without


@pytest.fixture(scope="module")
def run(runs):
    """Clocks, charts and word problems, two losses, two seeds."""
    return runs("samples")


@pytest.fixture(scope="module")
def artefact(run):
    return DatasetSamples().build(run)


@pytest.fixture(scope="module")
def one_row(run):
    return DatasetSamples(rows=1).build(run)


def texts(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def pictures(figure):
    return [np.asarray(image.get_array()) for axis in figure.axes for image in axis.images]


def test_the_frame_has_the_answer_of_each_loss_and_a_mark_says_which_are_right(artefact, run):
    data = artefact.data
    assert list(data["loss"].unique()) == ["base", "ce", "smmd"]
    known = run.completions[run.completions["seed"] == 0].set_index(["task", "loss", "uid"])
    for row in data.itertuples():
        expected = known.loc[(row.task, row.loss, row.uid)]
        assert (row.completion, row.exact) == (expected["completion"], expected["exact"])
    found = texts(artefact.figure)
    assert sum(text.count("✓ ") for text in found) == data["exact"].sum()
    assert sum(text.count("✗ ") for text in found) == (~data["exact"].astype(bool)).sum()


def test_pictures_are_those_of_examples_that_are_spread_over_the_test_split(one_row, run):
    names = [f"clock_time-{at}.png" for at in (6, 18, 31, 43)]
    names += [f"chartqa-{at}.png" for at in (8, 25, 41)]
    for picture, name in zip(pictures(one_row.figure), names, strict=True):
        assert np.array_equal(picture, np.asarray(Image.open(run.path / "pictures" / name)))


def test_headings_name_the_model_and_synthetic_data(artefact):
    found = [part.get_suptitle() for part in artefact.figure.subfigs]
    assert "clock_time · synthetic data · builtin/tiny-vl · seed 0" in found
    assert "gsm8k · builtin/tiny-vl · seed 0" in found


@pytest.mark.parametrize("broken", [None, "cut", "torn"])
def test_a_picture_that_is_gone_or_broken_leaves_an_empty_frame(run, tmp_path, broken):
    lost = tmp_path / "lost.png"
    if broken == "torn":
        torn_png(lost)
    elif broken == "cut":
        lost.write_bytes(b"\x89PNG\r\n\x1a\n")

    def elsewhere(frame):
        return frame.assign(image=str(lost)) if "image" in frame else frame

    run = changed(run, tmp_path / "run", "completions.parquet", elsewhere)
    figure = DatasetSamples(rows=1).build(run).figure
    assert not pictures(figure)
    assert texts(figure).count("picture not found") == 6


def test_a_loss_without_a_result_is_named_in_its_place(run, tmp_path):
    run = without(run, tmp_path, task="gsm8k", loss="smmd")
    artefact = DatasetSamples(rows=1).build(run)
    assert sum("no result (pending)" in text for text in texts(artefact.figure)) == 3
    assert artefact.caption.endswith("Without a result: SMMD (pending).")


def test_letters_that_the_font_lacks_are_boxes_and_the_marks_are_not():
    assert drawable("a 時\n✓✗") == "a □ ✓✗"


@pytest.mark.parametrize("keep_end", [False, True])
def test_a_clipped_text_fits_and_keeps_its_start_or_end(keep_end):
    text = "a long solution that ends with the answer #### 18"
    found = clipped(text, 20, keep_end=keep_end)
    assert len(found) == 20
    assert found.endswith("#### 18") if keep_end else found.startswith("a long")
    assert clipped(text, len(text), keep_end=keep_end) == text
