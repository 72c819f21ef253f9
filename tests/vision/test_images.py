"""Reading pictures: what is absent or broken is named."""

from pathlib import Path

import pytest
from PIL import Image

from smmd_bench.errors import UserError
from smmd_bench.vision.images import check_images, image_size, read_image

from ..tiny_vlms import draw_picture


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1", "RGB"])
def test_every_picture_becomes_rgb(tmp_path: Path, mode: str) -> None:
    Image.new(mode, (5, 3)).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png")
    assert (image.mode, image.size) == ("RGB", (5, 3))
    assert image_size(tmp_path / "a.png") == (5, 3)


@pytest.mark.parametrize("read", [read_image, image_size])
def test_an_absent_picture_is_named(tmp_path: Path, read) -> None:
    with pytest.raises(UserError, match=f"The image {tmp_path / 'no.jpg'} does not exist: put it"):
        read(tmp_path / "no.jpg")


@pytest.mark.parametrize("content", [b"", b"text", "half"])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_a_broken_picture_is_named(tmp_path: Path, content, suffix: str) -> None:
    path = draw_picture(tmp_path / f"a.{suffix}", 0, (200, 200))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] if content == "half" else content)
    with pytest.raises(UserError, match=f"The image {path} cannot be read .*copy it again") as e:
        read_image(path)
    assert "\n" not in str(e.value)


def test_a_folder_is_no_picture(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_image(tmp_path)


def test_all_are_read_once_and_the_first_few_faults_are_named(tmp_path: Path) -> None:
    good = [draw_picture(tmp_path / f"{i}.png", i) for i in range(150)]
    steps = []
    sizes = check_images([*good, *good], lambda *step: steps.append(step))
    assert sizes == dict.fromkeys(good, (84, 84))
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
