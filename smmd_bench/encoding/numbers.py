"""The numeric vocabulary of a tokenizer (app. alg of the paper)."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, get_args

from ..contracts import NumericVocabulary
from ..errors import UserError, did_you_mean

Rule = Literal["integer", "float"]
# What may stand before a number: nothing, a sign, a space, a letter.
_CONTEXTS = ("", "=", " ", "a")
_LEADS = "=+-\u2212*/<>~([$\u20ac\u00a3#:\n"
"""After these, or a blank, a point before digits begins a number."""
_HAS_DIGIT, _AT_THE_START = re.compile("[0-9]"), re.compile("[0-9]+")
_AT_THE_END = re.compile("[0-9]+$")
# Sentencepiece's token of one byte, such as <0x37>, decodes to the digit 7.
_BYTE_TOKEN = re.compile(r"<0x[0-9A-Fa-f]{2}>")


def numeric_vocabulary(tokenizer: Any, rule: Rule = "integer") -> NumericVocabulary:
    """The numeric vocabulary of a transformers tokenizer, or of anything with its three methods:
    `len()`, `encode(text, add_special_tokens=False)` and `decode(ids)`.

    rule `integer`: the tokens that are spelled exactly `str(n)` for an n in 0..999, of the lengths
    that the tokenizer really emits. It emits a length if it ends some number of that many digits,
    alone or after "=", a space or a letter, with the token of the whole number. (After something,
    because sentencepiece marks what opens a text. By length, because merges may still spell single
    numbers of a length otherwise: 110 as 1, 10.) So spellings with a space marker ("Ġ7", "▁7"),
    byte tokens ("<0x37>"), and "12" in a vocabulary whose tokenizer splits digits are out. N = 10
    where numbers are split into digits, 1000 where they are split into groups of three.

    rule `float`: Algorithm 1 of the paper (alg:vnum) made safe: every token whose decoded text is
    ASCII without an underscore and that `float` reads as a finite number: "007", "1e5" and " 7",
    but not "\u0663", "1_0", "inf" or a byte token.

    Raises UserError for another rule, and if no token is numeric.
    """
    # Prompts are encoded without torch, whose import takes seconds.
    import torch

    if rule not in (rules := get_args(Rule)):
        raise UserError(f"Unknown rule '{rule}': {did_you_mean(rule, rules)}")
    values, digit_tokens = _known_tokens(tokenizer, rule, len(tokenizer))
    if not values:
        name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
        other = "float" if rule == "integer" else "integer"
        raise UserError(
            f"The tokenizer {name} has no numeric token by the rule '{rule}': try the rule "
            f"'{other}', or a model whose tokenizer has tokens for digits."
        )

    # Sorted by value, so that an index in V_num grows with the number.
    pairs = sorted((value, token_id) for token_id, value in values.items())
    digits = []
    for _, token_id in pairs:
        text = tokenizer.decode([token_id]).strip()
        # Of a token such as 1e5 or -7 the length says nothing about its place value.
        digits.append(len(text) if text.isdigit() else 0)

    # A point after a digit is decimal; after a sign or a blank it opens a number.
    points = _tokens_of(tokenizer, ("1.5", "=1.5", " 1.5"), ".")
    leading = [f"{lead}{blank}.5" for lead in ("", *_LEADS) for blank in ("", " ")]

    return NumericVocabulary(
        token_ids=torch.tensor([token_id for _, token_id in pairs], dtype=torch.int64),
        values=torch.tensor([value for value, _ in pairs], dtype=torch.float64),
        rule=rule,
        digits=torch.tensor(digits, dtype=torch.int64),
        points=points,
        minuses=_tokens_of(
            tokenizer, ("-5", "=-5", " -5", "(-5", "\u22125", " \u22125"), "-\u2212"
        ),
        others=_find_others(digit_tokens, values),
        opens=tuple(token for token, (_, opens, _) in digit_tokens.items() if opens),
        closes=tuple(token for token, (_, _, closes) in digit_tokens.items() if closes),
        blank_points=tuple({*_tokens_of(tokenizer, leading, ".")} - {*points}),
        leads=_tokens_of(tokenizer, leading, [*_LEADS, ""]),
    )


def _find_others(
    digit_tokens: Mapping[int, tuple[int, bool, bool]], numeric: Container[int]
) -> dict[int, tuple[int, ...]]:
    """The digit tokens outside V_num, which are part of the numbers that they stand in, by how many
    digits they have."""
    by_count: defaultdict[int, tuple[int, ...]] = defaultdict(tuple)
    for token, (count, _, _) in digit_tokens.items():
        if token not in numeric:
            by_count[count] += (token,)
    return dict(by_count)


def _tokens_of(
    tokenizer: Any, texts: Iterable[str], signs: Iterable[str]
) -> tuple[int, ...]:
    """The tokens that are one of these signs, with a space before it or without, in these texts."""
    encoded = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    ids = {int(token) for token in chain.from_iterable(encoded)}
    wanted = {*signs}
    return tuple(
        token for token in sorted(ids) if tokenizer.decode([token]).strip() in wanted
    )


@lru_cache(8)
def _known_tokens(
    tokenizer: Any, rule: Rule, size: int
) -> tuple[dict[int, float], dict[int, tuple[int, bool, bool]]]:
    """The tokens in V_num with their values, and `_digit_tokens`, looked for once: a run asks many
    times, and each takes 0.1 to 0.3 s."""
    find = _integer_tokens if rule == "integer" else _float_tokens
    return find(tokenizer), _digit_tokens(tokenizer)


def _integer_tokens(tokenizer: Any) -> dict[int, float]:
    # The last token counts: context and number may merge at the front.
    emitted = {}
    for number in range(1000):
        for context in _CONTEXTS:
            ids = tokenizer.encode(f"{context}{number}", add_special_tokens=False)
            if ids and _spelling(tokenizer, int(ids[-1])) == str(number):
                emitted[number] = int(ids[-1])
                break

    # Of a length that the tokenizer emits every number counts, though merges may spell a single
    # one otherwise.
    lengths = {len(str(number)) for number in emitted}
    spelled = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    for number in range(1000):
        text = str(number)
        if number not in emitted and len(text) in lengths and text in spelled:
            emitted[number] = int(spelled[text])
    return {token_id: float(number) for number, token_id in emitted.items()}


def _digit_tokens(tokenizer: Any) -> dict[int, tuple[int, bool, bool]]:
    """The tokens whose text ends or else begins with digits: how many these are, whether something
    stands before them in the token, such as a space, and whether something stands after them.

    By the decoded text after an "a": alone, sentencepiece loses the space of "▁1".
    """
    context = tokenizer.encode("a", add_special_tokens=False)
    start = len(tokenizer.decode(context))
    digits_of = {}
    for token in range(len(tokenizer)):
        if not _HAS_DIGIT.search(_spelling(tokenizer, token)):
            continue
        text = tokenizer.decode([*context, token])[start:]
        match = _AT_THE_END.search(text) or _AT_THE_START.match(text)
        if match:
            digits_of[token] = (
                len(match[0]),
                match.start() > 0,
                match.end() < len(text),
            )
    return digits_of


def _float_tokens(tokenizer: Any) -> dict[int, float]:
    values = {}

    # The paper's rule takes any token that `float` reads, so all are looked at.
    for token_id in range(len(tokenizer)):
        spelling = _spelling(tokenizer, token_id)
        if _BYTE_TOKEN.fullmatch(spelling) or not _HAS_DIGIT.search(spelling):
            continue
        text = tokenizer.decode([token_id])
        # `float` reads digits of other scripts and 1_0, which no answer has.
        if text.isascii() and "_" not in text:
            try:
                value = float(text)
            except ValueError:
                continue
            # 1e999 is infinite, and an infinite value has no distance to others.
            if math.isfinite(value):
                values[token_id] = value
    return values


def _spelling(tokenizer: Any, token_id: int) -> str:
    """The token as the vocabulary has it, markers and all; decoded where that cannot be had."""
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        return str(tokenizer.convert_ids_to_tokens(token_id))
    return str(tokenizer.decode([token_id]))
