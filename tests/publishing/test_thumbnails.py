"""Small copies of pictures; what cannot be read has none."""

import base64
import io

from PIL import Image

from smmd_bench.publishing.thumbnails import LARGEST, thumbnail
from tests.broken_pictures import torn_png


def test_a_large_picture_becomes_small(tmp_path):
    Image.new("RGBA", (800, 400), (0, 0, 0, 0)).save(tmp_path / "a.png")
    uri = thumbnail(str(tmp_path / "a.png"))
    assert uri is not None
    small = Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))
    assert small.size == (LARGEST, LARGEST // 2)
    assert small.getpixel((5, 5)) == (255, 255, 255)


def test_a_broken_or_missing_picture_has_none(tmp_path):
    file = torn_png(tmp_path / "a.png")
    assert thumbnail(str(file)) is None
    for size in (60, 8, 0):
        file.write_bytes(file.read_bytes()[:size])
        assert thumbnail(str(file)) is None
    assert thumbnail(None) is thumbnail(str(tmp_path / "absent.png")) is None
