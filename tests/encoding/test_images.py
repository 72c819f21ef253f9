"""Reading pictures: what is absent or broken is named."""

import pytest
from PIL import Image

from smmd_bench.encoding.images import check_images, image_size, read_image
from tests.conftest import expect_user_error

from ..broken_pictures import torn_png
from ..tiny_vlms import draw_picture


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_what_is_transparent_becomes_white(tmp_path, mode):
    """Black lines on a transparent ground, as charts are saved, would be black on black."""
    image = Image.new("RGBA", (3, 1), (0, 0, 0, 0))
    image.putpixel((1, 0), (0, 0, 0, 255))
    image.putpixel((2, 0), (0, 0, 0, 128))
    image.convert(mode).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png")

    assert [image.getpixel((x, 0)) for x in range(3)] == [
        (v,) * 3 for v in (255, 0, 127)
    ]


def test_a_picture_broken_beyond_its_header_and_a_folder_are_named(tmp_path):
    path = torn_png(tmp_path / "a.png")
    assert image_size(path) == (400, 400)
    for unreadable in (path, tmp_path):
        with expect_user_error(f"The image {unreadable} cannot be read"):
            read_image(unreadable)


def test_all_are_read_once_and_the_first_fault_is_named(tmp_path):
    good, steps = [draw_picture(tmp_path / f"{i}.png", i) for i in range(150)], []
    check_images([*good, *good], lambda *step: steps.append(step))
    assert steps == [("check images", 100, 150), ("check images", 150, 150)]

    good[2].unlink()
    with expect_user_error(f"{good[2]} does not exist"):
        check_images(good)
