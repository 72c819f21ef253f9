"""Which completions the page shows: examples on which the losses disagree, first.

The page is one file that must open on a phone, so it embeds at most `LIMIT` completions. An
example is embedded with the answers of all losses, or not at all.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import UserError
from ..scoring.categories import CATEGORIES
from .style import loss_label

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from ..results.frames import RunFrames
    from ..storage.cell import CellFile

LIMIT = 20_000
PICTURES, PIXELS = 200, 200
"""The first rows that show their picture, and the pixels of its longer side."""
LONGEST = 1_500
"""Characters of a text that are shown; `completions.parquet` has all of it."""


def embedded_examples(run: RunFrames, limit: int = LIMIT) -> dict[str, Any]:
    """The examples to embed, as plain data for JSON.

    groups      [{"model", "task", "seed", "losses": [...]}]
    labels      {loss: how it is written}
    total       completions in the run; shown: completions here
    rows        [[group, uid, prompt, target, [completion of each loss], [category of each loss: a
                place in `categories`; -1: the target is no number], 1 if the losses disagree,
                its picture, small, as a data URI; null: it has none here]]

    A group is a model, task and seed, with the untuned base beside every seed; cells that do not
    share their examples are left out. Rows with disagreements come first, and the groups take
    turns, so that a small limit shows some of each.
    """
    groups = list(_groups(run))
    ranked = sorted(
        (not group.differing[at], rank, number, at)
        for number, group in enumerate(groups)
        for rank, at in enumerate(np.argsort(~group.differing, kind="stable")[:limit].tolist())
    )
    sizes = np.cumsum([len(groups[number].addresses) for *_, number, _ in ranked])
    chosen = [(number, at) for *_, number, at in ranked[: int((sizes <= limit).sum())]]
    places = [[at for n, at in chosen if n == number] for number in range(len(groups))]
    texts = [_texts(run, group, here) for group, here in zip(groups, places, strict=True)]
    rows: list[Any] = []
    for number, at in chosen:
        *said, file = texts[number][at]
        picture = _data_uri(file) if len(rows) < PICTURES else None
        flags = groups[number].category[:, at].tolist(), int(groups[number].differing[at])
        rows.append([number, *said, *flags, picture])
    losses = [loss for group in groups for loss in group.title["losses"]]
    return {
        "groups": [group.title for group in groups],
        "labels": {loss: loss_label(loss) for loss in losses},
        "categories": CATEGORIES,
        "total": sum(group.category.size for group in groups),
        "shown": sum(len(row[4]) for row in rows),
        "rows": rows,
    }


class _Group(NamedTuple):
    """The cells of one model, task and seed.

    category: [losses, examples], as in the rows. differing: [examples] the trained losses, if there
    are two, are not all right or all wrong.
    """

    title: dict[str, Any]
    addresses: list[str]
    category: NDArray[np.intp]
    differing: NDArray[np.bool_]


def _groups(run: RunFrames) -> Iterator[_Group]:
    done = run.cells[run.cells["status"] == "done"]
    for (model, task), here in done.groupby(["model", "task"], observed=True):
        base, trained = here[here["loss"] == "base"], here[here["loss"] != "base"]
        for seed in sorted(set((base if trained.empty else trained)["seed"])):
            cells = pd.concat([base[:1], trained[trained["seed"] == seed]])
            addresses, losses = cells["address"].tolist(), cells["loss"].astype("str").tolist()
            scores = _by_cell(run, "scores", ["uid", "answer", "category"], addresses)
            if not all(scores[0]["uid"].equals(other["uid"]) for other in scores):
                continue
            category = np.array([_category(frame) for frame in scores])
            exact = category == CATEGORIES.index("exact")
            compared = exact[1:] if len(base) and len(losses) > 2 else exact
            differing = compared.any(axis=0) & ~compared.all(axis=0)
            title = {"model": str(model), "task": str(task), "seed": int(seed), "losses": losses}
            yield _Group(title, addresses, category, differing)


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


def _texts(run: RunFrames, group: _Group, chosen: list[int]) -> dict[int, list[Any]]:
    """By place in the split, of chosen examples: uid, prompt, target, completions, picture."""
    if not chosen:
        return {}
    columns = ["uid", "prompt", "target", "image"]
    asked = run.read("completions", columns, group.addresses[:1]).iloc[chosen]
    frames = _by_cell(run, "completions", ["completion"], group.addresses)
    answers = zip(*(map(_cut, f["completion"].iloc[chosen]) for f in frames), strict=True)
    images = asked["image"] if "image" in asked else [None] * len(chosen)
    said = zip(asked["uid"], asked["prompt"], asked["target"], answers, images, strict=True)
    return {
        at: [str(uid), _cut(prompt), _cut(target), [*texts], file]
        for at, (uid, prompt, target, texts, file) in zip(chosen, said, strict=True)
    }


def _cut(text: object) -> str:
    text = str(text)
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"


def small_picture(path: object, largest: int = PIXELS) -> Image | None:
    """A copy of at most `largest` pixels a side; None if there is no picture, or it is broken."""
    from ..encoding.images import read_image

    if not isinstance(path, str):
        return None
    try:
        small = read_image(Path(path))
    except UserError:
        return None
    small.thumbnail((largest, largest))
    return small


def _data_uri(path: object) -> str | None:
    if (picture := small_picture(path)) is None:
        return None
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=75)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
