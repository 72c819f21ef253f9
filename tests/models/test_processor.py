"""Which checkpoints read pictures, and their processors."""

import shutil

import pytest

from smmd_bench.encoding.prompts import picture_tokens
from smmd_bench.models.tokenizers import load_processor, reads_images
from tests.conftest import expect_user_error

from ..tiny_vlms import ARCHITECTURES


def test_only_a_vision_checkpoint_reads_images(tiny_vlm, tiny_checkpoints, tmp_path):
    assert all(reads_images(tiny_vlm(architecture)) for architecture in ARCHITECTURES)
    assert not reads_images(tiny_checkpoints("digit").base)
    assert not reads_images(tmp_path)
    (tmp_path / "config.json").write_text("[")
    assert not reads_images(tmp_path)


def test_pixel_limits_change_what_a_picture_takes(tiny_vlm, tmp_path):
    folder = tiny_vlm("qwen2_5_vl")
    assert picture_tokens(load_processor(folder), (224, 224)) == 16
    processor = load_processor(folder, max_pixels=56 * 56)
    assert picture_tokens(processor, (224, 224)) == 4
    assert picture_tokens(load_processor(folder, min_pixels=112 * 112), (28, 28)) == 16
    processor.save_pretrained(tmp_path)
    assert picture_tokens(load_processor(tmp_path), (224, 224)) == 4


@pytest.mark.parametrize("architecture", ["mistral3", "mllama"])
def test_limits_that_a_processor_does_not_have_are_refused(tiny_vlm, architecture):
    with expect_user_error("takes no min_pixels or max_pixels: leave them out"):
        load_processor(tiny_vlm(architecture), max_pixels=3136)


def test_a_checkpoint_without_a_processor_is_refused(
    tiny_vlm, tiny_checkpoints, tmp_path
):
    folder = shutil.copytree(tiny_vlm("qwen2_5_vl"), tmp_path / "vlm")
    (folder / "processor_config.json").unlink()
    for broken in (folder, tiny_checkpoints("digit").base, tmp_path):
        with expect_user_error("has no processor of images and text") as error:
            load_processor(broken)
        assert error.match(str(broken))
