"""Prompts with pictures give what the checkpoint's own processor gives."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from smmd_bench.encoding.pictures import expand, pad_rows
from smmd_bench.encoding.prompts import encode_image_prompts, expanded_lengths
from smmd_bench.errors import UserError
from smmd_bench.models.processor import load_processor

from ..tiny_vlms import ARCHITECTURES, draw_picture

TEXT = "What time is it?"
SIZES = [(84, 84), (56, 112), (224, 60), (30, 41)]
each = pytest.mark.parametrize("architecture", ARCHITECTURES)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pictures")
    return [draw_picture(folder / f"{i}.png", i, size) for i, size in enumerate(SIZES)]


def own(processor, texts, pictures, **options):
    """The processor's own output, of pictures before texts."""
    image = getattr(processor, "image_token", None)
    image = f"<|vision_start|>{image}<|vision_end|>" if image == "<|image_pad|>" else image
    mllama = type(processor).__name__ == "MllamaProcessor"  # it writes the first token itself
    return processor(
        text=[image + text for text in texts],
        images=[[Image.open(path)] for path in pictures],
        return_tensors="pt",
        add_special_tokens=not mllama,
        **options,
    )


def same(found, expected):
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert found[key].dtype == value.dtype, key
        assert torch.equal(found[key], value), key


@each
@pytest.mark.parametrize("k", range(len(SIZES)))
def test_is_the_processors_own_output(tiny_vlm, architecture, pictures, k):
    processor = load_processor(tiny_vlm(architecture))
    (ids,) = encode_image_prompts(processor, [TEXT], [1])
    assert ids.count(processor.image_token_id) == 1
    same(expand(processor, ids, pictures[k : k + 1]), own(processor, [TEXT], pictures[k : k + 1]))


@each
def test_length_is_known_from_the_header(tiny_vlm, architecture, pictures):
    processor = load_processor(tiny_vlm(architecture))
    (ids,) = encode_image_prompts(processor, [TEXT], [1])
    for path in pictures:
        length = expand(processor, ids, [path])["input_ids"].shape[1]
        assert expanded_lengths(processor, [ids], [[path]]) == [length]


@each
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_batch_is_the_processors_own(tiny_vlm, architecture, pictures, side):
    processor = load_processor(tiny_vlm(architecture))
    texts = [TEXT, "Time?", "The hour, please:", ""]
    rows = [
        expand(processor, ids, [path])
        for ids, path in zip(encode_image_prompts(processor, texts, [1] * 4), pictures, strict=True)
    ]
    found = pad_rows(rows, processor.tokenizer.pad_token_id, side)
    expected = own(processor, texts, pictures, padding=True, padding_side=side)
    if "cross_attention_mask" in expected:  # theirs begins at the row's first column on the right
        lengths = expected["attention_mask"].sum(1)
        assert torch.equal(found["cross_attention_mask"].amax((2, 3)).sum(1), lengths)
        del found["cross_attention_mask"], expected["cross_attention_mask"]
    same(found, expected)


@each
def test_a_batch_gives_the_logits_of_its_rows(tiny_vlm, model, architecture, pictures):
    """Of one picture, of two, and of none, but for Mllama: its model lets such a row of a mixed
    batch attend to padding."""
    processor = load_processor(tiny_vlm(architecture))
    texts, images = [TEXT, "And which of these?"], [pictures[:1], pictures[1:3]]
    if architecture != "mllama":
        texts, images = [*texts, "How many hours has a day?"], [*images, []]
    prompts = encode_image_prompts(processor, texts, [len(paths) for paths in images])
    rows = [expand(processor, ids, paths) for ids, paths in zip(prompts, images, strict=True)]
    lengths = [row["input_ids"].shape[1] for row in rows]
    for side, last in (("left", [-1] * len(rows)), ("right", [n - 1 for n in lengths])):
        batch = pad_rows(rows, processor.tokenizer.pad_token_id, side)
        with torch.no_grad():
            logits = model(architecture)(**batch).logits
            for i, row in enumerate(rows):
                alone = model(architecture)(**row).logits[0, -1]
                torch.testing.assert_close(logits[i, last[i]], alone, rtol=1e-4, atol=1e-3)


@each
def test_the_picture_moves_the_logits(tiny_vlm, model, architecture, pictures, tmp_path):
    processor = load_processor(tiny_vlm(architecture))
    (ids,) = encode_image_prompts(processor, [TEXT], [1])
    blank = tmp_path / "blank.png"
    Image.new("RGB", SIZES[0], "white").save(blank)
    with torch.no_grad():
        logits = [
            model(architecture)(**expand(processor, ids, [p])).logits[0, -1]
            for p in (pictures[0], blank)
        ]
    assert (logits[0] - logits[1]).abs().max() > 0.5


@each
def test_chats_have_the_picture_in_the_users_turn(tiny_vlm, architecture, pictures):
    processor = load_processor(tiny_vlm(architecture))
    (ids,) = encode_image_prompts(processor, [f" {TEXT} "], [1], chat=True)
    text = processor.tokenizer.decode(ids)
    assert ids.count(processor.image_token_id) == 1
    assert text.index(processor.image_token) < text.index(TEXT) < len(text) - len(TEXT)
    expanded = expand(processor, ids, pictures[:1])["input_ids"]
    expected = processor.apply_chat_template(
        [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": TEXT}]}],
        add_generation_prompt=True,
    )
    mine = processor(
        text=[expected],
        images=[[Image.open(pictures[0])]],
        add_special_tokens=False,
        return_tensors="pt",
    )
    assert torch.equal(expanded, mine["input_ids"])


def test_without_a_chat_template_a_chat_is_refused(tiny_vlm):
    processor = load_processor(tiny_vlm("mistral3"))
    processor.chat_template = processor.tokenizer.chat_template = None
    with pytest.raises(UserError, match="has no chat template"):
        encode_image_prompts(processor, [TEXT], [1], chat=True)


@each
@pytest.mark.parametrize("chat", [False, True])
def test_a_placeholder_in_a_text_is_refused_by_the_examples_name(tiny_vlm, architecture, chat):
    processor = load_processor(tiny_vlm(architecture))
    texts = [TEXT, f"What is {processor.image_token}?"]
    with pytest.raises(UserError, match=r"^Example b has 2 placeholders .* for 1 images: its text"):
        encode_image_prompts(processor, texts, [1, 1], chat=chat, uids=["a", "b"])
    with pytest.raises(UserError, match=r"^Prompt 1 has 1 placeholders .* for 0 images: its text"):
        encode_image_prompts(processor, texts, [1, 0], chat=chat)


def test_a_chat_template_that_leaves_images_out_is_refused(tiny_vlm):
    processor = load_processor(tiny_vlm("mistral3"))
    processor.chat_template = "{{ messages[0]['content'][-1]['text'] }}"
    with pytest.raises(UserError, match=r"^Prompt 0 has 0 placeholders .*the chat template leaves"):
        encode_image_prompts(processor, [TEXT], [1], chat=True)


def test_placeholders_without_pictures_are_refused(tiny_vlm, pictures):
    processor = load_processor(tiny_vlm("mistral3"))
    (ids,) = encode_image_prompts(processor, [TEXT], [2])
    with pytest.raises(ValueError, match="2 placeholders '\\[IMG\\]' for 1 pictures"):
        expand(processor, ids, pictures[:1])
    with pytest.raises(ValueError, match="2 placeholders"):
        expand(processor, ids, [])
