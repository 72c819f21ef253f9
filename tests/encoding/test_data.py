"""Examples as token ids: what is supervised, what is padded, what is counted and refused."""

import copy

import torch

import smmd_bench as sb
from smmd_bench.contracts import Example, NumericVocabulary
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples, expand
from smmd_bench.encoding.prompts import (
    encode_image_prompts,
    encode_prompts,
    encode_targets,
)
from smmd_bench.models.tokenizers import load_processor
from tests.conftest import expect_user_error

from ..tiny_vlms import each

SUMS = [
    Example(f"{a}", f"{a}+{b}=", str(a + b), None)
    for a, b in ((3, 4), (81, 9), (700, 25))
]


def test_only_the_target_is_supervised_and_it_ends_with_the_stop_token(tiny):
    data = TokenisedExamples(SUMS[:1], tiny.tokenizer, 64)
    (prompt,) = encode_prompts(tiny.tokenizer, [SUMS[0].prompt])
    (target,) = encode_targets(tiny.tokenizer, [SUMS[0].target])

    assert target[-1] == tiny.tokenizer.eos_token_id
    assert data[0]["input_ids"].tolist() == [prompt + target]
    assert data[0]["labels"].tolist() == [[-100] * len(prompt) + target]


def test_padding_is_neither_attended_nor_supervised(tiny):
    data = TokenisedExamples(SUMS, tiny.tokenizer, 64)
    batch = RightPaddingCollator(0)([data[i] for i in range(3)])
    lengths = batch["attention_mask"].sum(1)

    assert lengths.tolist() == data.lengths.tolist()
    assert lengths.min() < lengths.max()
    for row, length in enumerate(lengths):
        assert (batch["labels"][row, length:] == -100).all()


def test_numeric_targets_are_counted(tiny_checkpoints):
    tokenizer = tiny_checkpoints("triple").tokenizer
    vocabulary = sb.numeric_vocabulary(tokenizer)
    targets = ("123", "7", "-1/7", "123007")  # tokens 123; 7; -, 1, /, 7; 123, 0, 0, 7
    data = TokenisedExamples(
        [Example(t, "7=", t, None) for t in targets], tokenizer, 64
    )
    counts = {"tokens": 14, "digit_tokens": 8, "outside": 0, "numeric": 8}

    for spec, covered in {"smmd": 8, "ntil": 6, "ce": 0}.items():
        loss = sb.load_loss(spec).bind(vocabulary)
        assert data.numeric_targets(tokenizer, loss) == {**counts, "covered": covered}

    is_kept = vocabulary.values != 7
    token_ids = vocabulary.token_ids[is_kept]
    without = NumericVocabulary(token_ids, vocabulary.values[is_kept], "test")
    counts = {"tokens": 14, "digit_tokens": 8, "outside": 3, "numeric": 5, "covered": 5}
    assert data.numeric_targets(tokenizer, sb.load_loss("smmd").bind(without)) == counts


def test_a_chat_template_makes_the_prompt_a_users_turn(tiny):
    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.chat_template = (
        "{% for m in messages %}({{ m.content }}){% endfor %}"
        "{% if add_generation_prompt %}={% endif %}"
    )
    data = TokenisedExamples(
        [Example("0", "2+3\n", " 5", None)], tokenizer, 64, chat=True
    )
    prompt = tokenizer.encode("(2+3)=", add_special_tokens=False)
    target = tokenizer.encode("5", add_special_tokens=False)
    target.append(tokenizer.eos_token_id)

    assert data[0]["input_ids"].tolist() == [prompt + target]
    assert data[0]["labels"].tolist() == [[-100] * len(prompt) + target]


def test_what_cannot_be_encoded_is_refused(tiny):
    with expect_user_error(r"Training example 3 has \d+ tokens, more than"):
        TokenisedExamples(SUMS, tiny.tokenizer, 5)
    with expect_user_error("has no chat template: leave out chat_template=true"):
        encode_prompts(tiny.tokenizer, ["2+3"], chat=True)

    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.eos_token = None
    with expect_user_error("has no end-of-sequence token"):
        encode_targets(tokenizer, ["1"])


@each
def test_a_row_is_the_prompt_with_its_picture_and_the_target_alone_is_supervised(
    tiny_vlm, architecture, times
):
    processor = load_processor(tiny_vlm(architecture))
    tokenizer = processor.tokenizer
    data = TokenisedExamples(times, tokenizer, 256, processor=processor)
    for number, example in enumerate(times):
        row = data[number]
        (prompt,) = encode_image_prompts(processor, [example.prompt], [1])
        (target,) = encode_targets(tokenizer, [example.target])
        expected = expand(processor, prompt + target, example.images)
        ids = expected["input_ids"]
        assert torch.equal(row["input_ids"], ids)

        unsupervised = data.lengths[number] - len(target)
        (labels,) = row["labels"]
        assert labels.tolist() == [-100] * unsupervised + target
