"""Prompts with pictures give what the checkpoint's own processor gives."""

import pytest
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText

from smmd_bench.encoding.data import expand, pad_rows
from smmd_bench.encoding.prompts import encode_image_prompts, expanded_lengths
from smmd_bench.errors import UserError
from smmd_bench.models.processor import load_processor

from ..tiny_vlms import ARCHITECTURES, draw_picture

TEXT = "What time is it?"
SIZES = [(84, 84), (56, 112), (224, 60), (30, 41)]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    return [draw_picture(folder / f"{i}.png", i, size) for i, size in enumerate(SIZES)]


@pytest.fixture(params=ARCHITECTURES)
def folder(request, tiny_vlm):
    return tiny_vlm(request.param)


@pytest.fixture
def processor(folder):
    return load_processor(folder)


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


def test_a_row_is_the_processors_own_and_its_length_is_known_from_the_header(processor, pictures):
    (ids,) = encode_image_prompts(processor, [TEXT], [1])
    assert ids.count(processor.image_token_id) == 1
    for path in pictures:
        row = expand(processor, ids, [path])
        same(row, own(processor, [TEXT], [path]))
        assert expanded_lengths(processor, [ids], [[path]]) == [row["input_ids"].shape[1]]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_batch_is_the_processors_own(processor, pictures, side):
    texts = [TEXT, "Time?", "The hour, please:", ""]
    prompts = encode_image_prompts(processor, texts, [1] * 4)
    rows = [expand(processor, ids, [path]) for ids, path in zip(prompts, pictures, strict=True)]
    result = pad_rows(rows, processor.tokenizer.pad_token_id, side)
    expected = own(processor, texts, pictures, padding=True, padding_side=side)
    if "cross_attention_mask" in expected:  # theirs begins at the row's first column on the right
        lengths = expected["attention_mask"].sum(1)
        assert torch.equal(result["cross_attention_mask"].amax((2, 3)).sum(1), lengths)
        del result["cross_attention_mask"], expected["cross_attention_mask"]
    same(result, expected)


@torch.no_grad()
def test_a_batch_gives_the_logits_of_its_rows_and_the_picture_moves_them(
    folder, processor, pictures, tmp_path
):
    """Of one picture, of two, and of none, but for Mllama: its model lets such a row of a mixed
    batch attend to padding."""
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    texts = [TEXT, "And which of these?"]
    images = [pictures[:1], pictures[1:3]]
    if model.config.model_type != "mllama":
        texts.append("How many hours has a day?")
        images.append([])
    prompts = encode_image_prompts(processor, texts, [len(paths) for paths in images])
    rows = [expand(processor, ids, paths) for ids, paths in zip(prompts, images, strict=True)]
    alone = [model(**row).logits[0, -1] for row in rows]

    padding = processor.tokenizer.pad_token_id
    left_padded = model(**pad_rows(rows, padding, "left")).logits
    right_padded = model(**pad_rows(rows, padding, "right")).logits

    for i, expected in enumerate(alone):
        last = rows[i]["input_ids"].shape[1] - 1
        torch.testing.assert_close(left_padded[i, -1], expected, rtol=1e-4, atol=1e-3)
        torch.testing.assert_close(right_padded[i, last], expected, rtol=1e-4, atol=1e-3)

    blank = tmp_path / "blank.png"
    Image.new("RGB", SIZES[0], "white").save(blank)
    row = expand(processor, prompts[0], [blank])
    logits = model(**row).logits[0, -1]
    assert (alone[0] - logits).abs().max() > 0.5


def test_chats_have_the_picture_in_the_users_turn(processor, pictures):
    (ids,) = encode_image_prompts(processor, [f" {TEXT} "], [1], chat=True)
    text = processor.tokenizer.decode(ids)
    assert ids.count(processor.image_token_id) == 1
    assert text.index(processor.image_token) < text.index(TEXT) < len(text) - len(TEXT)
    turn = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": TEXT}]}
    expected = processor(
        text=[processor.apply_chat_template([turn], add_generation_prompt=True)],
        images=[[Image.open(pictures[0])]],
        add_special_tokens=False,
        return_tensors="pt",
    )
    result = expand(processor, ids, pictures[:1])
    assert torch.equal(result["input_ids"], expected["input_ids"])


@pytest.mark.parametrize("chat", [False, True])
def test_a_placeholder_in_a_text_is_refused_by_the_examples_name(processor, chat):
    texts = [TEXT, f"What is {processor.image_token}?"]
    with pytest.raises(UserError, match=r"^Example b has 2 placeholders .* for 1 images"):
        encode_image_prompts(processor, texts, [1, 1], chat=chat, uids=["a", "b"])
    with pytest.raises(UserError, match=r"^Prompt 1 has 1 placeholders .* for 0 images"):
        encode_image_prompts(processor, texts, [1, 0], chat=chat)
