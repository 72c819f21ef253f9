"""Answers to look into: those that are wrong, and those that one loss has right and another wrong.

Right is what the first metric of the task counts, as the flips of the verdict do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UserError
from .pairing import find_metrics
from .summary import IDENTITY

if TYPE_CHECKING:
    import pandas as pd

    from .frames import RunFrames

P_TARGET, AGAINST, ERROR = "p_target", "against_", "error"
_EXAMPLE = ["uid", "prompt", "target"]
_ANSWER = ["completion", "parsed", P_TARGET]


class Answers(NamedTuple):
    """The answers of one cell that are asked for.

    cell: what tells the cell, and what it is compared with. counts: how many examples there are,
    and how many of them are of which kind. rows: uid, prompt, target, completion, parsed, and
    p_target: the probability of each numeric token of the true answer, given the true text before
    it; missing where the example is not probed.
    """

    cell: dict[str, str | int]
    counts: dict[str, int]
    rows: pd.DataFrame


def find_wrong(run: RunFrames, cells: pd.DataFrame) -> Iterator[Answers]:
    """Yield the wrong answers of each of these cells that is measured, the largest `error` first;
    those without a size stand last, in the order of the file."""
    for address in run.having("scores", cells["address"])["address"]:
        rows = read_answers(run, address)
        wrong = rows.loc[~rows["right"], [*_EXAMPLE, *_ANSWER, ERROR]]
        wrong = wrong.sort_values(ERROR, ascending=False, kind="stable")
        counts = {"wrong": len(wrong), "of": len(rows)}
        yield Answers(_describe_cell(run, address), counts, wrong)


def find_flips(run: RunFrames, cells: pd.DataFrame) -> Iterator[Answers]:
    """Yield what each of these cells has right, and its opponent of the same seed wrong (gained),
    or the other way (lost). The opponent's answers have the columns against_completion and so on.
    """
    addresses = {*cells["address"]}
    for pair in run.compared:
        address, opponent = pair.mine["address"], pair.other["address"]
        if pair.kind != "comparison" or address not in addresses:
            continue

        mine = read_answers(run, address)
        flips = _select_flips(mine, read_answers(run, opponent))
        gained = int(flips["right"].sum())
        counts = {
            "gained": gained,
            "lost": len(flips) - gained,
            "of": len(mine),
        }
        cell = _describe_cell(run, address)
        cell["against_loss"] = pair.other["loss"]
        yield Answers(cell, counts, flips)


def _select_flips(mine: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """The answers to the examples that one cell alone has right."""
    compared = [*_ANSWER, "right"]
    names = {name: AGAINST + name for name in compared}
    theirs = theirs[["uid", *compared]].rename(columns=names)
    both = mine[[*_EXAMPLE, *compared]].merge(theirs, on="uid")

    flips = both[both["right"] != both["against_right"]]
    return flips.drop(columns="against_right")


def read_answers(run: RunFrames, address: str) -> pd.DataFrame:
    """Read the answers of a measured cell, with `right`, `error` and `p_target`. Raises UserError
    where they are not right or wrong."""
    cells = run.cells[run.cells["address"] == address]
    rows = run.only(cells).completions
    task = str(cells["task"].iloc[0])
    right = name_right(rows, task)
    if right is None:
        raise UserError(
            f"The answers of {task} are not right or wrong, as its first metric grades them: look "
            "at one with --uid."
        )

    # Answers that are no numbers have no error.
    if ERROR not in rows:
        rows[ERROR] = math.nan

    probes = read_probes(run, [address])
    by_uid = {}
    for uid, digits in probes.groupby("uid"):
        by_uid[uid] = digits[P_TARGET].tolist()
    return rows.assign(right=rows[right], p_target=rows["uid"].map(by_uid))


def name_right(rows: pd.DataFrame, task: str) -> str | None:
    """Name the column of scores that says which answers are right; None: they have grades."""
    # Without the task's plugin its answers count as numbers, as those of most tasks are.
    columns = [metric.columns[0] for metric in find_metrics(task)[:1]]
    right = columns[0] if columns else "exact"
    return right if right in rows and rows[right].dtype == bool else None


def read_probes(run: RunFrames, addresses: Iterable[str]) -> pd.DataFrame:
    """Read the digit probes of cells; of the answer alone, without a rationale before it."""
    probes = run.read("probes", addresses=addresses)
    # An archive may have left them out.
    if probes.empty:
        return probes.reindex(columns=[*IDENTITY, "uid", "answer_digit", P_TARGET])
    return probes[probes["answer_digit"] >= 0]


def _describe_cell(run: RunFrames, address: str) -> dict[str, str | int]:
    content: Mapping[str, Any] = run.described[address]
    return {name: content[name] for name in IDENTITY}
