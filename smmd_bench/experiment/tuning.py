"""The configurations that a loss is tuned over: as many for every loss.

`--tune 'lambda=0.1,1,10'` holds for every loss that has the parameter, `--tune 'ce: learning_rate=
1e-4,3e-4,1e-3'` for that loss alone. What a loss has of both makes a grid: all combinations.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import UserError, did_you_mean
from ..models.recipe import TUNABLE, Recipe, checked_settings
from ..plugin_system.parameters import (
    canonical,
    parameters_of,
    spell,
    split_list,
    split_spec,
)
from ..plugin_system.registry import load_loss

FLAG = "--tune"


class Configuration(NamedTuple):
    """One point of a loss's grid.

    text: what it sets, for people. loss: the spec with its parameters. settings: of the recipe.
    """

    text: str
    loss: str
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def spelled_settings(self) -> str:
        """The settings alone, for people; empty where only parameters of the loss differ."""
        return ",".join(f"{key}={spell(value)}" for key, value in self.settings)

    def recipe(self, published: Recipe) -> Recipe:
        """The recipe that it trains with. Raises UserError for a bad one."""
        return published.changed(dict(self.settings))


class Axis(NamedTuple):
    """A parameter or recipe setting and the values to try; `loss` is what it is for (None: all)."""

    loss: str | None
    key: str
    values: tuple[str, ...]


def read_axis(text: str) -> Axis:
    """`ce: learning_rate=1e-4,3e-4`, or the same without a loss. Raises UserError."""
    head, colon, rest = text.rpartition(":")
    key, _, values = (part.strip() for part in rest.partition("="))
    found = tuple(split_list(values))
    loss = head.strip() if colon else None
    if not key or not found or loss == "":
        raise UserError(
            f"{FLAG} '{text}' is not of the form NAME=VALUE,VALUE or 'LOSS: NAME=VALUE,VALUE'."
        )
    return Axis(loss, key, found)


def tuning_grids(
    tune: Sequence[str], losses: Sequence[str], trials: int | None, seed: int
) -> dict[str, tuple[Configuration, ...]]:
    """The configurations of each loss, in the order of the values; `losses` are canonical.

    trials: so many are drawn of each grid, by the seed. Raises UserError for a name or value that
    a loss cannot take, where the losses would not have as many configurations each, and where two
    variants of a loss would have the same ones.
    """
    axes = [read_axis(text) for text in tune]
    _require_known(axes, losses)
    _require_once(axes)
    grids = {loss: _grid(loss, axes) for loss in losses}
    if trials is not None:
        small = [loss for loss in losses if len(grids[loss]) < trials]
        if small:
            raise UserError(
                f"--tune-trials {trials} is more than the {_count(grids[small[0]])} of {small[0]}: "
                f"give it more values with {FLAG}, or draw fewer."
            )
        grids = {loss: _drawn(grid, trials, seed) for loss, grid in grids.items()}
    _require_equal(grids)
    _require_different(grids)
    return grids


def require_effect(grids: Mapping[str, Sequence[Configuration]], recipe: Recipe) -> None:
    """Raise UserError where a grid varies a setting of LoRA and the recipe tunes all weights."""
    if recipe.method == "lora":
        return
    keys = (key for grid in grids.values() for point in grid for key, _ in point.settings)
    if without := next((key for key in keys if key.startswith("lora_")), None):
        raise UserError(
            f"{FLAG} varies {without}, which changes nothing with full fine-tuning: leave it out, "
            "or add --set method=lora."
        )


def _require_known(axes: Sequence[Axis], losses: Sequence[str]) -> None:
    """Raise UserError for an axis that no loss can be tuned along."""
    for axis in axes:
        meant = [loss for loss in losses if _is_for(axis, loss)]
        if not meant:
            hint = did_you_mean(str(axis.loss), losses)
            raise UserError(f"{FLAG} names '{axis.loss}', which is not in the losses: {hint}")
        if not any(_has(loss, axis.key) for loss in meant):
            known = {key for loss in meant for key in _parameters(loss)} | {*TUNABLE}
            what = "the losses" if axis.loss is None else axis.loss
            hint = did_you_mean(axis.key, sorted(known))
            raise UserError(f"{FLAG}: '{axis.key}' is not a parameter of {what}: {hint}")


def _require_once(axes: Sequence[Axis]) -> None:
    """Raise UserError where two axes are for the same losses and parameter."""
    for one, other in itertools.combinations(axes, 2):
        if (_of(one), one.key) == (_of(other), other.key):
            raise UserError(
                f"{FLAG} gives the values of {one.key} twice for {one.loss or 'all losses'}: write "
                f"them once, such as '{one.key}={','.join((*one.values, *other.values))}'."
            )


def _of(axis: Axis) -> str | None:
    return None if axis.loss is None else _canonical(axis.loss)


def _how_specific(axis: Axis) -> int:
    """2: for one variant, 1: for a loss and its variants, 0: for all losses."""
    return 0 if axis.loss is None else 1 + ("[" in axis.loss)


def _is_for(axis: Axis, loss: str) -> bool:
    name = loss.partition("[")[0]
    return axis.loss is None or axis.loss == name or _canonical(axis.loss) == loss


def _canonical(spec: str) -> str:
    try:
        return canonical(load_loss(spec))
    except UserError:
        return spec


def _parameters(loss: str) -> dict[str, Any]:
    return parameters_of(type(load_loss(loss)))


def _has(loss: str, key: str) -> bool:
    return key in _parameters(loss) or key in TUNABLE


def _grid(loss: str, axes: Sequence[Axis]) -> tuple[Configuration, ...]:
    """All combinations of the values for a loss; the values of a key that are for it alone replace
    those that are for its variants, too, and these those for all."""
    mine = {axis.key: axis for axis in sorted(axes, key=_how_specific) if _is_for(axis, loss)}
    mine = {key: axis for key, axis in mine.items() if _has(loss, key)}
    points = itertools.product(*(axis.values for axis in mine.values()))
    found = [_configuration(loss, dict(zip(mine, values, strict=True))) for values in points]
    for one, other in itertools.combinations(found, 2):
        if one[1:] == other[1:]:
            raise UserError(
                f"{FLAG} gives {loss} the same setting twice ({one.text} and {other.text}): leave "
                "one out, because each counts as a trial."
            )
    return tuple(found)


def _configuration(loss: str, values: Mapping[str, str]) -> Configuration:
    own = {key: value for key, value in values.items() if key in _parameters(loss)}
    settings = checked_settings({k: v for k, v in values.items() if k not in own})
    name, given = split_spec(loss)
    inside = ",".join(f"{key}={value}" for key, value in {**given, **own}.items())
    spec = canonical(load_loss(f"{name}[{inside}]" if inside else name))
    text = ",".join(f"{k}={spell(settings.get(k, v))}" for k, v in values.items())
    return Configuration(text, spec, tuple(settings.items()))


def _drawn(grid: Sequence[Configuration], count: int, seed: int) -> tuple[Configuration, ...]:
    """A random part of a grid, in its order; grids of one size lose the same places."""
    return tuple(grid[at] for at in sorted(random.Random(seed).sample(range(len(grid)), count)))


def _require_equal(grids: Mapping[str, Sequence[Configuration]]) -> None:
    """Raise UserError unless every loss has as many configurations, and more than one."""
    counts = {loss: len(grid) for loss, grid in grids.items()}
    most = max(counts.values())
    if most == 1:
        raise UserError(f"{FLAG} gives each loss one configuration: give at least two values.")
    if fewer := [loss for loss, count in counts.items() if count < most]:
        said = ", ".join(f"{loss} {count}" for loss, count in counts.items())
        raise UserError(
            f"{FLAG} gives the losses unequal numbers of configurations ({said}): give {fewer[0]} "
            f"{most}, such as {FLAG} '{fewer[0]}: learning_rate=...', or draw as many for each "
            "with --tune-trials."
        )


def _require_different(grids: Mapping[str, Sequence[Configuration]]) -> None:
    """Raise UserError where two variants of a loss would be one once they are tuned."""
    held: dict[frozenset[Any], str] = {}
    for loss, grid in grids.items():
        points = frozenset(point[1:] for point in grid)
        if (other := held.setdefault(points, loss)) != loss:
            raise UserError(
                f"{FLAG} gives {other} and {loss} the same configurations, so that one is tuned "
                f"for both: leave one out, or give it values of its own with {FLAG} '{loss}: ...'."
            )


def _count(grid: Sequence[Configuration]) -> str:
    return f"{len(grid)} configuration" + "s" * (len(grid) != 1)
