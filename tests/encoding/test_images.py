"""Reading pictures: what is absent or broken is named."""

import pytest
from PIL import Image

from smmd_bench.encoding.images import check_images, image_size, read_image
from smmd_bench.errors import UserError

from ..broken_pictures import torn_png
from ..tiny_vlms import draw_picture


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


def test_a_picture_broken_beyond_its_header_and_a_folder_are_named(tmp_path):
    path = torn_png(tmp_path / "a.png")
    assert image_size(path) == (400, 400)
    for unreadable in (path, tmp_path):
        with pytest.raises(UserError, match=f"The image {unreadable} cannot be read"):
            read_image(unreadable)


def test_all_are_read_once_and_the_first_few_faults_are_named(tmp_path):
    good, steps = [draw_picture(tmp_path / f"{i}.png", i) for i in range(150)], []
    check_images([*good, *good], lambda *step: steps.append(step))
    assert steps == [("check images", 100, 150), ("check images", 150, 150)]
    good[2].unlink()
    good[5].unlink()
    with pytest.raises(UserError, match=f"2 of 150 images .* {good[2]} does not exist"):
        check_images(good)
