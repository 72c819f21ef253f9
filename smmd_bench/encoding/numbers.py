"""The numeric vocabulary of a tokenizer (app. alg of the paper)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

from ..contracts import NumericVocabulary
from ..errors import UserError

Rule = Literal["integer", "float"]
_CONTEXTS = ("", "=", " ", "a")
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

    Raises UserError if no token is numeric.
    """
    import torch

    if rule not in get_args(Rule):
        raise UserError(f"Unknown rule '{rule}' of the numeric vocabulary: known: float, integer.")
    others: dict[int, tuple[int, ...]] = {}
    if rule == "integer":
        found, others = _known_integer_tokens(tokenizer)
    else:
        found = _float_tokens(tokenizer)
    if not found:
        name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
        other = "float" if rule == "integer" else "integer"
        raise UserError(
            f"The tokenizer {name} has no numeric token by the rule '{rule}': try the rule "
            f"'{other}', or a model whose tokenizer has tokens for digits."
        )
    pairs = sorted((value, token_id) for token_id, value in found.items())
    spelled = [tokenizer.decode([token_id]).strip() for _, token_id in pairs]
    digits = [len(text) if text.isdigit() else 0 for text in spelled]
    return NumericVocabulary(
        token_ids=torch.tensor([token_id for _, token_id in pairs], dtype=torch.int64),
        values=torch.tensor([value for value, _ in pairs], dtype=torch.float64),
        rule=rule,
        digits=torch.tensor(digits, dtype=torch.int64),
        points=_tokens_of(tokenizer, ("1.5", "=1.5", " 1.5"), "."),
        minuses=_tokens_of(
            tokenizer, ("-5", "=-5", " -5", "(-5", "\u22125", " \u22125"), "-\u2212"
        ),
        others=others,
    )


def _tokens_of(tokenizer: Any, texts: Iterable[str], signs: str) -> tuple[int, ...]:
    """The tokens that are one of these signs, with a space before it or without, in these texts."""
    ids = {
        int(token) for text in texts for token in tokenizer.encode(text, add_special_tokens=False)
    }
    return tuple(sorted(token for token in ids if _is_sign(tokenizer.decode([token]), signs)))


def _is_sign(text: str, signs: str) -> bool:
    return len(text.strip()) == 1 and text.strip() in signs


_Integers = tuple[dict[int, float], dict[int, tuple[int, ...]]]
"""The tokens in V_num with their values, and by their digits those outside, such as "05"."""
_known: WeakKeyDictionary[Any, tuple[int, _Integers]] = WeakKeyDictionary()


def _known_integer_tokens(tokenizer: Any) -> _Integers:
    """`_integer_tokens`, looked for once: a run asks many times, and each takes 0.1 to 0.2 s."""
    size, found = _known.get(tokenizer, (-1, ({}, {})))
    if size != len(tokenizer):
        found = _integer_tokens(tokenizer)
        _known[tokenizer] = (len(tokenizer), found)
    return found


def _integer_tokens(tokenizer: Any) -> _Integers:
    emitted = {}
    for number in range(1000):
        for context in _CONTEXTS:
            ids = tokenizer.encode(context + str(number), add_special_tokens=False)
            if ids and _spelling(tokenizer, int(ids[-1])) == str(number):
                emitted[number] = int(ids[-1])
                break
    lengths = {len(str(number)) for number in emitted}
    spelled = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    for number in range(1000):
        if number not in emitted and len(str(number)) in lengths and str(number) in spelled:
            emitted[number] = int(spelled[str(number)])
    found = {token_id: float(number) for number, token_id in emitted.items()}
    others: dict[int, tuple[int, ...]] = {}
    for text, token in spelled.items():
        if len(text) in lengths and text.isascii() and text.isdigit() and token not in found:
            others[len(text)] = (*others.get(len(text), ()), int(token))
    return found, others


def _float_tokens(tokenizer: Any) -> dict[int, float]:
    found = {}
    for token_id in range(len(tokenizer)):
        spelling = _spelling(tokenizer, token_id)
        if _BYTE_TOKEN.fullmatch(spelling) or not re.search("[0-9]", spelling):
            continue
        text = tokenizer.decode([token_id])
        if text.isascii() and "_" not in text:
            try:
                value = float(text)
            except ValueError:
                continue
            if math.isfinite(value):
                found[token_id] = value
    return found


def _spelling(tokenizer: Any, token_id: int) -> str:
    """The token as the vocabulary has it, markers and all; decoded where that cannot be had."""
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        return str(tokenizer.convert_ids_to_tokens(token_id))
    return str(tokenizer.decode([token_id]))
