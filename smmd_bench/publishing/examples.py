"""Which completions the page shows: examples on which the losses disagree, first.

The page is one file that must open on a phone, so it embeds at most `LIMIT` completions. An
example with all its losses is kept or left as a whole.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..scoring.categories import CATEGORIES
from .style import loss_label
from .thumbnails import thumbnail

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from ..results.frames import RunFrames
    from ..storage.current import CellFile

LIMIT = 100_000
PICTURES = 100
"""Pictures that are embedded, each once: those of the first rows that have one."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST = 1_500
"""Characters of a text that are shown; all of it is in `completions.parquet`."""


def embedded_examples(run: RunFrames, limit: int = LIMIT) -> dict[str, Any]:
    """The examples to embed, as plain data for JSON.

    groups    [{"model", "task", "seed", "losses": [...]}]
    labels    {loss: how it is written}
    total     completions in the run; shown: completions here; limit: how many could be
    rows      [[group, prompt, target, [completion of each loss], "aac" for the scale-error
              category of each (a letter is a place in `CATEGORIES`), "101" for whether each is
              exact ("---" in both where the target is no number), 1 if the losses disagree]]
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
    kept: list[tuple[int, int]] = []
    shown = 0
    for _, _, number, at in ranked:
        if shown + len(groups[number].addresses) > limit:
            break
        kept.append((number, at))
        shown += len(groups[number].addresses)
    texts = {
        number: _rows(run, number, group, sorted(at for other, at in kept if other == number))
        for number, group in enumerate(groups)
    }
    return {
        "groups": [group.title for group in groups],
        "labels": {loss: loss_label(loss) for group in groups for loss in group.title["losses"]},
        "total": sum(group.exact.size for group in groups),
        "shown": shown,
        "limit": limit,
        "rows": [texts[number][at] for number, at in kept],
        **_pictures(run, groups, kept),
    }


@dataclass(frozen=True)
class _Group:
    """The cells of one model, task and seed, and which of their answers are exact."""

    title: dict[str, Any]
    addresses: list[str]
    exact: NDArray[np.bool_]  # [losses, examples]
    category: NDArray[np.int8]  # [losses, examples]; -1 where there is none
    numbers: bool  # the targets hold numbers: only then is an answer exact or not

    @cached_property
    def differing(self) -> NDArray[np.bool_]:
        """[examples] the trained losses, where there are two, are not all right or all wrong."""
        trained = np.array([loss != "base" for loss in self.title["losses"]])
        compared = self.exact[trained] if trained.sum() > 1 else self.exact
        return np.asarray(compared.any(axis=0) & ~compared.all(axis=0))


def _groups(run: RunFrames) -> list[_Group]:
    done = run.cells[run.cells["status"] == "done"]
    found = []
    for (model, task), here in done.groupby(["model", "task"], observed=True):
        base, trained = here[here["loss"] == "base"], here[here["loss"] != "base"]
        for seed in sorted(set(trained["seed"])) or sorted(set(base["seed"])):
            own = trained[trained["seed"] == seed]
            losses = ["base"] * bool(len(base)) + [str(loss) for loss in own["loss"]]
            addresses = [*base["address"].iloc[:1], *own["address"]]
            scores = _each(run, "scores", ["uid", "exact", "answer", "category"], addresses)
            if all(scores[0]["uid"].equals(other["uid"]) for other in scores):
                title = {"model": str(model), "task": str(task), "seed": int(seed)}
                exact = np.array([frame["exact"].to_numpy(bool) for frame in scores])
                numbers = "answer" not in scores[0] or bool(scores[0]["answer"].notna().any())
                category = np.array([_category(frame) for frame in scores])
                found.append(
                    _Group({**title, "losses": losses}, addresses, exact, category, numbers)
                )
    return found


def _each(
    run: RunFrames, file: CellFile, columns: list[str], addresses: list[str]
) -> list[pd.DataFrame]:
    """The rows of each of the cells, read together."""
    found = run.read(file, columns, addresses)
    places = found["address"].astype("str").to_numpy()
    ends = np.flatnonzero(places[1:] != places[:-1]) + 1
    bounds = [0, *ends.tolist(), len(found)]
    parts = {
        places[start]: found.iloc[start:end].reset_index(drop=True)
        for start, end in itertools.pairwise(bounds)
    }
    return [parts.get(address, found.iloc[:0]) for address in addresses]


def _category(scores: pd.DataFrame) -> NDArray[np.int8]:
    """[examples] the place of each category in `CATEGORIES`; -1 where the target is no number."""
    import pandas as pd

    if "category" not in scores or "answer" not in scores:
        return np.full(len(scores), -1, np.int8)
    codes = pd.Index(CATEGORIES).get_indexer(pd.Index(scores["category"].astype("str")))
    return np.where(scores["answer"].notna(), codes, -1).astype(np.int8)


def _rows(run: RunFrames, number: int, group: _Group, kept: list[int]) -> dict[int, list[Any]]:
    """By position in the test split, the rows of the examples that are kept of a group."""
    if not kept:
        return {}
    asked = run.read("completions", ["prompt", "target"], group.addresses[:1]).iloc[kept]
    answers = [
        frame["completion"].iloc[kept].tolist()
        for frame in _each(run, "completions", ["completion"], group.addresses)
    ]
    prompts, targets = asked["prompt"].tolist(), asked["target"].tolist()
    return {
        at: [
            number,
            _cut(prompts[row]),
            _cut(targets[row]),
            [_cut(answer[row]) for answer in answers],
            "".join("-" if c < 0 else LETTERS[c] for c in group.category[:, at]),
            "".join("01"[int(right)] if group.numbers else "-" for right in group.exact[:, at]),
            int(group.differing[at]),
        ]
        for row, at in enumerate(kept)
    }


def _pictures(
    run: RunFrames, groups: list[_Group], kept: list[tuple[int, int]]
) -> dict[str, list[str] | dict[int, int]]:
    """Small copies of the first pictures that are still there, and the rows that show each."""
    files: dict[int, list[object]] = {}
    for number in sorted({number for number, _ in kept}):
        asked = run.read("completions", ["image"], groups[number].addresses[:1])
        if "image" in asked and asked["image"].notna().any():
            files[number] = asked["image"].tolist()
    places: dict[object, int | None] = {}
    small: list[str] = []
    pictured: dict[int, int] = {}
    for row, (number, at) in enumerate(kept) if files else ():
        file = files[number][at] if number in files else None
        if isinstance(file, str):
            if file not in places and len(small) < PICTURES:
                places[file] = None
                if (picture := thumbnail(file)) is not None:
                    places[file] = len(small)
                    small.append(picture)
            if (place := places.get(file)) is not None:
                pictured[row] = place
    return {"pictures": small, "pictured": pictured}


def _cut(text: object) -> str:
    text = str(text)
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
