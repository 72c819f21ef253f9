"""The examples of the page in few bytes: columns, each text once, and compressed where large.

`web/reading.js` unpacks them: a JSON object as it is, or the same gzipped and in base64.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

LARGE = 200_000
"""Characters of JSON from which on it is compressed."""
_COLUMNS = (
    "group", "prompt", "target", "answers", "category", "exact", "differing", "uid", "errors",
    "attributes",
)  # fmt: skip


def columns(examples: Mapping[str, Any]) -> dict[str, Any]:
    """What `embedded_examples` gives, by column and with every text once.

    texts     all prompts, targets and completions, in the order of their first use
    group, prompt, target, differing    one number a row; of texts, the place in `texts`
    answers   one place a completion, all rows after one another
    category, exact, uid    one string a row
    errors    one number or null a completion, all rows after one another
    attributes    {name: one value or null a row}
    """
    places: dict[str, int] = {}

    def place(text: str) -> int:
        return places.setdefault(text, len(places))

    rows = [
        (group, place(prompt), place(target), [place(answer) for answer in answers], *rest)
        for group, prompt, target, answers, *rest in examples["rows"]
    ]
    packed = {name: [row[at] for row in rows] for at, name in enumerate(_COLUMNS)}
    for name in ("answers", "errors"):
        packed[name] = [one for each in packed[name] for one in each]
    names = dict.fromkeys(name for row in packed["attributes"] for name in row)
    attributes = {name: [row.get(name) for row in packed["attributes"]] for name in names}
    others = {key: value for key, value in examples.items() if key != "rows"}
    return {**others, **packed, "attributes": attributes, "texts": list(places)}


def pack(examples: Mapping[str, Any], large: int = LARGE) -> tuple[str, str]:
    """The media type and the text of the script element that holds the examples.

    The text is safe inside HTML: it has no `<`, `>` or `&`.
    """
    text = json.dumps(columns(examples), ensure_ascii=False, separators=(",", ":"))
    if len(text) < large:
        for letter in "<>&":
            text = text.replace(letter, f"\\u{ord(letter):04x}")
        return "application/json", text
    squeezed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
    return "application/gzip", base64.b64encode(squeezed).decode("ascii")


def unpack(kind: str, text: str) -> dict[str, Any]:
    """The columns that `pack` packed."""
    if kind == "application/gzip":
        text = gzip.decompress(base64.b64decode(text)).decode()
    content: dict[str, Any] = json.loads(text)
    return content
