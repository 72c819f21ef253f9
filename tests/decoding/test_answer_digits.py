"""Which tokens of a target are of its final answer, by tokenizers of several kinds."""

import re
from fractions import Fraction

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from smmd_bench.contracts import Answer, Example
from smmd_bench.decoding.probe import answer_digits
from smmd_bench.encoding.prompts import encode_targets

from ..conftest import TOKENIZERS

SOME = Answer(Fraction(1))
RATIONALE = " Half of 96 is 48.\n9 more are 57.\n####"


def digit():
    return AutoTokenizer.from_pretrained(TOKENIZERS / "digit")


def triple():
    return AutoTokenizer.from_pretrained(TOKENIZERS / "triple")


def rewriting():
    """A sentencepiece-like tokenizer: "½" is rewritten as "1⁄2", spaces are markers."""
    characters = sorted(
        set("▁\n#$,.:-⁄0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    )
    vocabulary = {token: at for at, token in enumerate(["<unk>", "</s>", *characters])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")


KINDS = (digit, triple, rewriting)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def tokenizer(request):
    return request.param()


def of_answer(tokenizer, target, start, answer=SOME, *, chat=False):
    """The digit tokens of the answer, each with the number of its first digit."""
    (ids,) = encode_targets(tokenizer, [target], chat=chat)
    example = Example("a", "?", target, answer, answer_start=start)
    (places,) = answer_digits(tokenizer, [example], [ids])

    # The last token is that of the end.
    *tokens, _ = zip(places, ids, strict=True)
    for place, token in tokens:
        text = tokenizer.decode([token])
        has_digit = re.search("[0-9]", text)
        if has_digit and place >= 0:
            yield place, text.strip()


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    ("answer", "digits"),
    [(" 7", "7"), (" -12", "12"), (" $1,234", "1234"), (" 0.25", "025"), (" 3/4", "34"),
     (" 10:05", "1005"), (" none", "")],
)  # fmt: skip
def test_only_digits_after_the_rationale_are_of_the_answer(
    answer, digits, chat, tokenizer
):
    tokens = list(of_answer(tokenizer, RATIONALE + answer, len(RATIONALE), chat=chat))
    assert "".join(text for _, text in tokens) == digits
    assert [digits[place] for place, _ in tokens] == [text[0] for _, text in tokens]


def test_a_target_without_a_rationale_is_all_answer_and_one_without_an_answer_none(
    tokenizer,
):
    assert "".join(text for _, text in of_answer(tokenizer, " 305", 0)) == "305"
    assert list(of_answer(tokenizer, " Ida has 3 hens.", 0, None)) == []


def test_digits_that_the_tokenizer_makes_of_a_rationale_move_nothing(tokenizer):
    rationale = " ½ of ٣６ and ² are 9.\n####"
    places, texts = zip(
        *of_answer(tokenizer, rationale + " 18", len(rationale)), strict=True
    )
    assert places[0] == 0
    assert "".join(texts) == "18"
