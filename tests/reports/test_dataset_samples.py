import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from smmd_bench.reports._sample_panels import Block, Panel, clipped, drawable, sample_figure
from smmd_bench.reports.dataset_samples import DatasetSamples

from tests.broken_pictures import torn_png
from tests.changed_runs import changed, without
from tests.reports.golden import words
from tests.runs import quick_run


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


def test_clocks_stand_in_fours_and_charts_and_texts_in_threes(artefact):
    counts = artefact.data.groupby("task", observed=True)["uid"].nunique()
    assert counts.to_dict() == {"clock_time": 8, "chartqa": 6, "gsm8k": 6}


def test_the_frame_has_the_answer_of_each_loss_and_a_mark_says_which_are_right(artefact, run):
    data = artefact.data
    assert list(data["loss"].unique()) == ["base", "ce", "smmd"]
    known = run.completions[run.completions["seed"] == 0].set_index(["task", "loss", "uid"])
    for row in data.itertuples():
        expected = known.loc[(row.task, row.loss, row.uid)]
        assert (row.completion, row.exact) == (expected["completion"], expected["exact"])
    found = texts(artefact.figure)
    assert found.count("✓") == data["exact"].sum()
    assert found.count("✗") == (~data["exact"].astype(bool)).sum()


def test_pictures_are_those_of_examples_that_are_spread_over_the_test_split(one_row, run):
    names = [f"clock_time-{at}.png" for at in (6, 18, 31, 43)]
    names += [f"chartqa-{at}.png" for at in (8, 25, 41)]
    for picture, name in zip(pictures(one_row.figure), names, strict=True):
        assert np.array_equal(picture, np.asarray(Image.open(run.path / "pictures" / name)))


def test_headings_name_the_model_and_synthetic_data_and_a_common_question_once(artefact):
    found = texts(artefact.figure)
    assert "clock_time · synthetic data · builtin/tiny-vl · seed 0" in found
    assert "gsm8k · builtin/tiny-vl · seed 0" in found
    assert found.count("What time does the clock show?") == 1


def test_no_text_leaves_the_figure_and_no_two_overlap(artefact):
    figure = artefact.figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [text.get_window_extent(renderer) for axis in figure.axes for text in axis.texts]
    boxes += [axis.get_window_extent(renderer) for axis in figure.axes if axis.images]
    whole = figure.bbox
    for at, box in enumerate(boxes):
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1
        assert not any(box.shrunk(0.9, 0.9).overlaps(o.shrunk(0.9, 0.9)) for o in boxes[:at])


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


def test_an_example_that_a_cell_does_not_have_has_no_mark(run, tmp_path):
    where = {"task": "chartqa", "loss": "smmd"}
    for name in ("completions.parquet", "scores.parquet"):
        run = changed(run, tmp_path, name, lambda frame: frame.iloc[:10], **where)
    artefact = DatasetSamples(rows=1).build(run)
    data = artefact.data[(artefact.data["task"] == "chartqa") & (artefact.data["loss"] == "smmd")]
    assert data["exact"].isna().tolist() == [False, True, True]
    assert texts(artefact.figure).count("–") == 2


def test_labels_too_long_for_a_panel_are_numbered_and_explained(tmp_path):
    losses = ("ce", "smmd[kernel=random,term=mmd]", "smmd[kernel=shuffled,term=mmd]")
    run = quick_run(tmp_path, tasks=("clock_time",), losses=losses, n=9, base=False)
    found = texts(DatasetSamples(rows=1).build(run).figure)
    key = "SMMD (2): SMMD[kernel=random,term=mmd], SMMD (3): SMMD[kernel=shuffled,term=mmd]"
    assert key in found
    assert [found.count(label) for label in ("CE", "SMMD (2)", "SMMD (3)")] == [4, 4, 4]


def test_a_long_label_without_brackets_leaves_room_for_the_answers():
    label = "samples_gsm8k_2026-11-20T10-31-09"
    answers = [(label, "#### 18", True), ("ours", "#### 17", False)]
    found = texts(sample_figure([Block("GSM8K", [Panel("?", "#### 18", answers)], 3)]))
    assert f"samp…-09 (1): {label}" in found
    assert {"ours", "#### 17"} <= {*found}
    assert found.count("#### 18") == 2  # the truth, and an answer


def test_a_key_of_many_long_labels_is_never_cut(tmp_path):
    sigmas = "+".join(str(at / 10) for at in range(1, 90))
    variants = [f"smmd[kernel=random,lambda={at},sigma=1.5+2.5]" for at in range(4, 16)]
    losses = ("ce", f"smmd[sigma={sigmas}]", *variants)
    run = quick_run(tmp_path, tasks=("clock_time",), losses=losses, n=9, base=False)
    artefact = DatasetSamples(rows=1).build(run)
    found = texts(artefact.figure)
    assert not any("…" in text for text in found)
    said = "".join(found).replace(" ", "")
    assert all(loss.upper().partition("[")[2] in said.upper() for loss in losses[1:8])
    assert found.count("CE") == 4
    assert "Not drawn, but in the CSV: SMMD[kernel=random,lambda=10," in words(artefact)
    assert set(artefact.data["loss"]) == set(losses)


def test_a_loss_without_a_result_is_named_in_its_place(run, tmp_path):
    run = without(run, tmp_path, task="gsm8k", loss="smmd")
    artefact = DatasetSamples(rows=1).build(run)
    assert texts(artefact.figure).count("no result (pending)") == 3
    assert "Without a result: builtin/tiny-vl gsm8k smmd seed 0 (pending)." in words(artefact)


def test_the_caption_has_n_the_seed_that_is_shown_and_those_of_the_run(artefact):
    assert "n = 50 test examples; seed 0; at most" in words(artefact)
    assert "The run has seeds 0, 1." in words(artefact)


def test_letters_that_the_font_lacks_are_boxes_and_the_marks_are_not():
    assert drawable("a 時\n✓✗") == "a □ ✓✗"


@pytest.mark.parametrize("keep_end", [False, True])
def test_a_clipped_text_fits_and_keeps_its_start_or_end(keep_end):
    text = "a long solution that ends with the answer #### 18"
    found = clipped(text, 20, keep_end=keep_end)
    assert len(found) == 20
    assert found.endswith("#### 18") if keep_end else found.startswith("a long")
    assert clipped(text, len(text), keep_end=keep_end) == text
