"""The numeric vocabulary of a tokenizer, and numbers read from text."""

import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from smmd_bench.contracts import first_number, last_number, parse_number
from smmd_bench.encoding.numbers import numeric_vocabulary
from smmd_bench.errors import UserError

TOKENIZERS = Path(__file__).parents[1] / "data" / "tokenizers"
NOT_NUMERIC = ["٣", "１", "inf", "nan", "1e5", "007"]


def load(name):
    return AutoTokenizer.from_pretrained(TOKENIZERS / name)


def bpe(vocabulary, merges=(), pre_tokenizer=None, decoder=None, **options):
    tokenizer = Tokenizer(
        models.BPE({token: i for i, token in enumerate(vocabulary)}, list(merges), **options)
    )
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        tokenizer.decoder = decoder
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def spellings(tokenizer, vocabulary):
    return tokenizer.convert_ids_to_tokens(vocabulary.token_ids.tolist())


@pytest.fixture(scope="module")
def tekken():
    """Mistral's tokenizer, through the three methods that `numeric_vocabulary` needs."""
    package = pytest.importorskip("mistral_common", reason="mistral_common comes with vLLM")
    file = Path(package.__file__).parent / "data" / "tekken_240911.json"
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
            return self.tokenizer.decode(ids, special_token_policy=SpecialTokenPolicy.KEEP)

    return Tekken()


class TestIntegerRule:
    def test_a_tokenizer_of_digits_has_ten(self):
        tokenizer = load("digit")
        vocabulary = numeric_vocabulary(tokenizer)
        assert spellings(tokenizer, vocabulary) == list("0123456789")
        assert vocabulary.values.tolist() == list(range(10))
        assert (vocabulary.token_ids.dtype, vocabulary.values.dtype) == (torch.int64, torch.float64)

    def test_a_tokenizer_of_groups_of_three_has_a_thousand(self):
        tokenizer = load("triple")
        vocabulary = numeric_vocabulary(tokenizer)
        assert spellings(tokenizer, vocabulary) == [str(n) for n in range(1000)]
        assert vocabulary.values.tolist() == list(range(1000))

    @pytest.mark.parametrize("spelling", NOT_NUMERIC)
    def test_what_float_accepts_beyond_canonical_integers_is_out(self, spelling):
        tokenizer = load("triple")
        token_id = tokenizer.convert_tokens_to_ids(spelling)
        assert tokenizer.convert_ids_to_tokens(token_id) == spelling
        float(spelling)
        assert token_id not in numeric_vocabulary(tokenizer).token_ids

    def test_numbers_longer_than_any_emitted_token_are_out(self):
        digits = list("0123456789")
        tokenizer = bpe(
            [*digits, "12", "=", " "],
            [("1", "2")],
            pre_tokenizers.Split(Regex("[0-9]"), "isolated"),
        )
        assert tokenizer.encode("12") == [1, 2]
        assert spellings(tokenizer, numeric_vocabulary(tokenizer)) == digits

    def test_sentencepiece_markers_and_bytes_are_out(self):
        digits = list("0123456789")
        marked = [f"▁{d}" for d in digits]
        tokenizer = bpe(
            ["▁", *marked, "=", *(f"<0x{i:02X}>" for i in range(256)), *digits, "a"],
            [("▁", d) for d in digits],
            pre_tokenizers.Metaspace(),
            decoders.Metaspace(),
            byte_fallback=True,
        )
        assert tokenizer.convert_ids_to_tokens(tokenizer.encode("7")) == ["▁7"]
        assert tokenizer.decode(tokenizer.encode("7")) == "7"
        assert spellings(tokenizer, numeric_vocabulary(tokenizer)) == digits

    def test_byte_level_tokens_with_a_space_are_out(self):
        digits = list("0123456789")
        tokenizer = bpe(
            ["Ġ", "=", "a", *(f"Ġ{d}" for d in digits), *digits],
            [("Ġ", d) for d in digits],
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            decoders.ByteLevel(),
        )
        assert tokenizer.convert_ids_to_tokens(tokenizer.encode(" 7")) == ["Ġ7"]
        assert spellings(tokenizer, numeric_vocabulary(tokenizer)) == digits

    def test_tekken_has_ten_where_float_finds_93(self, tekken):
        vocabulary = numeric_vocabulary(tekken)
        assert [tekken.decode([i]) for i in vocabulary.token_ids.tolist()] == list("0123456789")
        assert sum(reads_as_float(tekken.decode([i])) for i in range(len(tekken))) == 93


def reads_as_float(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


class TestFloatRule:
    def test_keeps_finite_ascii_spellings(self):
        tokenizer = load("triple")
        found = spellings(tokenizer, numeric_vocabulary(tokenizer, "float"))
        assert set(found) == {str(n) for n in range(1000)} | {"1e5", "007"}

    def test_equal_values_stand_in_order_of_token_id(self):
        tokenizer = load("triple")
        vocabulary = numeric_vocabulary(tokenizer, "float")
        sevens = vocabulary.token_ids[vocabulary.values == 7].tolist()
        assert sevens == sorted(tokenizer.convert_tokens_to_ids(["7", "007"]))
        assert vocabulary.values.tolist() == sorted(vocabulary.values.tolist())

    def test_underscores_infinities_and_bytes_are_out(self):
        tokenizer = bpe(["7", "1_0", "1e999", "-3", ".5", "<0x37>", "nan"])
        assert numeric_vocabulary(tokenizer, "float").values.tolist() == [-3, 0.5, 7]

    def test_works_over_tekken(self, tekken):
        assert len(numeric_vocabulary(tekken, "float")) == 10


class TestVocabulary:
    def test_index_of_is_the_bijection_and_minus_one_elsewhere(self):
        vocabulary = numeric_vocabulary(load("triple"))
        assert torch.equal(vocabulary.index_of(vocabulary.token_ids), torch.arange(1000))
        labels = torch.tensor([[-100, 0, int(vocabulary.token_ids[42])], [10**6, -1, 5000]])
        assert vocabulary.index_of(labels).tolist() == [[-1, -1, 42], [-1, -1, -1]]

    def test_index_of_does_not_need_token_ids_in_order_of_value(self):
        vocabulary = numeric_vocabulary(bpe(["9", "5", "=", "7"]))
        assert vocabulary.values.tolist() == [5, 7, 9]
        assert vocabulary.index_of(torch.arange(5)).tolist() == [2, 0, -1, 1, -1]

    @pytest.mark.parametrize("rule", ["integer", "float"])
    def test_a_tokenizer_without_numbers_is_the_users_error(self, rule):
        with pytest.raises(UserError, match=f"no numeric token by the rule '{rule}': try the rule"):
            numeric_vocabulary(bpe(["a", "b"]), rule)

    def test_an_unknown_rule_is_the_users_error(self):
        with pytest.raises(UserError, match="Unknown rule 'int'"):
            numeric_vocabulary(load("digit"), "int")


class TestParseNumber:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("-3/2", Fraction(-3, 2)),
            ("1,234", 1234),
            ("1,234,567.5", Fraction(2469135, 2)),
            ("$18.00", 18),
            ("-$18", -18),
            ("$-18", -18),
            ("18.", 18),
            (".5", Fraction(1, 2)),
            ("1.8e1", 18),
            ("1E-3", Fraction(1, 1000)),
            ("\u22125", -5),
            ("+7", 7),
            ("25%", 25),
            ("25 %", 25),
            (r"25\%", 25),
            ("007", 7),
            ("3/-4", Fraction(-3, 4)),
            (r"\frac{3}{4}", Fraction(3, 4)),
            (r"-\dfrac{3}{4}", Fraction(-3, 4)),
            ("  42\n", 42),
        ],
    )
    def test_reads(self, text, value):
        assert parse_number(text) == value

    @pytest.mark.parametrize(
        "text",
        [
            *("", "-", "five", "5 apples", "1,23", "12,34,567", "0,123", "1_000", "1 1/2", "3/0"),
            *("--5", "-$-5", "1/2/3", "1.2.3", "inf", "nan", "٣", "１", "٣/4", "0x10"),
            *("1e999999999", "1e-401", "9" * 401, "9" * 5000, "1e" + "9" * 5000),
        ],
    )
    def test_refuses(self, text):
        assert parse_number(text) is None

    @given(st.integers(-(10**30), 10**30))
    def test_integers_round_trip(self, number):
        assert parse_number(str(number)) == parse_number(f"{number:,}") == number

    @given(st.fractions())
    def test_fractions_round_trip(self, number):
        assert parse_number(f"{number.numerator}/{number.denominator}") == number

    @given(st.decimals(-(10**30), 10**30))
    def test_decimals_round_trip(self, number):
        if abs(number.adjusted()) < 300:
            assert parse_number(f"{number:f}") == parse_number(f"{number:e}") == Fraction(number)

    @given(st.text())
    def test_never_raises(self, text):
        parse_number(text)

    @given(st.text(alphabet="0123456789.,/-+eE$% \u2212\\frac{}x٣"))
    def test_never_raises_on_what_looks_like_numbers(self, text):
        assert parse_number(text) is None or last_number(text) is not None


class TestRunningText:
    @pytest.mark.parametrize(
        ("text", "first", "last"),
        [
            ("He pays $1,234.50 for 3 goats.", Decimal("1234.50"), 3),
            ("It takes 3/4 of an hour", Fraction(3, 4), Fraction(3, 4)),
            ("so 3 / 4", Fraction(3, 4), Fraction(3, 4)),
            ("12 / 4 = 3", 3, 3),
            (r"\boxed{\frac{3}{4}}", Fraction(3, 4), Fraction(3, 4)),
            ("#### -1,234", -1234, -1234),
            ("the answer is 18.", 18, 18),
            ("5%, not 3%", 5, 3),
            ("1,23", 1, 23),
            ("12,345,67", 12, 67),
            ("1, 2, 3", 1, 3),
            ("[1,200]", 1200, 1200),
            ("x-5", 5, 5),
            ("3-5", 3, 5),
            ("(2)-5", 2, 5),
            ("5%-3%", 5, 3),
            ("x = -5", -5, -5),
            ("x=-5", -5, -5),
            ("5 - 3", 5, 3),
            ("5 -3", 5, -3),
            ("答案是-5", -5, -5),
            ("10km in 2h", 10, 2),
            ("x5 = 7", 7, 7),
            ("at 1:05", 1, 5),
            ("**42**", 42, 42),
            ("20/0 is 7", 7, 7),
            ("1e999999999 or 7", 7, 7),
        ],
    )
    def test_reads(self, text, first, last):
        assert (first_number(text), last_number(text)) == (first, last)

    @pytest.mark.parametrize(
        "text",
        [
            *("", "none at all", "x/4", "per km/5", r"\frac{x}{4}", "x5", "GPT4.1", "3.11.2"),
            *("24/12/2024", "5/0", "٣ or １"),
        ],
    )
    def test_finds_none(self, text):
        assert first_number(text) is None
        assert last_number(text) is None

    @given(st.lists(st.fractions(), min_size=1))
    def test_finds_what_stands_between_words(self, numbers):
        text = " and ".join(f"{n.numerator}/{n.denominator}" for n in numbers)
        assert (first_number(text), last_number(text)) == (numbers[0], numbers[-1])

    @given(st.text())
    def test_never_raises(self, text):
        first_number(text)
        last_number(text)

    @pytest.mark.parametrize(
        "part",
        ["1", "1,111", "1,", ",111", "1.", "1/", "1 /", "a_", "a", "-", "$", "1e", r"\frac{1"],
    )
    def test_takes_linear_time(self, part):
        def seconds(length):
            start = time.process_time()
            last_number(part * (length // len(part)))
            return time.process_time() - start

        assert min(seconds(80_000) for _ in range(3)) < 1  # quadratic: minutes
