import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from smmd_bench.tasks import _clock_folder, _picture_files
from smmd_bench.tasks._clock_drawing import draw_clock
from smmd_bench.tasks._clock_faces import CENTRE, face_style
from smmd_bench.tasks._clock_index import FACES, SIZES, TIMES, in_turn, own_index, time_of
from smmd_bench.tasks._clock_pictures import quarter_turns, task_face
from smmd_bench.tasks.clock_time import ClockTime

from smmd_bench import score
from smmd_bench.contracts import Split
from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import experiment_from_yaml
from smmd_bench.plugin_system.registry import load_task

REAL = os.environ.get("SMMD_BENCH_DATA")
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@pytest.fixture(autouse=True)
def _no_local_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SMMD_BENCH_DATA", raising=False)
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))


def test_the_index_is_that_of_the_kaggle_data() -> None:
    every = {split: own_index(split) for split in SPLITS}
    assert {split: len(clocks) for split, clocks in every.items()} == SIZES
    assert len({clock for clocks in every.values() for clock in clocks}) == 144 * 100
    for split, a_class in zip(SPLITS, (80, 10, 10), strict=True):
        counts = [sum((c.hour, c.minute) == time for c in every[split]) for time in TIMES[::13]]
        assert set(counts) == {a_class}


@pytest.mark.skipif(REAL is None, reason="SMMD_BENCH_DATA is not set: clocks.csv of Kaggle")
def test_the_index_agrees_with_clocks_csv_row_by_row() -> None:
    assert REAL is not None
    rows = pd.read_csv(Path(REAL) / "clock_time" / "clocks.csv")
    for split, name in zip(SPLITS, ("train", "valid", "test"), strict=True):
        theirs = {
            f"{Path(file).parent.name}/{Path(file).stem}"
            for file in rows[rows["data set"] == name]["filepaths"]
        }
        assert {f"{c.folder}/{c.face}" for c in own_index(split)} == theirs


def test_any_beginning_of_a_split_has_all_times_alike_often() -> None:
    clocks = own_index("train")
    for rounds in (1, 3):
        beginning = clocks[: 144 * rounds]
        assert {(c.hour, c.minute) for c in beginning} == set(TIMES)
    assert in_turn(reversed(clocks)) == list(clocks)


def test_examples_are_pictures_with_their_time() -> None:
    task = ClockTime()
    examples = task.examples("test", 0, 20)
    assert [e.uid for e in examples] == [e.uid for e in task.examples("test", 0, 40)][:20]
    for example in examples:
        (path,) = example.images
        with Image.open(path) as picture:
            assert (picture.size, picture.mode) == ((224, 224), "RGB")
        hour, minute = example.attributes["hour"], example.attributes["minute"]
        assert example.target == f" {hour}:{minute:02}"
        assert task.parse(example.target) == example.answer
    assert task.data_label == "synthetic"
    assert task.identity("test", 0)["source"] == "synthetic"
    assert task.identity("test", 0) != task.identity("test", 1)


def test_the_same_seed_draws_the_same_bytes_and_another_seed_other_faces() -> None:
    task = ClockTime()
    first = [e.images[0].read_bytes() for e in task.examples("test", 0, 6)]
    for example in task.examples("test", 0, 6):
        example.images[0].unlink()
    assert [e.images[0].read_bytes() for e in task.examples("test", 0, 6)] == first
    assert [e.images[0].read_bytes() for e in task.examples("test", 1, 6)] != first


def test_many_processes_draw_what_one_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = [e.images[0].read_bytes() for e in ClockTime().examples("test", 0, 12)]
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(_picture_files, "IN_PROCESS_BELOW", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert [e.images[0].read_bytes() for e in ClockTime().examples("test", 0, 12)] == one
    assert not list(tmp_path.rglob("*.part"))


def test_a_picture_that_is_empty_is_drawn_again() -> None:
    (example,) = ClockTime().examples("test", 0, 1)
    content = example.images[0].read_bytes()
    example.images[0].write_bytes(b"")
    ClockTime().examples("test", 0, 1)
    assert example.images[0].read_bytes() == content


def test_the_hands_point_where_they_should() -> None:
    """On a bare face: the pixels that a hand changes lie at its angle, up to its length."""
    style = next(
        s
        for s in (face_style(f"hands {i}") for i in range(500))
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


def test_a_rotated_picture_is_a_quarter_turn_of_the_upright_one() -> None:
    upright, rotated = ClockTime(), ClockTime(rotate=True)
    turns = []
    pairs = zip(upright.examples("test", 0, 30), rotated.examples("test", 0, 30), strict=True)
    for (before, after), clock in zip(pairs, own_index("test"), strict=False):
        k = quarter_turns(0, clock)
        turns.append(k)
        with Image.open(before.images[0]) as a, Image.open(after.images[0]) as b:
            assert np.array_equal(np.rot90(np.asarray(a), -k), np.asarray(b))
    assert set(turns) == {0, 1, 2, 3}
    assert rotated.identity("test", 0) != upright.identity("test", 0)


def test_faces_are_varied() -> None:
    styles = [task_face(0, face) for face in range(FACES)]
    assert len(set(styles)) == FACES
    assert {s.numerals for s in styles} == {"arabic", "roman", "quarters", "ticks", "none"}
    assert len({s.font for s in styles}) > 5
    assert any(sum(s.dial) < 200 for s in styles)
    assert any(sum(s.dial) > 600 for s in styles)
    for s in styles:  # hands can be seen
        assert all(sum(abs(a - b) for a, b in zip(h, s.dial, strict=True)) > 100
                   for h in (s.hour_hand, s.minute_hand))  # fmt: skip
        assert s.minute_length > s.hour_length + 20


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        (" 1:05", 65),
        ("12:55", 775),
        ("It is 07:30 now, not 8:15.", 450),
        ("0:15", None),
        ("13:05", None),
        ("7:75", None),
        ("7:5", None),
        ("7:055", None),
        ("1:05:20", 65),
        ("Answer:12:35", 755),
        ("time:1:05", 65),
        ("٣:٠٥", None),
        ("seven", None),
        ("", None),
    ],
)
def test_parse(text: str, minutes: int | None) -> None:
    answer = ClockTime().parse(text)
    assert (None if answer is None else answer.value) == (None if minutes is None else minutes)


@given(st.text())
def test_parse_never_fails(text: str) -> None:
    answer = ClockTime().parse(text)
    assert answer is None or 60 <= answer.value < 780


@given(st.integers(1, 12), st.integers(0, 59))
def test_parse_gives_every_time_back(hour: int, minute: int) -> None:
    answer = ClockTime().parse(f" {hour}:{minute:02}")
    assert answer is not None
    assert answer.value == Fraction(60 * hour + minute)


def test_scores_have_both_gaps_and_count_what_is_no_time() -> None:
    frame = score(
        "clock_time", ["12:50", "1:00", "13:00", "3:00"], ["1:00", "1:00", "1:00", "3:30"]
    )
    values = {name: value["value"] for name, value in frame.attrs["metrics"].items()}
    assert values["exact_match"] == 25
    assert values["time_gap"] == pytest.approx((710 + 0 + 30) / 3)
    assert values["time_gap_wrapped"] == pytest.approx((10 + 0 + 30) / 3)
    assert values["parse_failure_rate"] == 25


# The folder of Kaggle


def kaggle_folder(root: Path, pictures: int = 3) -> Path:
    """A small stand-in: all 144 times, that many faces of each in every split."""
    folder = root / "clock_time"
    lines = ["class index,filepaths,labels,data set"]
    for number, (hour, minute) in enumerate(TIMES):
        for at, split in enumerate(("train", "valid", "test")):
            for face in range(at * pictures, (at + 1) * pictures):
                path = folder / split / f"{hour}-{minute:02}" / f"{face}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (8, 8), (number, at, face)).save(path)
                lines.append(f"{number},{path.relative_to(folder)},{hour}_{minute:02},{split}")
    (folder / "clocks.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def kaggle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path))
    return kaggle_folder(tmp_path, 1)


def test_a_kaggle_folder_is_read_as_it_is(kaggle: Path) -> None:
    task = load_task("clock_time")
    assert isinstance(task, ClockTime)
    assert task.data_label == "Kaggle"
    examples = {split: task.examples(split, 0) for split in SPLITS}
    assert [len(rows) for rows in examples.values()] == [144] * 3
    for split, name in zip(SPLITS, ("train", "valid", "test"), strict=True):
        for example in examples[split]:
            hour, minute = example.attributes["hour"], example.attributes["minute"]
            assert example.images[0].parent == kaggle / name / f"{hour}-{minute:02}"
    assert task.identity("test", 0)["source"] == "kaggle"
    assert task.identity("test", 0) == task.identity("test", 1)


def test_the_identity_follows_the_bytes_of_the_pictures(kaggle: Path) -> None:
    task = ClockTime()
    before = task.identity("test", 0)
    Image.new("RGB", (8, 8), (1, 2, 3)).save(kaggle / "test" / "4-20" / "2.jpg")
    _clock_folder._digest.cache_clear()  # another process
    assert task.identity("test", 0) != before
    assert task.identity("train", 0) == ClockTime().identity("train", 0)


def test_a_broken_picture_is_named_and_counted(kaggle: Path) -> None:
    for name in ("4-20", "5-00"):
        path = kaggle / "train" / name / "0.jpg"
        path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UserError, match=r"2 of 144 pictures cannot be read.*4-20/0\.jpg"):
        ClockTime().examples("train", 0, 5)


def test_absent_pictures_are_named_and_counted(kaggle: Path) -> None:
    for minute in ("00", "05"):
        (kaggle / "valid" / f"1-{minute}" / "1.jpg").unlink()
    with pytest.raises(UserError, match=r"2 of the 144 validation pictures .*1-00/1\.jpg"):
        ClockTime().identity("validation", 0)


def test_missing_classes_are_counted(kaggle: Path) -> None:
    index = kaggle / "clocks.csv"
    kept = [line for line in index.read_text().splitlines() if "/3-" not in line]
    index.write_text("\n".join(kept) + "\n")
    with pytest.raises(UserError, match=r"no test picture of 12 of the 144 times, .* 3:00"):
        ClockTime().examples("test", 0)


@pytest.mark.parametrize("label", ["25_00", "1_75", "noon", ""])
def test_a_label_that_is_no_time_is_named_with_its_line(kaggle: Path, label: str) -> None:
    index = kaggle / "clocks.csv"
    index.write_text(index.read_text().replace(",1_00,train", f",{label},train"))
    with pytest.raises(UserError, match=r"csv, line 2: the label .* is not a time .*: correct it"):
        ClockTime().examples("train", 0)


def test_a_label_that_is_not_its_folder_is_named(kaggle: Path) -> None:
    index = kaggle / "clocks.csv"
    index.write_text(index.read_text().replace(",1_00,train", ",2_00,train"))
    with pytest.raises(UserError, match=r"line 2: .* is not in the folder train/2-00 of its label"):
        ClockTime().examples("train", 0)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("575,test/12-55/2.jpg,12_55,train", "is not in the folder train/12-55 of its label"),
        ("575,train/12-55/0.jpg,12_55,train", "is listed twice"),
        ("575,valid/12-55/0.jpg,12_55,validation", "the data set 'validation' is none of"),
        ("575,train/12-55/one.jpg,12_55,train", "is no picture such as"),
        ("575,train/12-55/7.jpg", "the label 'None' is not a time"),
    ],
)
def test_rows_that_would_mix_the_splits_are_refused(kaggle: Path, row: str, reason: str) -> None:
    with (kaggle / "clocks.csv").open("a") as index:
        index.write(f"{row}\n")
    with pytest.raises(UserError, match=rf"clocks\.csv, line 434: .*{reason}"):
        ClockTime().examples("train", 0)


def test_rows_with_a_mistake_are_counted(kaggle: Path) -> None:
    index = kaggle / "clocks.csv"
    index.write_text(index.read_text().replace(",1_00,", ",noon,").replace(",2_05,", ",x,"))
    with pytest.raises(UserError, match=r"line 2: .*\(6 rows of it have a mistake\)"):
        ClockTime().identity("test", 0)


def test_an_experiment_keeps_what_auto_means(kaggle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Experiment(tasks=("clock_time",), losses=("ce",))
    assert real.tasks == ("clock_time[source=kaggle]",)
    assert "source=kaggle" in real.to_yaml()
    assert "source=kaggle" in real.to_flags()
    monkeypatch.delenv("SMMD_BENCH_DATA")
    drawn = Experiment(tasks=("clock_time",), losses=("ce",))
    assert drawn.tasks == ("clock_time",)
    assert drawn.name != real.name
    with pytest.raises(UserError, match="--data-dir"):
        _ = [cell.addresses for cell in experiment_from_yaml(real.to_yaml(), "e.yaml").cells]


def test_a_file_that_is_no_index_is_named(kaggle: Path) -> None:
    (kaggle / "clocks.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="has no column 'filepaths'"):
        ClockTime().examples("train", 0)


def test_a_data_folder_without_clocks_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path))
    with pytest.raises(UserError, match=r"has no clock_time/clocks\.csv.*source=synthetic"):
        ClockTime().examples("train", 0)
    assert ClockTime(source="synthetic").examples("train", 0, 1)


def test_kaggle_by_name_without_a_folder_is_an_error() -> None:
    with pytest.raises(UserError, match="--data-dir"):
        ClockTime(source="kaggle").examples("train", 0)


@given(st.text(max_size=8))
def test_labels_are_read_or_refused(label: str) -> None:
    time = time_of(label)
    assert time is None or (1 <= time[0] <= 12 and 0 <= time[1] < 60)
