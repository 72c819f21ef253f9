"""Which completions the page shows: examples on which the losses disagree, first.

The page is one file that must open on a phone, so it embeds at most `LIMIT` completions. An
example is embedded with the answers of all losses, or not at all.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import UserError
from ..results.summary import columns_of
from ..scoring.categories import CATEGORIES
from ..storage.cell import BASE
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
    """Choose and read the examples to embed, as plain data for JSON.

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
    groups = list(_read_groups(run))
    chosen = _choose_examples(groups, limit)

    # The texts are large: those of the chosen examples alone are kept.
    texts = []
    for number, group in enumerate(groups):
        places = [place for chosen_group, place in chosen if chosen_group == number]
        texts.append(_read_texts(run, group, places))

    rows: list[Any] = []
    for number, place in chosen:
        group = groups[number]
        *content, file = texts[number][place]
        categories = group.category[:, place].tolist()
        differs = int(group.differing[place])
        # Pictures are large, too, and a reader looks at the first ones.
        picture = _encode_picture(file) if len(rows) < PICTURES else None
        rows.append([number, *content, categories, differs, picture])

    losses = chain(*(group.title["losses"] for group in groups))
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


def _choose_examples(groups: Sequence[_Group], limit: int) -> list[tuple[int, int]]:
    """Choose the examples to embed: number of the group and place, in the page's order."""
    ranked = []
    for number, group in enumerate(groups):
        # Examples that differ come first, and otherwise stay in the order of the split.
        places = np.argsort(~group.differing, kind="stable")
        for rank, place in enumerate(places[:limit].tolist()):
            agrees = not group.differing[place]
            ranked.append((agrees, rank, number, place))

    # By rank before group, so that the groups take turns.
    ranked.sort()
    chosen = []
    completions = 0
    for _, _, number, place in ranked:
        # An example has a completion of each cell of its group.
        completions += len(groups[number].addresses)
        if completions > limit:
            break
        chosen.append((number, place))
    return chosen


def _read_groups(run: RunFrames) -> Iterator[_Group]:
    measured = run.cells[run.cells["status"] == "done"]
    for (model, task), cells in measured.groupby(["model", "task"]):
        is_base = cells["loss"] == BASE
        base = cells[is_base]
        trained = cells[~is_base]
        # A run may hold the untuned model alone.
        with_seeds = base if trained.empty else trained
        seeds = sorted(set(with_seeds["seed"]))
        for seed in seeds:
            # The base has no seed of its own, and stands beside each.
            of_seed = trained[trained["seed"] == seed]
            of_seed = pd.concat([base[:1], of_seed])
            addresses = of_seed["address"].tolist()
            losses = of_seed["loss"].astype("str").tolist()
            title = {
                "model": str(model),
                "task": str(task),
                "seed": int(seed),
                "losses": losses,
            }
            group = _read_group(run, title, addresses)
            if group is not None:
                yield group


def _read_group(
    run: RunFrames, title: dict[str, Any], addresses: list[str]
) -> _Group | None:
    """Read the answers of these cells; None: they do not share their examples."""
    scores = _read_cells(run, "scores", ["uid", "answer", "category"], addresses)
    uids = scores[0]["uid"]
    if not all(uids.equals(other["uid"]) for other in scores):
        return None

    category = np.array([_read_categories(frame) for frame in scores])
    compared = category == CATEGORIES.index("exact")
    # That training changes an answer says little: where two losses are trained, these count.
    losses = title["losses"]
    if losses[0] == BASE and len(losses) > 2:
        compared = compared[1:]
    differing = compared.any(axis=0) & ~compared.all(axis=0)
    return _Group(title, addresses, category, differing)


def _read_cells(
    run: RunFrames, file: CellFile, columns: list[str], addresses: list[str]
) -> list[pd.DataFrame]:
    """Read the rows of each of these cells, which are measured."""
    return [
        columns_of(run.current(address), file, columns).to_pandas()
        for address in addresses
    ]


def _read_categories(scores: pd.DataFrame) -> NDArray[np.intp]:
    """Place each category in `CATEGORIES` ([examples]); -1 where the target is no number."""
    if "category" not in scores or "answer" not in scores:
        return np.full(len(scores), -1)

    # Categories of an older run that are no longer told apart have the place -1, too.
    codes = pd.Index(CATEGORIES).get_indexer(pd.Index(scores["category"].astype("str")))
    return np.where(scores["answer"].notna(), codes, -1)


def _read_texts(
    run: RunFrames, group: _Group, places: list[int]
) -> dict[int, list[Any]]:
    """Read uid, prompt, target, completions and picture of examples, by place in the split."""
    if not places:
        return {}

    # Prompt and target are those of every cell of the group, so that the first one's are read.
    columns = ["uid", "prompt", "target", "image"]
    (first,) = _read_cells(run, "completions", columns, group.addresses[:1])
    examples = first.iloc[places].to_dict("records")
    cells = _read_cells(run, "completions", ["completion"], group.addresses)
    completions = [cell["completion"].iloc[places].map(_cut) for cell in cells]
    texts = {}
    for place, example, *answers in zip(places, examples, *completions, strict=True):
        texts[place] = [
            str(example["uid"]),
            _cut(example["prompt"]),
            _cut(example["target"]),
            answers,
            example.get("image"),
        ]
    return texts


def _cut(text: object) -> str:
    text = str(text)
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"


def small_picture(path: object, largest: int = PIXELS) -> Image | None:
    """Copy a picture to at most `largest` pixels a side; None if there is none, or it is broken."""
    from ..encoding.images import read_image

    if not isinstance(path, str):
        return None
    try:
        small = read_image(Path(path))
    except UserError:
        return None
    small.thumbnail((largest, largest))  # in place; it never enlarges
    return small


def _encode_picture(path: object) -> str | None:
    picture = small_picture(path)
    if picture is None:
        return None
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=75)
    encoded = base64.b64encode(buffer.getvalue())
    return "data:image/webp;base64," + encoded.decode("ascii")
