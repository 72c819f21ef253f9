"""Texts come back from their token ids, or the run is refused before it trains."""

from datetime import datetime

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerFast

from smmd_bench.contracts import Example
from smmd_bench.encoding import prompts
from smmd_bench.encoding.numbers import numeric_vocabulary
from smmd_bench.encoding.prompts import (
    decode_texts,
    encode_prompts,
    encode_targets,
    require_round_trip,
)
from smmd_bench.models.tokenizers import load_tokenizer

from ..conftest import TOKENIZERS, expect_user_error

TEXT = "What is 123 + 45?\nAnswer: "


def byte_level(name="triple"):
    return AutoTokenizer.from_pretrained(TOKENIZERS / name)


def check(tokenizer, rows=10**6, chat=False):
    examples = [Example("e1", TEXT, "168", None)]
    require_round_trip(
        examples, tokenizer, None, chat=chat, embeddings=rows, model="./model"
    )


def of_words(*, normalizer=None, spaces="keep"):
    """A tokenizer of words and single characters, as of T5 or BERT, which change what they read."""
    words = [
        "<eos>",
        "<unk>",
        *"0123456789?+:\n ",
        "▁",
        "what",
        "is",
        "answer",
        "What",
        "Answer",
    ]
    tokenizer = Tokenizer(
        models.WordLevel({word: at for at, word in enumerate(words)}, "<unk>")
    )
    split = pre_tokenizers.Split(Regex(r"[A-Za-z]+|[\s\S]"), "isolated")
    tokenizer.pre_tokenizer = {"keep": split, "lose": pre_tokenizers.Whitespace()}[
        spaces
    ]
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<eos>",
        pad_token="<eos>",
        unk_token="<unk>",
    )


@pytest.mark.parametrize("name", ["digit", "triple"])
def test_texts_that_come_back_pass(name):
    check(byte_level(name))
    check(of_words())


def test_a_tokenizer_that_changes_the_text_is_refused():
    changes = ({"spaces": "lose"}, {"normalizer": normalizers.Lowercase()},
               {"normalizer": normalizers.Replace("1", "7")})  # fmt: skip
    for change in changes:
        with expect_user_error("does not give back the prompt of example e1"):
            check(of_words(**change))


def test_ids_beyond_the_embedding_are_refused():
    tokenizer = byte_level()
    with expect_user_error(r"embedding has 20 rows"):
        check(tokenizer, rows=20)

    tokenizer.add_special_tokens({"pad_token": "<new>"})
    with expect_user_error(rf"gives the id {len(tokenizer) - 1}"):
        check(tokenizer, rows=len(tokenizer) - 1)

    check(tokenizer, rows=len(tokenizer))


def test_digits_among_the_special_tokens_stay_in_completions():
    tokenizer = byte_level("digit")
    tokenizer.add_special_tokens({"extra_special_tokens": [*"0123456789"]})
    ((*ids, stop),) = encode_targets(tokenizer, ["8/15"])

    assert tokenizer.decode(ids, skip_special_tokens=True) == "/"

    begin, pad = tokenizer.bos_token_id, tokenizer.pad_token_id
    assert decode_texts(tokenizer, [[begin, *ids, stop, pad]], [stop]) == ["8/15"]
    assert decode_texts(tokenizer, [], [stop]) == []


def test_the_files_of_a_tokenizer_count_not_the_class_of_the_architecture(tmp_path):
    byte_level().save_pretrained(tmp_path)
    AutoConfig.for_model("qwen2").save_pretrained(tmp_path)
    lossy = AutoTokenizer.from_pretrained(tmp_path)

    # of transformers 5.19
    assert lossy.decode(lossy.encode("What is 123?")) == "Whatis123?"

    tokenizer = load_tokenizer(tmp_path)
    assert len(numeric_vocabulary(tokenizer)) == 1000

    check(tokenizer)
    with expect_user_error("prompt of example e1"):
        check(lossy)


def test_no_prompt_depends_on_the_day(monkeypatch):
    tokenizer = byte_level()
    tokenizer.chat_template = (
        "{{ strftime_now('%d %b %Y') }} {{ messages[0].content }}{{ '\\nA: ' }}"
    )
    dated = encode_prompts(tokenizer, ["5 + 5"], chat=True)

    assert decode_texts(tokenizer, dated, [])[0].startswith("26 Jul 2024 5 + 5")
    assert datetime(2024, 7, 26) == prompts.TODAY

    check(tokenizer, chat=True)
