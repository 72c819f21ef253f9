"""The numeric vocabulary of a tokenizer."""

from pathlib import Path

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from smmd_bench.encoding.numbers import numeric_vocabulary

from ..conftest import TOKENIZERS, expect_user_error

DIGITS = list("0123456789")


def load(name):
    return AutoTokenizer.from_pretrained(TOKENIZERS / name)


def bpe(vocabulary, merges=(), pre_tokenizer=None, decoder=None, **options):
    vocabulary = {token: i for i, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.BPE(vocabulary, list(merges), **options))
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        tokenizer.decoder = decoder
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def spellings(tokenizer, rule="integer"):
    ids = numeric_vocabulary(tokenizer, rule).token_ids
    return tokenizer.convert_ids_to_tokens(ids.tolist())


@pytest.fixture(scope="module")
def tekken():
    """Mistral's tokenizer, through the three methods that `numeric_vocabulary` needs."""
    package = pytest.importorskip(
        "mistral_common", reason="mistral_common comes with vLLM"
    )
    file = Path(package.__file__).parent / "data/tekken_240911.json"
    if not file.is_file():
        pytest.skip(f"this mistral_common ships no {file.name}")
    from mistral_common.tokens.tokenizers.tekken import SpecialTokenPolicy, Tekkenizer

    class Tekken:
        def __init__(self):
            self.tokenizer = Tekkenizer.from_file(file)

        def __len__(self):
            return self.tokenizer.n_words

        def encode(self, text, add_special_tokens):
            return self.tokenizer.encode(text, bos=add_special_tokens, eos=False)

        def decode(self, ids):
            return self.tokenizer.decode(
                ids, special_token_policy=SpecialTokenPolicy.KEEP
            )

    return Tekken()


@pytest.mark.parametrize(("name", "n"), [("digit", 10), ("triple", 1000)])
def test_the_integers_that_a_tokenizer_has(name, n):
    tokenizer = load(name)
    vocabulary = numeric_vocabulary(tokenizer)
    assert spellings(tokenizer) == [str(value) for value in range(n)]
    assert vocabulary.values.tolist() == list(range(n))
    assert vocabulary.token_ids.dtype == torch.int64
    assert vocabulary.values.dtype == torch.float64


def test_numbers_longer_than_any_emitted_token_are_out():
    split = pre_tokenizers.Split(Regex("[0-9]"), "isolated")
    tokenizer = bpe([*DIGITS, "12", "=", " "], [("1", "2")], split)
    assert tokenizer.encode("12") == [1, 2]
    assert spellings(tokenizer) == DIGITS


def marked(marker, more_tokens, *parts, **options):
    """A tokenizer with digits, and digits behind the marker of a space."""
    vocabulary = [
        marker,
        *(f"{marker}{d}" for d in DIGITS),
        "=",
        *more_tokens,
        *DIGITS,
        "a",
    ]
    return bpe(vocabulary, [(marker, d) for d in DIGITS], *parts, **options)


def test_tokens_with_a_space_and_bytes_are_out():
    every_byte = [f"<0x{i:02X}>" for i in range(256)]
    parts = (pre_tokenizers.Metaspace(), decoders.Metaspace())
    sentencepiece = marked("▁", every_byte, *parts, byte_fallback=True)

    assert sentencepiece.tokenize("7") == ["▁7"]

    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    of_bytes = marked("Ġ", [], splitter, decoders.ByteLevel())
    assert of_bytes.tokenize(" 7") == ["Ġ7"]
    assert spellings(sentencepiece) == spellings(of_bytes) == DIGITS


@pytest.mark.parametrize("rule", ["integer", "float"])
def test_tekken_has_ten_where_float_finds_93(tekken, rule):
    ids = numeric_vocabulary(tekken, rule).token_ids.tolist()
    assert [tekken.decode([i]) for i in ids] == DIGITS
    assert sum(reads_as_float(tekken.decode([i])) for i in range(len(tekken))) == 93


def reads_as_float(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_the_float_rule_keeps_finite_ascii_spellings_in_order():
    tokenizer = load("triple")
    assert set(spellings(tokenizer, "float")) == {*map(str, range(1000)), "1e5", "007"}

    vocabulary = numeric_vocabulary(tokenizer, "float")
    values = vocabulary.values
    assert values.tolist() == sorted(values.tolist())

    sevens = vocabulary.token_ids[values == 7]
    expected = tokenizer.convert_tokens_to_ids(["7", "007"])
    assert sevens.tolist() == sorted(expected)


def test_the_float_rule_leaves_out_what_no_number_spells():
    few = bpe(["7", "1_0", "1e999", "-3", ".5", "<0x37>", "nan"])
    assert numeric_vocabulary(few, "float").values.tolist() == [-3, 0.5, 7]
    with expect_user_error("Unknown rule 'flot': did you mean float"):
        numeric_vocabulary(few, "flot")


def test_index_of_is_the_bijection_and_minus_one_elsewhere():
    vocabulary = numeric_vocabulary(load("triple"))
    assert torch.equal(vocabulary.index_of(vocabulary.token_ids), torch.arange(1000))

    labels = torch.tensor([[-100, 0, int(vocabulary.token_ids[42])], [10**6, -1, 5000]])
    assert vocabulary.index_of(labels).tolist() == [[-1, -1, 42], [-1, -1, -1]]

    vocabulary = numeric_vocabulary(bpe(["9", "5", "=", "7"]))  # ids in another order
    assert vocabulary.values.tolist() == [5, 7, 9]
    assert vocabulary.index_of(torch.arange(5)).tolist() == [2, 0, -1, 1, -1]
