"""What holds for every task that draws its pictures."""

from smmd_bench.tasks import _picture_files


def drawn_anew(task, seed, cache, monkeypatch):
    """The bytes of twelve pictures by one process, and in another cache folder by two."""

    def pictures():
        return [example.images[0].read_bytes() for example in task.examples("test", seed, 12)]

    one = pictures()
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(cache))
    monkeypatch.setattr(_picture_files, "IN_PROCESS_BELOW", 1)
    monkeypatch.setattr(_picture_files, "cpu_count", lambda: 2)
    two = pictures()
    assert str(task.examples("test", seed, 1)[0].images[0]).startswith(str(cache))
    assert not list(cache.rglob("*.part"))
    return one, two


def require_drawn_again(task):
    """A picture that is absent is drawn again, to the byte; one that is there is not."""
    (example,) = task.examples("validation", 8, 1)
    (picture,) = example.images
    content, before = picture.read_bytes(), picture.stat()
    assert task.examples("validation", 8, 1) == [example]
    assert picture.stat().st_ino == before.st_ino
    picture.unlink()
    task.examples("validation", 8, 1)
    assert picture.read_bytes() == content
