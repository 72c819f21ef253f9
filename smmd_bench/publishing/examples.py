"""Which completions the page shows: examples on which the losses disagree, first.

The page is one file that must open on a phone, so it embeds at most `LIMIT` completions. An
example with all its losses is kept or left as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .style import loss_label
from .thumbnails import thumbnail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..results.run import RunFrames

LIMIT = 100_000
PICTURES = 12
LONGEST = 1_500
"""Characters of a text that are shown; all of it is in `completions.parquet`."""


def embedded_examples(run: RunFrames, limit: int = LIMIT) -> dict[str, Any]:
    """The examples to embed, as plain data for JSON.

    groups    [{"model", "task", "seed", "losses": [...]}]
    labels    {loss: how it is written}
    total     completions in the run; shown: completions here
    rows      [[group, prompt, target, [completion of each loss], "101" for whether each is exact
              ("---" where the answers are no numbers), 1 if the losses disagree]]
    pictures  {number of a row: small copy of its picture}, of the first `PICTURES` rows

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
        "rows": [texts[number][at] for number, at in kept],
        "pictures": _pictures(run, groups, kept[:PICTURES]),
    }


@dataclass(frozen=True)
class _Group:
    """The cells of one model, task and seed, and which of their answers are exact."""

    title: dict[str, Any]
    addresses: list[str]
    exact: NDArray[np.bool_]  # [losses, examples]
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
            columns = ["uid", "exact", "answer"]
            scores = [run.read("scores", columns, [address]) for address in addresses]
            if all(scores[0]["uid"].equals(other["uid"]) for other in scores):
                title = {"model": str(model), "task": str(task), "seed": int(seed)}
                exact = np.array([frame["exact"].to_numpy(bool) for frame in scores])
                numbers = "answer" not in scores[0] or bool(scores[0]["answer"].notna().any())
                found.append(_Group({**title, "losses": losses}, addresses, exact, numbers))
    return found


def _rows(run: RunFrames, number: int, group: _Group, kept: list[int]) -> dict[int, list[Any]]:
    """By position in the test split, the rows of the examples that are kept of a group."""
    if not kept:
        return {}
    asked = run.read("completions", ["prompt", "target"], group.addresses[:1]).iloc[kept]
    answers = [
        run.read("completions", ["completion"], [address])["completion"].iloc[kept].tolist()
        for address in group.addresses
    ]
    prompts, targets = asked["prompt"].tolist(), asked["target"].tolist()
    return {
        at: [
            number,
            _cut(prompts[row]),
            _cut(targets[row]),
            [_cut(answer[row]) for answer in answers],
            "".join("01"[int(right)] if group.numbers else "-" for right in group.exact[:, at]),
            int(group.differing[at]),
        ]
        for row, at in enumerate(kept)
    }


def _pictures(run: RunFrames, groups: list[_Group], kept: list[tuple[int, int]]) -> dict[int, str]:
    """By number of the row, the small copies of those pictures that are still there."""
    found: dict[int, str] = {}
    for number in {number for number, _ in kept}:
        asked = run.read("completions", ["image"], groups[number].addresses[:1])
        mine = [(row, at) for row, (other, at) in enumerate(kept) if other == number]
        for row, at in mine if "image" in asked else ():
            if (small := thumbnail(asked["image"].iloc[at])) is not None:
                found[row] = small
    return dict(sorted(found.items()))


def _cut(text: object) -> str:
    text = str(text)
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
