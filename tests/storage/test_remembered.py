"""What was read of a file, kept while the file stays as it is."""

import os

from smmd_bench.storage.remembered import remembered


def test_a_file_is_read_again_only_when_it_has_changed(tmp_path):
    read = []

    @remembered
    def content(path):
        read.append(path)
        return path.read_text()

    file = tmp_path / "file"
    assert content(file) is None
    file.write_text("one")
    assert [content(file), content(file)] == ["one", "one"]
    assert len(read) == 1
    other = tmp_path / "other"
    other.write_text("two")
    times = file.stat()
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))  # as large, and as old
    other.replace(file)
    assert content(file) == "two"
    file.unlink()
    assert content(file) is None
    assert content(file / "below") is None
    assert len(read) == 2
