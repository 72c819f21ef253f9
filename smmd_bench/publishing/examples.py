"""Which completions the page shows: examples on which the losses disagree, first.

The page is one file that must open on a phone, so it embeds at most `LIMIT` completions. An
example is embedded with the answers of all losses, or not at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..results.summary import IDENTITY
from ..scoring.categories import CATEGORIES
from ..scoring.score import COMPLETION_COLUMNS
from .example_digits import digit_distributions
from .style import loss_label
from .thumbnails import thumbnail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..results.frames import RunFrames
    from ..storage.cell import CellFile

LIMIT = 100_000
PICTURES = 100
"""Pictures that are embedded, each once: those of the first rows that have one."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST = 1_500
"""Characters of a text that are shown; `completions.parquet` has all of it."""
SIZES = {1: "below 1", 10: "1 to 9", 100: "10 to 99", 1000: "100 to 999"}
"""How the page names answers below each of these, without their sign."""
_UID = 7
_NO_ATTRIBUTES = frozenset({*COMPLETION_COLUMNS})


def embedded_examples(run: RunFrames, limit: int = LIMIT) -> dict[str, Any]:
    """The examples to embed, as plain data for JSON.

    groups    [{"model", "task", "seed", "losses": [...]}]
    labels    {loss: how it is written}
    total     completions in the run; shown: completions here; limit: the largest number of them
    rows      [[group, prompt, target, [completion of each loss], "aac" for the scale-error
              category of each (a letter is a place in `CATEGORIES`), "101" for whether each is
              exact ("---" in both where the target is no number), 1 if the losses disagree, uid,
              [|error| of each; null: it has none], {attribute: its value}]]
    digits    {number of a row: its digit distributions}, see `example_digits.py`
    pictures  small copies of the first `PICTURES` pictures; pictured: {number of a row: which}

    A group is a model, task and seed, with the untuned base beside every seed; cells that do not
    share their examples are left out. Rows with disagreements come first, and the groups take
    turns, so that a small limit shows some of each.
    """
    groups = _groups(run)
    ranked = sorted(
        (not group.differing[at], rank, number, at)
        for number, group in enumerate(groups)
        for rank, at in enumerate(np.argsort(~group.differing, kind="stable").tolist())
    )
    chosen: list[tuple[int, int]] = []
    shown = 0
    for _, _, number, at in ranked:
        if shown + len(groups[number].addresses) > limit:
            break
        chosen.append((number, at))
        shown += len(groups[number].addresses)
    rows = {
        (number, at): [number, *row]
        for number, group in enumerate(groups)
        for at, row in _rows(run, group, sorted(a for n, a in chosen if n == number)).items()
    }
    return {
        "groups": [group.title for group in groups],
        "labels": {loss: loss_label(loss) for group in groups for loss in group.title["losses"]},
        "total": sum(group.exact.size for group in groups),
        "shown": shown,
        "limit": limit,
        "rows": [rows[place] for place in chosen],
        "digits": digit_distributions(
            run, [(groups[n].addresses, str(rows[n, at][_UID])) for n, at in chosen]
        ),
        **_pictures(run, groups, chosen),
    }


@dataclass(frozen=True)
class _Group:
    """The cells of one model, task and seed, and which of their answers are exact."""

    title: dict[str, Any]
    addresses: list[str]
    exact: NDArray[np.bool_]  # [losses, examples]
    category: NDArray[np.intp]  # [losses, examples]; -1 where there is none
    error: NDArray[np.float64]  # [losses, examples]; NaN where a value is missing
    answer: NDArray[np.float64]  # [examples]; NaN where the target holds no number
    numbers: bool  # the targets hold numbers: only then is an answer exact or not

    @cached_property
    def differing(self) -> NDArray[np.bool_]:
        """[examples] the trained losses, if there are two, are not all right or all wrong."""
        trained = np.array([loss != "base" for loss in self.title["losses"]])
        compared = self.exact[trained] if trained.sum() > 1 else self.exact
        return np.asarray(compared.any(axis=0) & ~compared.all(axis=0))


def _groups(run: RunFrames) -> list[_Group]:
    done = run.cells[run.cells["status"] == "done"]
    found = []
    for (model, task), here in done.groupby(["model", "task"], observed=True):
        base, trained = here[here["loss"] == "base"], here[here["loss"] != "base"]
        for seed in sorted(set((base if trained.empty else trained)["seed"])):
            cells = pd.concat([base[:1], trained[trained["seed"] == seed]])
            addresses, losses = cells["address"].tolist(), cells["loss"].astype("str").tolist()
            columns = ["uid", "exact", "answer", "category", "error"]
            scores = _by_cell(run, "scores", columns, addresses)
            if all(scores[0]["uid"].equals(other["uid"]) for other in scores):
                title: dict[str, Any] = {"model": str(model), "task": str(task), "seed": int(seed)}
                title["losses"] = losses
                exact = np.array([frame["exact"].to_numpy(bool) for frame in scores])
                category = np.array([_category(frame) for frame in scores])
                error = np.array([_floats(frame, "error") for frame in scores])
                answer = _floats(scores[0], "answer")
                numbers = "answer" not in scores[0] or bool(np.isfinite(answer).any())
                found.append(_Group(title, addresses, exact, category, error, answer, numbers))
    return found


def _by_cell(
    run: RunFrames, file: CellFile, columns: list[str], addresses: list[str]
) -> list[pd.DataFrame]:
    """The rows of each of the cells, read together."""
    found = run.read(file, columns, addresses)
    return [found[found["address"] == at].reset_index(drop=True) for at in addresses]


def _category(scores: pd.DataFrame) -> NDArray[np.intp]:
    """[examples] the place of each category in `CATEGORIES`; -1 where the target is no number."""
    if "category" not in scores or "answer" not in scores:
        return np.full(len(scores), -1)
    codes = pd.Index(CATEGORIES).get_indexer(pd.Index(scores["category"].astype("str")))
    return np.where(scores["answer"].notna(), codes, -1)


def _floats(scores: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """[examples] a column of numbers; NaN where it is not there."""
    found = scores[column] if column in scores else pd.Series(np.nan, scores.index)
    return np.asarray(found, dtype=np.float64)


def _rows(run: RunFrames, group: _Group, chosen: list[int]) -> dict[int, list[Any]]:
    """By position in the test split, the rows of the chosen examples of a group."""
    if not chosen:
        return {}
    asked = run.read("completions", None, group.addresses[:1])
    attributes = asked[[c for c in asked if c not in (*IDENTITY, *_NO_ATTRIBUTES)]]
    answers = [
        frame["completion"].tolist()
        for frame in _by_cell(run, "completions", ["completion"], group.addresses)
    ]
    uids, prompts, targets = (asked[name].tolist() for name in ("uid", "prompt", "target"))
    return {
        at: [
            _cut(prompts[at]),
            _cut(targets[at]),
            [_cut(texts[at]) for texts in answers],
            "".join("-" if code < 0 else LETTERS[code] for code in group.category[:, at]),
            "".join("01"[int(right)] if group.numbers else "-" for right in group.exact[:, at]),
            int(group.differing[at]),
            str(uids[at]),
            [_short(error) for error in group.error[:, at].tolist()],
            _attributes(attributes, group.answer, at),
        ]
        for at in chosen
    }


def _attributes(frame: pd.DataFrame, answer: NDArray[np.float64], at: int) -> dict[str, Any]:
    """What the example carries, and the size of its answer."""
    found = {str(name): frame[name].iat[at] for name in frame.columns}
    if np.isfinite(answer[at]):
        size = abs(float(answer[at]))
        found["answer"] = next((n for below, n in SIZES.items() if size < below), "1000 or more")
    return {
        name: value if isinstance(value, (bool, int)) else _attribute(value)
        for name, value in found.items()
    }


def _attribute(value: Any) -> str | float | None:
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (float, np.number)):
        return _short(float(value))
    return None if value is None else _cut(value)


def _short(value: float) -> float | None:
    """A number of four digits for JSON, which has no infinity; whole where it is whole."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() and short < 1e15 else short


def _pictures(
    run: RunFrames, groups: list[_Group], chosen: list[tuple[int, int]]
) -> dict[str, list[str] | dict[int, int]]:
    """Small copies of the first pictures that are still there, and the rows that show each."""
    files = {
        number: run.read("completions", ["image"], groups[number].addresses[:1])
        for number in {number for number, _ in chosen}
    }
    places: dict[str, int | None] = {}
    small: list[str] = []
    pictured: dict[int, int] = {}
    for row, (number, at) in enumerate(chosen):
        file = files[number]["image"].iat[at] if "image" in files[number] else None
        if not isinstance(file, str):
            continue
        if file not in places and len(small) < PICTURES:
            picture = thumbnail(file)
            places[file] = None if picture is None else len(small)
            small += [] if picture is None else [picture]
        if (place := places.get(file)) is not None:
            pictured[row] = place
    return {"pictures": small, "pictured": pictured}


def _cut(text: object) -> str:
    text = str(text)
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
