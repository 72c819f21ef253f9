"""The digit distributions of the first examples of the page, in a letter a probability."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..decoding.probe import OUTSIDE

if TYPE_CHECKING:
    from ..results.frames import RunFrames

LIMIT = 12_000
"""Distributions that the page holds: those of the first examples, as many as fit whole."""
POSITIONS = 6
"""Numeric tokens of an example that are shown: the first of its answer."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
"""Probabilities in steps of 1/63, as the page reads them."""

_DIGITS = [f"p{digit}" for digit in range(10)]
_COLUMNS = ("uid", "digit", "answer_digit", "target_value", *_DIGITS)


def digit_distributions(
    run: RunFrames, examples: Sequence[tuple[Sequence[str], str]], limit: int = LIMIT
) -> dict[int, dict[str, Any]]:
    """By place in `examples` (addresses of the cells of a row, and its uid), if it was probed:

    targets   the true digit at each place; of a token of several digits, the leading one
    losses    for each cell ten letters a place; null where that cell was not probed
    """
    sizes = np.cumsum([len(addresses) for addresses, _ in examples])
    asked = examples[: int(np.searchsorted(sizes, limit, side="right"))]  # a place each, or more
    wanted: dict[str, set[str]] = defaultdict(set)
    for addresses, uid in asked:
        for address in addresses:
            wanted[address].add(uid)
    probes = {address: _probes(run, address, uids) for address, uids in wanted.items()}
    found: dict[int, dict[str, Any]] = {}
    for row, (addresses, uid) in enumerate(asked):
        cells = [probes[address].get(uid, ()) for address in addresses]
        limit -= sum(map(len, cells))
        if limit < 0:
            break
        if there := next(filter(None, cells), None):
            found[row] = {
                "targets": [target for target, _ in there],
                "losses": ["".join(letters for _, letters in cell) or None for cell in cells],
            }
    return found


def _probes(run: RunFrames, address: str, uids: set[str]) -> dict[str, list[tuple[int, str]]]:
    """Of these examples, by uid: true digit and letters at the first places of the answer."""
    frame = run.read("probes", _COLUMNS, [address])
    if frame.empty:
        return {}
    frame = frame[frame["uid"].isin([*uids])]
    if "answer_digit" in frame:
        frame = frame[frame["answer_digit"] != OUTSIDE]
    frame = frame.sort_values(["uid", "digit"], kind="stable")
    steps = np.rint(63 * np.nan_to_num(frame[_DIGITS].to_numpy(np.float64)).clip(0, 1)).astype(int)
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for uid, value, row in zip(frame["uid"], frame["target_value"], steps.tolist(), strict=True):
        if len(found[uid]) < POSITIONS:
            leading = int(f"{abs(value):.0f}"[0])
            found[uid].append((leading, "".join(LETTERS[step] for step in row)))
    return found
