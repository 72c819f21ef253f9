"""Reading pictures: what is absent or broken is named."""

import pytest
from PIL import Image

from smmd_bench.encoding.images import check_images, image_size, read_image
from smmd_bench.errors import UserError

from ..broken_pictures import torn_png
from ..tiny_vlms import draw_picture


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1", "RGB"])
def test_every_picture_becomes_rgb(tmp_path, mode):
    Image.new(mode, (5, 3)).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png")
    assert (image.mode, image.size) == ("RGB", (5, 3))
    assert image_size(tmp_path / "a.png") == (5, 3)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB"])
def test_what_is_transparent_becomes_white(tmp_path, mode):
    """Black lines on a transparent ground, as charts are saved, would be black on black."""
    expected, options = [255, 0, 0, 255], {}
    if mode in ("RGBA", "LA"):
        image, expected[2] = Image.new("RGBA", (4, 1), (0, 0, 0, 0)), 127
        image.putpixel((1, 0), (0, 0, 0, 255))
        image.putpixel((2, 0), (0, 0, 0, 128))
        image = image.convert(mode)
    else:
        ground, black = {"P": (0, 1), "RGB": ((9, 9, 9), (0, 0, 0))}[mode]
        image = Image.new(mode, (4, 1), ground)
        if mode == "P":
            image.putpalette([9, 9, 9, 0, 0, 0])
        for x in (1, 2):
            image.putpixel((x, 0), black)
        options = {"transparency": b"\x00\xff" if mode == "P" else ground}
    image.save(tmp_path / "a.png", **options)
    found = read_image(tmp_path / "a.png")
    assert [found.getpixel((x, 0)) for x in range(4)] == [(value,) * 3 for value in expected]


@pytest.mark.parametrize("content", [b"", b"text", "half", None])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_a_broken_and_an_absent_picture_are_named(tmp_path, content, suffix):
    path = draw_picture(tmp_path / f"a.{suffix}", 0, (200, 200))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] if content == "half" else content or b"")
    said = f"The image {path} cannot be read .*copy it again"
    if content is None:
        path.unlink()
        said = f"The image {path} does not exist: put it"
        with pytest.raises(UserError, match=said):
            image_size(path)
    with pytest.raises(UserError, match=said) as error:
        read_image(path)
    assert "\n" not in str(error.value)


def test_a_picture_broken_beyond_its_header_and_a_folder_are_named(tmp_path):
    path = torn_png(tmp_path / "a.png")
    assert image_size(path) == (400, 400)
    for unreadable in (path, tmp_path):
        with pytest.raises(UserError, match=f"The image {unreadable} cannot be read .*copy it ag"):
            read_image(unreadable)


def test_all_are_read_once_and_the_first_few_faults_are_named(tmp_path):
    good, steps = [draw_picture(tmp_path / f"{i}.png", i) for i in range(150)], []
    check_images([*good, *good], lambda *step: steps.append(step))
    assert steps == [("check images", 100, 150), ("check images", 150, 150)]
    for i in range(2, 7):
        good[i].unlink()
    with pytest.raises(UserError) as error:
        check_images(good)
    text = str(error.value)
    assert text.startswith(f"5 of 150 images cannot be used: The image {good[2]} does not exist; ")
    assert str(good[4]) in text
    assert str(good[5]) not in text
    assert "and 2 more" in text
