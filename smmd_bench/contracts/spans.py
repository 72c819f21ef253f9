"""Which numeric tokens spell one number together, and how many of its digits follow each."""

from __future__ import annotations

import torch
from torch import Tensor


def number_spans(
    row: Tensor,
    position: Tensor,
    digits: Tensor,
    joined: Tensor | None = None,
    apart: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(number, digits after) of D numeric tokens in reading order: [D] int64 each.

    A number is a run of neighbouring positions of a row; numbers count from 0. row, position: [D]
    int64, where the tokens stand. digits: [D] int64, how many digits each spells; a token of 0
    spells no digits, and is a number of its own. joined: [D] bool, which tokens go on the number of
    the token before them although their positions are no neighbours: after a decimal point. apart:
    [D] bool, which tokens begin a number although they are neighbours of the token before them.
    """
    starts = torch.ones_like(row, dtype=torch.bool)
    starts[1:] = (row[1:] != row[:-1]) | (position[1:] != position[:-1] + 1)
    if joined is not None:
        starts &= ~joined
    if apart is not None:
        starts |= apart
    alone = digits == 0
    starts |= alone
    starts[1:] |= alone[:-1]
    number = starts.cumsum(0) - 1  # [D], 0..S-1
    spelled = digits.cumsum(0)  # [D], through each token
    last = number.bincount().cumsum(0) - 1  # [S]
    return number, spelled[last][number] - spelled
