"""A completion without its invisible characters: what every parser reads."""

from __future__ import annotations

import re

_ENDS = re.compile(
    r"</s>|<eos>|<end_of_turn>|<\|(?:im_end|end|endoftext|end_of_text|eot_id|return)\|>"
)
_SEEN_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2007\u202f", " "),  # spaces that do not break a line
        **dict.fromkeys("\ufeff\u200b\u2060"),  # the byte-order mark and others without width
    }
)


def plain_text(completion: str) -> str:
    r"""The text of a completion up to its end-of-text token, without space around it.

    A non-breaking space (U+00A0, U+2007, U+202F) becomes a space, `\r\n` and `\r` become `\n`, and
    characters without width, such as the byte-order mark, go. Digits stay as they are, and a space
    between them separates two numbers, whatever its kind: `1 234` is not 1234.
    """
    text = _ENDS.split(completion, maxsplit=1)[0].translate(_SEEN_ALIKE)
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()
