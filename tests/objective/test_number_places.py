"""The numbers of real token ids against those that a regular expression reads in the text."""

import re
from fractions import Fraction
from functools import cache

import pandas as pd
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from transformers import AutoTokenizer

import smmd_bench as sb
from smmd_bench.encoding.numbers import numeric_vocabulary
from smmd_bench.objective.supervised import supervised_targets
from smmd_bench.plugin_system.registry import load_loss

from ..conftest import TOKENIZERS

CHAIN = re.compile(r"(-?)((?:(?:^|(?<=[- ]))\.)?\d+(?:\.\d+)*)")


@cache
def load(name):
    """A tokenizer, and a loss bound to its numeric vocabulary."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / name)
    return tokenizer, load_loss("smmd").bind(numeric_vocabulary(tokenizer))


def places(name, *texts):
    """The numeric places of texts, each a row of labels, padded."""
    tokenizer, loss = load(name)
    rows = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    width = max(map(len, rows))
    labels = torch.tensor([row + [-100] * (width - len(row)) for row in rows])
    return supervised_targets(loss, labels).places, loss


def numbers(name, *texts):
    """What the numbers of these texts add up to, by their places."""
    numeric, loss = places(name, *texts)
    return add_up(numeric, loss.vocabulary)


def add_up(numeric, vocabulary):
    values = vocabulary.values[numeric.target] * numeric.place
    sums = pd.Series(values).groupby(numeric.number.numpy()).sum()
    assert sums.index.tolist() == list(range(len(sums)))
    return sums.tolist()


def literal(text):
    """The numbers of a text: several points part it, a hyphen after a digit is no sign, and a point
    begins a number where the text begins, and after a blank or a hyphen."""
    numbers = []
    for match in CHAIN.finditer(text):
        spelled = [match[2]]
        if match[2].count(".") > 1:
            spelled = list(filter(None, match[2].split(".")))
        first, *more = map(Fraction, spelled)
        text_before = text[: match.start()]
        if match[1] and not text_before[-1:].isdigit():
            first = -first
        numbers += [first, *more]
    return numbers


@pytest.mark.parametrize("name", ["digit", "triple"])
@given(st.lists(st.text("0123456789.-, a", max_size=12), min_size=1, max_size=3))
@example(["x = -12.5, 3,456 v3.11.2 7--8", "-1234567.8901", ".5 5. ..5 -.5 0.05"])
@example(["12", "34"])
def test_places_add_up_to_the_numbers_of_the_text(name, texts):
    if any(texts):
        wanted = [number for text in texts for number in literal(text)]
        assert numbers(name, *texts) == pytest.approx(
            [float(x) for x in wanted], rel=1e-12
        )


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("digit", [1e4, 1e3, 100, 10, 1, 0.1, 0.01]),
        ("triple", [100, 1, 0.01]),  # 123, 45, 67
    ],
)
def test_the_place_of_a_token_counts_the_digits_after_it(name, place):
    numeric, _ = places(name, "12345.67")
    assert numeric.place.tolist() == pytest.approx(place)
    assert set(numeric.number.tolist()) == {0}


@pytest.mark.parametrize(
    ("text", "number", "place", "whole"),
    [
        ("10005", [0, 0], [1e4, 1], False),  # 1, 000, 5
        ("105", [0], [100], False),
        ("3.05", [0], [1], False),
        ("x05 7", [0], [1], True),
        ("12345", [0, 0], [100, 1], True),
    ],
)
def test_digits_outside_the_vocabulary_are_a_part_of_their_number(
    text, number, place, whole
):
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / "triple")
    tokenizer.add_tokens(["05", "000"])
    vocabulary = numeric_vocabulary(tokenizer)

    assert len(vocabulary) == 1000
    assert tokenizer.convert_tokens_to_ids("05") in vocabulary.others[2]

    labels = torch.tensor([tokenizer.encode(text, add_special_tokens=False)])
    loss = load_loss("raft").bind(vocabulary)
    targets = supervised_targets(loss, labels)
    assert targets.places.number.tolist() == number
    assert targets.places.place.tolist() == place
    assert targets.places.whole.tolist() == [whole] * len(number)

    with_decimals = load_loss("nl_ntl[decimals=true]").bind(vocabulary)
    numbers = sb.count_units(with_decimals, labels)
    assert numbers == whole * (1 + max(number))
    # of three digits at most
    assert targets.units == (numbers if text != "12345" else 0)


@pytest.mark.parametrize(
    ("text", "values", "whole"),
    [
        (" 1080", [80], [False]),  # Ġ10 80
        ("10005", [5], [False]),  # 1000 5
        (" 0.75", [0.75], [False]),  # Ġ0 . 75
        ("5 7", [5], [True]),  # 5 Ġ7
        ("3x80 80", [3, 80], [True, True]),
        ("3-5", [3, 5], [True, True]),
        ("5)80 7", [80], [True]),  # "5)" is a token
        ("35)80", [30, 80], [False, True]),
    ],
)
def test_digits_within_larger_tokens_are_seen(text, values, whole):
    """Tokens as of GPT-2: spaces are a part of them, and numbers are merged to any length."""
    words = "10 80 75 1000 5) \u0120 \u01200 \u012010 \u01205 \u01207 \u012080"
    tokenizer = word_tokenizer([*"0123456789.-x() a=", *words.split(" ")])
    vocabulary = numeric_vocabulary(tokenizer)

    assert {80, 75, 5} < {*vocabulary.values.tolist()}

    labels = torch.tensor([tokenizer.encode(text, add_special_tokens=False)])
    loss = load_loss("raft").bind(vocabulary)
    numeric = supervised_targets(loss, labels).places
    assert add_up(numeric, vocabulary) == values

    is_whole = dict(zip(numeric.number.tolist(), numeric.whole.tolist(), strict=True))
    assert [*is_whole.values()] == whole

    of_numbers = load_loss("nl_ntl[decimals=true]").bind(vocabulary)
    assert sb.count_units(of_numbers, labels) == sum(whole)


def word_tokenizer(vocabulary):
    """A tokenizer that takes the longest token of the vocabulary at each place; byte-level."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    longest = sorted(vocabulary, key=len, reverse=True)
    split = Regex("|".join(re.escape(word) for word in longest))
    tokenizer = Tokenizer(
        models.WordLevel({word: at for at, word in enumerate(vocabulary)}, "a")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            pre_tokenizers.Split(split, "isolated"),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def test_a_row_ends_a_number_and_an_unsupervised_token_does():
    tokenizer, loss = load("digit")
    labels = torch.tensor([tokenizer.encode("1.23456", add_special_tokens=False)] * 2)
    labels[1, 1] = labels[1, 4] = -100  # the point, and a 4
    numeric = supervised_targets(loss, labels).places

    assert numeric.number.tolist() == [0] * 6 + [1, 2, 2, 3, 3]
