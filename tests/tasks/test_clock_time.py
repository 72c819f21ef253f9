"""Clock-Time: drawn clocks, the folder of Kaggle, and the time that a completion gives."""

import os
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from smmd_bench.tasks import _clock_folder
from smmd_bench.tasks._clock_drawing import CENTRE, FaceStyle, draw_clock
from smmd_bench.tasks._clock_index import FACES, SIZES, TIMES, in_turn, own_index, time_of
from smmd_bench.tasks._clock_pictures import quarter_turns, task_face
from smmd_bench.tasks.clock_time import ClockTime

from smmd_bench import score
from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import experiment_file
from smmd_bench.plugin_system.registry import load_task

from .pictures import drawn_anew, require_drawn_again

REAL = os.environ.get("SMMD_BENCH_DATA")
SPLITS = ("train", "validation", "test")
NAMES = dict(zip(SPLITS, ("train", "valid", "test"), strict=True))  # as Kaggle has them


@pytest.fixture(autouse=True)
def _no_local_copy(monkeypatch, tmp_path):
    monkeypatch.delenv("SMMD_BENCH_DATA", raising=False)
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))


def pixels(example):
    """The picture of an example, of any sign."""
    with Image.open(example.images[0]) as picture:
        assert (picture.size, picture.mode) == ((224, 224), "RGB")
        return np.asarray(picture).astype(int)


def test_the_index_is_that_of_the_kaggle_data():
    every = {split: own_index(split) for split in SPLITS}
    assert {split: len(clocks) for split, clocks in every.items()} == SIZES
    assert len({clock for clocks in every.values() for clock in clocks}) == 144 * 100
    for split, a_class in zip(SPLITS, (80, 10, 10), strict=True):
        counts = [sum((c.hour, c.minute) == time for c in every[split]) for time in TIMES[::13]]
        assert set(counts) == {a_class}


@pytest.mark.skipif(REAL is None, reason="SMMD_BENCH_DATA is not set: clocks.csv of Kaggle")
def test_the_index_agrees_with_clocks_csv_row_by_row():
    rows = pd.read_csv(Path(REAL) / "clock_time" / "clocks.csv")
    for split, name in NAMES.items():
        files = map(Path, rows[rows["data set"] == name]["filepaths"])
        theirs = {f"{file.parent.name}/{file.stem}" for file in files}
        assert {f"{c.folder}/{c.face}" for c in own_index(split)} == theirs


def test_any_beginning_of_a_split_has_all_times_alike_often():
    clocks = own_index("train")
    for rounds in (1, 3):
        assert {(c.hour, c.minute) for c in clocks[: 144 * rounds]} == set(TIMES)
    assert in_turn(reversed(clocks)) == list(clocks)


def time_spelled(example):
    return f"{example.attributes['hour']}:{example.attributes['minute']:02}"


def test_examples_are_pictures_with_their_time():
    task = ClockTime()
    examples = task.examples("test", 0, 20)
    assert [e.uid for e in examples] == [e.uid for e in task.examples("test", 0, 40)][:20]
    for example in examples:
        assert pixels(example).std() > 0
        assert example.target == f" {time_spelled(example)}"
        assert task.parse(example.target) == example.answer
    assert task.data_label == "synthetic"
    assert task.identity("test", 0)["source"] == "synthetic"
    assert task.identity("test", 0) != task.identity("test", 1)


def test_the_same_seed_draws_the_same_bytes_and_another_seed_other_faces(tmp_path, monkeypatch):
    require_drawn_again(ClockTime())
    one, two = drawn_anew(ClockTime(), 0, tmp_path / "other", monkeypatch)
    assert one == two
    assert [e.images[0].read_bytes() for e in ClockTime().examples("test", 1, 12)] != one


def test_the_hands_point_where_they_should():
    """On a bare face: the pixels that a hand changes lie at its angle, up to its length."""
    style = next(
        s
        for s in (FaceStyle(f"hands {i}") for i in range(500))
        if s.hand == "straight" and not s.tail and s.numerals == "none"
    )
    midnight = np.asarray(draw_clock(style, 12, 0)).astype(int)
    for hour, minute in ((3, 30), (7, 5), (10, 55), (1, 20)):
        picture = np.asarray(draw_clock(style, hour, minute)).astype(int)
        y, x = np.nonzero(np.abs(picture - midnight).sum(-1) > 60)
        dx, dy = x + 0.5 - CENTRE, CENTRE - y - 0.5
        distance, angle = np.hypot(dx, dy), np.degrees(np.arctan2(dx, dy)) % 360
        outer = distance > style.hour_length + 3
        far = angle[outer & (np.abs((angle + 180) % 360 - 180) > 8)]  # not at twelve
        assert np.abs(far - 6 * minute).max() < 6
        ring = (distance > 40) & (distance < style.hour_length - 4)
        expected = (30 * hour + minute / 2) % 360
        assert (np.abs(angle[ring] - expected) < 3).any()
        assert distance.max() < style.minute_length + 2


def test_a_rotated_picture_is_a_quarter_turn_of_the_upright_one():
    upright, rotated = ClockTime(), ClockTime(rotate=True)
    pairs = zip(upright.examples("test", 0, 30), rotated.examples("test", 0, 30), strict=True)
    turns = set()
    for (before, after), clock in zip(pairs, own_index("test"), strict=False):
        k = quarter_turns(0, clock)
        turns.add(k)
        assert np.array_equal(np.rot90(pixels(before), -k), pixels(after))
    assert turns == {0, 1, 2, 3}
    assert rotated.identity("test", 0) != upright.identity("test", 0)


def test_faces_are_varied():
    styles = [task_face(0, face) for face in range(FACES)]
    assert len(set(styles)) == FACES
    assert {s.numerals for s in styles} == {"arabic", "roman", "quarters", "ticks", "none"}
    assert len({s.font for s in styles}) > 5
    assert any(sum(s.dial) < 200 for s in styles)
    assert any(sum(s.dial) > 600 for s in styles)
    for s in styles:  # hands can be seen
        for hand in (s.hour_hand, s.minute_hand):
            assert sum(abs(a - b) for a, b in zip(hand, s.dial, strict=True)) > 100
        assert s.minute_length > s.hour_length + 20


TEXTS = {
    " 1:05": 65, "12:55": 775, "It is 07:30 now, not 8:15.": 450, "1:05:20": 65,
    "Answer:12:35": 755, "time:1:05": 65, "0:15": None, "13:05": None, "7:75": None, "7:5": None,
    "7:055": None, "٣:٠٥": None, "seven": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_parse(text):
    answer = ClockTime().parse(text)
    assert (None if answer is None else answer.value) == TEXTS[text]


@given(st.text(), st.integers(1, 12), st.integers(0, 59))
def test_parse_never_fails_and_gives_every_time_back(text, hour, minute):
    answer, time = ClockTime().parse(text), time_of(text)
    assert answer is None or 60 <= answer.value < 780
    assert time is None or (1 <= time[0] <= 12 and 0 <= time[1] < 60)
    assert ClockTime().parse(f" {hour}:{minute:02}").value == Fraction(60 * hour + minute)


def test_scores_have_both_gaps_and_count_what_is_no_time():
    written, times = ["12:50", "1:00", "13:00", "3:00"], ["1:00", "1:00", "1:00", "3:30"]
    metrics = score("clock_time", written, times).attrs["metrics"]
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
            path = folder / split / f"{hour}-{minute:02}" / f"{face}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (number, face, face)).save(path)
            lines.append(f"{number},{path.relative_to(folder)},{hour}_{minute:02},{split}")
    (folder / "clocks.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path))
    return folder


def test_a_kaggle_folder_is_read_as_it_is(kaggle):
    task = load_task("clock_time")
    assert task.data_label == "Kaggle"
    for split, name in NAMES.items():
        examples = task.examples(split, 0)
        assert len(examples) == 144
        for example in examples:
            folder = time_spelled(example).replace(":", "-")
            assert example.images[0].parent == kaggle / name / folder
    assert task.identity("test", 0)["source"] == "kaggle"
    assert task.identity("test", 0) == task.identity("test", 1)


def test_the_identity_follows_the_bytes_of_the_pictures_and_names_an_absent_one(kaggle):
    task = ClockTime()
    before = task.identity("test", 0)
    Image.new("RGB", (8, 8), (1, 2, 3)).save(kaggle / "test" / "4-20" / "2.jpg")
    _clock_folder._digest.cache_clear()  # another process
    assert task.identity("test", 0) != before
    assert task.identity("train", 0) == ClockTime().identity("train", 0)
    (kaggle / "valid" / "1-00" / "1.jpg").unlink()
    with pytest.raises(UserError, match=r"1 of the 144 validation pictures .*1-00/1\.jpg"):
        ClockTime().identity("validation", 0)


def spoil_pictures(change, *names):
    return lambda folder: [change(folder / "train" / name) for name in names]


def spoil_index(change):
    def spoil(folder):
        file = folder / "clocks.csv"
        file.write_text(change(file.read_text()))

    return spoil


ROWS = {  # one row more: what is said of it
    "575,test/12-55/2.jpg,12_55,train": "line 434: .*is not in the folder train/12-55 of its label",
    "575,train/12-55/0.jpg,12_55,train": r"clocks\.csv, line 434: .*is listed twice",
    "575,valid/12-55/0.jpg,12_55,validation": "line 434: .*the data set 'validation' is none of",
    "575,train/12-55/one.jpg,12_55,train": "line 434: .*is not a picture such as",
    "575,train/12-55/7.jpg": "line 434: .*the label 'None' is not a time",
}
LABELS = {  # another label of the first row: what is said of it
    **dict.fromkeys(
        ["25_00", "1_75", "noon", ""], r"csv, line 2: the label .* is not a time .*: correct it"
    ),
    "2_00": r"line 2: .* is not in the folder train/2-00 of its label",
}
SPOILT = [
    *[(spoil_index(lambda all, row=row: f"{all}{row}\n"), said) for row, said in ROWS.items()],
    *[
        (spoil_index(lambda all, new=new: all.replace(",1_00,train", f",{new},train")), said)
        for new, said in LABELS.items()
    ],
    (
        spoil_pictures(Path.unlink, "1-00/0.jpg", "1-05/0.jpg"),
        r"2 of the 144 train pictures .*1-00/0\.jpg",
    ),
    (
        spoil_index(lambda all: "\n".join(r for r in all.splitlines() if "/3-" not in r) + "\n"),
        r"no train picture of 12 of the 144 times, .* 3:00",
    ),
    (
        spoil_index(lambda all: all.replace(",1_00,", ",noon,").replace(",2_05,", ",x,")),
        r"line 2: .*\(6 rows of it have a mistake\)",
    ),
    (spoil_index(lambda all: "a,b\n1,2\n"), "has no column 'filepaths'"),
    (
        lambda folder: (folder / "clocks.csv").unlink(),
        r"has no clock_time/clocks\.csv.*source=synthetic",
    ),
]


@pytest.mark.parametrize(("spoil", "message"), SPOILT)
def test_what_is_missing_or_wrong_in_it_is_named(kaggle, spoil, message):
    spoil(kaggle)
    with pytest.raises(UserError, match=message):
        ClockTime().examples("train", 0, 5)
    assert ClockTime(source="synthetic").examples("train", 0, 1)


def test_a_folder_with_some_of_the_times_can_be_used(kaggle):
    for name in NAMES.values():
        for folder in sorted((kaggle / name).iterdir())[5:]:
            shutil.rmtree(folder)
    with pytest.raises(UserError, match=r"classes=there"):
        ClockTime().examples("train", 0)
    task = load_task("clock_time[classes=there]")
    examples = task.examples("train", 0)
    assert len(examples) == task.identity("train", 0)["kept"] == 5
    assert {e.images[0].parent for e in examples} == {*(kaggle / "train").iterdir()}
    whole = task.identity("test", 0)
    shutil.rmtree(next((kaggle / "test").iterdir()))
    assert task.identity("test", 0)["digest"] != whole["digest"]
    (examples[0].images[0]).unlink()
    with pytest.raises(UserError, match="1 of the 5 train pictures"):
        task.examples("train", 0)


@pytest.mark.parametrize("classes", ["all", "there"])
@pytest.mark.parametrize(("there", "renamed"), [("1-05", "01-05"), ("1-05/0.jpg", "1-05/000.jpg")])
def test_names_that_differ_in_zeros_alone_are_said_to(kaggle, there, renamed, classes):
    if classes == "there":
        for folder in (kaggle / "train").iterdir():
            if folder.name != "1-05":
                shutil.rmtree(folder)
        spoil_index(
            lambda text: (
                "\n".join(r for r in text.splitlines() if "/1-05/" in r or "filepaths" in r) + "\n"
            )
        )(kaggle)
    (kaggle / "train" / there).rename(kaggle / "train" / renamed)
    found = "train/01-05/0.jpg" if "/" not in renamed else f"train/{renamed}"
    with pytest.raises(UserError, match=f"has {found}, whose name differs in zeros alone"):
        ClockTime(classes=classes).examples("train", 0)


def test_an_experiment_keeps_what_auto_means(kaggle, monkeypatch):
    real = Experiment(tasks=("clock_time",), losses=("ce",))
    assert real.tasks == ("clock_time[source=kaggle]",)
    assert "source=kaggle" in real.to_yaml()
    assert "source=kaggle" in real.to_flags()
    monkeypatch.delenv("SMMD_BENCH_DATA")
    drawn = Experiment(tasks=("clock_time",), losses=("ce",))
    assert drawn.tasks == ("clock_time",)
    assert drawn.name != real.name
    with pytest.raises(UserError, match="--data-dir"):
        _ = [cell.addresses for cell in experiment_file(real.to_yaml(), "e.yaml").cells]
    with pytest.raises(UserError, match="--data-dir"):
        ClockTime(source="kaggle").examples("train", 0)
