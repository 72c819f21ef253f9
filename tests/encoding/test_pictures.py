"""Prompts with pictures give what the checkpoint's own processor gives."""

import pytest
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText

from smmd_bench.encoding.data import expand, pad_rows
from smmd_bench.encoding.prompts import encode_image_prompts, expanded_lengths
from smmd_bench.models.tokenizers import load_processor
from tests.conftest import expect_user_error

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


def process(processor, texts, pictures, **options):
    """The processor's own output, of pictures before texts."""
    image = processor.image_token
    if image == "<|image_pad|>":
        image = f"<|vision_start|>{image}<|vision_end|>"
    # it writes the first token itself
    mllama = type(processor).__name__ == "MllamaProcessor"
    return processor(
        text=[image + text for text in texts],
        images=[[Image.open(path)] for path in pictures],
        return_tensors="pt",
        add_special_tokens=not mllama,
        **options,
    )


def assert_same(row, expected):
    torch.testing.assert_close(dict(row), dict(expected), rtol=0, atol=0)


def test_a_row_is_the_processors_own_and_its_length_is_known_from_the_header(
    processor, pictures
):
    (ids,) = encode_image_prompts(processor, [TEXT], [1])
    assert ids.count(processor.image_token_id) == 1
    for path in pictures:
        row = expand(processor, ids, [path])
        assert_same(row, process(processor, [TEXT], [path]))
        assert expanded_lengths(processor, [ids], [[path]]) == [
            row["input_ids"].shape[1]
        ]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_padded_batch_is_the_processors_own(processor, pictures, side):
    texts = [TEXT, "Time?", "The hour, please:", ""]
    prompts = encode_image_prompts(processor, texts, [1] * 4)
    pairs = zip(prompts, pictures, strict=True)
    rows = [expand(processor, ids, [path]) for ids, path in pairs]
    batch = pad_rows(rows, processor.tokenizer.pad_token_id, side)
    expected = process(processor, texts, pictures, padding=True, padding_side=side)
    # theirs begins at the row's first column on the right
    if "cross_attention_mask" in expected:
        lengths = expected["attention_mask"].sum(1)
        ours = batch.pop("cross_attention_mask")
        assert torch.equal(ours.amax((2, 3)).sum(1), lengths)
        del expected["cross_attention_mask"]

    assert_same(batch, expected)


@torch.no_grad()
def test_a_batch_gives_the_logits_of_its_rows(folder, processor, pictures):
    """Of one picture, of two, and of none, but for Mllama: its model lets such a row of a mixed
    batch attend to padding."""
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    images = [pictures[:1], pictures[1:3]]
    if model.config.model_type != "mllama":
        images.append([])

    rows = []
    for paths in images:
        (ids,) = encode_image_prompts(processor, [TEXT], [len(paths)])
        rows.append(expand(processor, ids, paths))
    alone = [model(**row).logits[0, -1] for row in rows]

    for side in ("left", "right"):
        batch = pad_rows(rows, processor.tokenizer.pad_token_id, side)
        logits = model(**batch).logits
        for row, attended, expected in zip(
            logits, batch["attention_mask"], alone, strict=True
        ):
            unpadded = row[attended.bool()]
            torch.testing.assert_close(unpadded[-1], expected, rtol=1e-4, atol=1e-3)


@torch.no_grad()
def test_the_picture_moves_the_logits(folder, processor, pictures, tmp_path):
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    blank = tmp_path / "blank.png"
    Image.new("RGB", SIZES[0], "white").save(blank)
    (ids,) = encode_image_prompts(processor, [TEXT], [1])
    logits = [
        model(**expand(processor, ids, [path])).logits for path in (pictures[0], blank)
    ]
    assert (logits[0] - logits[1])[0, -1].abs().max() > 0.5


def test_chats_have_the_picture_in_the_users_turn(processor, pictures):
    (ids,) = encode_image_prompts(processor, [f" {TEXT} "], [1], chat=True)
    text = processor.tokenizer.decode(ids)
    assert ids.count(processor.image_token_id) == 1
    place = text.index(TEXT)
    assert text.index(processor.image_token) < place < len(text) - len(TEXT)

    turn = {
        "role": "user",
        "content": [{"type": "image"}, {"type": "text", "text": TEXT}],
    }
    expected = processor(
        text=[processor.apply_chat_template([turn], add_generation_prompt=True)],
        images=[[Image.open(pictures[0])]],
        add_special_tokens=False,
        return_tensors="pt",
    )
    row = expand(processor, ids, pictures[:1])
    assert torch.equal(row["input_ids"], expected["input_ids"])


@pytest.mark.parametrize("chat", [False, True])
def test_a_placeholder_in_a_text_is_refused_by_the_examples_name(processor, chat):
    texts = [TEXT, f"What is {processor.image_token}?"]
    with expect_user_error(r"^Example b has 2 placeholders .* for 1 images"):
        encode_image_prompts(processor, texts, [1, 1], chat=chat, uids=["a", "b"])
    with expect_user_error(r"^Prompt 1 has 1 placeholders .* for 0 images"):
        encode_image_prompts(processor, texts, [1, 0], chat=chat)
