"""Clock-Time: drawn clocks, the folder of Kaggle, and the time that a completion gives."""

from collections import Counter

import numpy as np
import pytest
from PIL import Image
from smmd_bench.tasks._clock_data import SIZES, TIMES, own_index
from smmd_bench.tasks._clock_drawing import CENTRE, FaceStyle, draw_clock
from smmd_bench.tasks.clock_time import ClockTime

from smmd_bench import score
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import experiment_file
from tests.conftest import expect_user_error

NAMES = {"train": "train", "validation": "valid", "test": "test"}  # as Kaggle has them


@pytest.fixture(autouse=True)
def _no_local_copy(monkeypatch, tmp_path):
    monkeypatch.delenv("SMMD_BENCH_DATA", raising=False)
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))


def pixels(example):
    """The picture of an example, of any sign."""
    with Image.open(example.images[0]) as picture:
        assert picture.size == (224, 224)
        assert picture.mode == "RGB"
        return np.asarray(picture).astype(int)


def test_the_index_is_that_of_the_kaggle_data():
    clocks = set()
    for split, faces_a_time in zip(NAMES, (80, 10, 10), strict=True):
        index = own_index(split)
        clocks.update(index)
        counts = Counter((clock.hour, clock.minute) for clock in index)
        assert counts == dict.fromkeys(TIMES, faces_a_time)
        assert len(index) == SIZES[split]
    assert len(clocks) == 144 * 100


def test_examples_are_pictures_with_their_time():
    task = ClockTime()
    examples = task.examples("test", 0, 20)
    assert [e.uid for e in examples] == [e.uid for e in task.examples("test", 0, 40)][
        :20
    ]

    for example in examples:
        assert pixels(example).std() > 0
        assert example.target == " {hour}:{minute:02}".format(**example.attributes)
        assert task.parse(example.target) == example.answer

    assert task.identity("test", 0)["source"] == "synthetic"
    assert task.identity("test", 0) != task.identity("test", 1)


@pytest.mark.parametrize(
    ("hour", "minute", "hour_angle"),
    [(3, 30, 105), (7, 5, 212.5), (10, 55, 327.5), (1, 20, 40)],
)
def test_the_hands_point_where_they_should(hour, minute, hour_angle):
    """On a bare face: the pixels that a hand changes lie at its angle, up to its length."""
    styles = (FaceStyle(f"hands {i}") for i in range(500))
    style = next(filter(is_bare, styles))
    midnight = draw_clock(style, 12, 0)
    clock = draw_clock(style, hour, minute)
    angle, distance = changed_pixels(midnight, clock)
    longest = distance.max()
    assert longest < style.minute_length + 2

    is_outside = distance > style.hour_length + 3
    from_twelve = np.minimum(angle, 360 - angle)
    is_minute_hand = is_outside & (from_twelve >= 8)
    from_minute_hand = np.abs(angle[is_minute_hand] - 6 * minute)
    assert from_minute_hand.max() < 6

    is_inside = (distance > 40) & (distance < style.hour_length - 4)
    from_hour_hand = np.abs(angle[is_inside] - hour_angle)
    assert from_hour_hand.min() < 3


def changed_pixels(*pictures):
    """Angle in degrees from twelve, and distance from the centre, of the pixels that differ."""
    first, second = (np.asarray(picture).astype(int) for picture in pictures)
    y, x = np.nonzero(np.abs(first - second).sum(-1) > 60)
    right = x + 0.5 - CENTRE
    up = CENTRE - y - 0.5
    return np.degrees(np.arctan2(right, up)) % 360, np.hypot(right, up)


def is_bare(style):
    return style.hand == "straight" and not style.tail and style.numerals == "none"


TEXTS = {
    " 1:05": 65, "12:55": 775, "It is 07:30 now, not 8:15.": 450, "1:05:20": None,
    "3:30-4:00": None, "3:30\u20134:00": None, "1:2 or 3:30": None, "3:30.5": None, "3:30/4": None,
    "2024-01-05 3:30.": 210, "3:30pm": 210, "from 3:30 - 4:00": 210,
    "Answer:12:35": 755, "time:1:05": 65, "0:15": None, "13:05": None, "7:75": None, "7:5": None,
    "7:055": None, "٣:٠٥": None, "seven": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_parse(text):
    answer = ClockTime().parse(text)
    assert (None if answer is None else answer.value) == TEXTS[text]


def test_scores_have_both_gaps_and_count_what_is_no_time():
    completions = ["12:50", "1:00", "13:00", "3:00"]
    frame = score("clock_time", completions, ["1:00", "1:00", "1:00", "3:30"])
    metrics = frame.attrs["metrics"]
    assert metrics["exact_match"]["value"] == 25
    assert metrics["time_gap"]["value"] == pytest.approx((710 + 0 + 30) / 3)
    assert metrics["time_gap_wrapped"]["value"] == pytest.approx((10 + 0 + 30) / 3)
    assert metrics["parse_failure_rate"]["value"] == 25


@pytest.fixture
def kaggle(tmp_path, monkeypatch):
    """A small stand-in: all 144 times, one face of each in every split."""
    folder = tmp_path / "clock_time"
    lines = ["class index,filepaths,labels,data set"]
    for number, (hour, minute) in enumerate(TIMES):
        for face, split in enumerate(NAMES.values()):
            name = f"{split}/{hour}-{minute:02}/{face}.jpg"
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (number, face, face)).save(path)
            lines.append(f"{number},{name},{hour}_{minute:02},{split}")

    (folder / "clocks.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path))
    return folder


def test_a_kaggle_folder_is_read_as_it_is(kaggle):
    task = ClockTime()
    for split, name in NAMES.items():
        examples = task.examples(split, 0)
        assert len(examples) == 144
        for example in examples:
            folder = f"{example.attributes['hour']}-{example.attributes['minute']:02}"
            assert example.images[0].parent == kaggle / name / folder

    assert task.identity("test", 0)["source"] == "kaggle"
    assert task.identity("test", 0) == task.identity("test", 1)


def replace_in_index(old, new):
    def spoil(folder):
        file = folder / "clocks.csv"
        file.write_text(file.read_text().replace(old, new))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            replace_in_index("train/1-00/0.jpg", "train/one.jpg"),
            "does not fit its folder",
        ),
        (replace_in_index(",train\n", ",valid\n"), "has not all of the 144 times"),
        (replace_in_index("filepaths", "path"), "does not fit its folder"),
        (
            lambda folder: (folder / "train/1-00/0.jpg").unlink(),
            r"1 pictures .*1-00/0\.jpg",
        ),
        (lambda folder: (folder / "clocks.csv").unlink(), r"no clock_time/clocks\.csv"),
    ],
)
def test_what_is_missing_or_wrong_in_it_is_named(kaggle, spoil, message):
    spoil(kaggle)
    with expect_user_error(message):
        ClockTime().examples("train", 0, 5)
    assert ClockTime(source="synthetic").examples("train", 0, 1)


def test_an_experiment_keeps_what_auto_means(kaggle, monkeypatch):
    real = Experiment(tasks=("clock_time",), losses=("ce",))
    assert real.tasks == ("clock_time[source=kaggle]",)
    assert "source=kaggle" in real.to_yaml()
    monkeypatch.delenv("SMMD_BENCH_DATA")
    drawn = Experiment(tasks=("clock_time",), losses=("ce",))
    assert drawn.tasks == ("clock_time",)
    assert drawn.name != real.name
    with expect_user_error("--data-dir"):
        _ = [cell.addresses for cell in experiment_file(real.to_yaml(), "e.yaml").cells]
