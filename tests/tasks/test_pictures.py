"""Tasks that draw their pictures: the same bytes whatever the process, drawn once."""

import pytest
from smmd_bench.tasks import _picture_files
from smmd_bench.tasks.chartqa import ChartQA
from smmd_bench.tasks.clock_time import ClockTime


@pytest.mark.parametrize("task", [ChartQA(), ClockTime()], ids=lambda task: task.name)
def test_pictures_are_drawn_once_and_are_the_same_by_one_process_and_two(
    task, tmp_path, monkeypatch
):
    monkeypatch.delenv("SMMD_BENCH_DATA", raising=False)

    def pictures(cache, seed=0):
        monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / cache))
        return [example.images[0] for example in task.examples("test", seed, 12)]

    drawn = pictures("one")
    assert {*tmp_path.rglob("*.png")} == {*drawn}  # and no more than were asked for
    content = [picture.read_bytes() for picture in drawn]
    drawn[0].unlink()
    file_number = drawn[-1].stat().st_ino
    assert [picture.read_bytes() for picture in pictures("one")] == content
    assert drawn[-1].stat().st_ino == file_number
    assert [picture.read_bytes() for picture in pictures("one", seed=1)] != content
    monkeypatch.setattr(_picture_files, "IN_PROCESS_BELOW", 1)
    monkeypatch.setattr(_picture_files, "cpu_count", lambda: 2)
    assert [picture.read_bytes() for picture in pictures("two")] == content
    assert not list(tmp_path.rglob("*.part"))
