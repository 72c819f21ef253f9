"""The configurations that a loss is tuned over: as many for every loss.

`--tune 'lambda=0.1,1,10'` holds for every loss that has the parameter, `--tune 'ce: learning_rate=
1e-4,3e-4,1e-3'` for that loss alone. What a loss has of both makes a grid: all combinations.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ..errors import UserError, did_you_mean
from ..models.recipe import TUNABLE, checked_settings
from ..plugin_system.parameters import canonical, parameters_of, spell, split_list, split_spec
from ..plugin_system.registry import load_loss

_Axes = Mapping[tuple[str, str], Sequence[str]]
"""By loss ("": all) and parameter or recipe setting, the values to try."""


class Configuration(NamedTuple):
    """One point of a loss's grid.

    text: what it sets, for people. loss: the spec with its parameters. settings: of the recipe.
    """

    text: str
    loss: str
    settings: tuple[tuple[str, Any], ...] = ()


def read_axes(tune: Iterable[str]) -> _Axes:
    """`ce: learning_rate=1e-4,3e-4`, or the same without a loss; what is given twice adds up.
    Raises UserError for another form."""
    axes: dict[tuple[str, str], list[str]] = {}
    for text in tune:
        head, colon, rest = text.rpartition(":")
        key, _, values = (part.strip() for part in rest.partition("="))
        loss, found = head.strip(), split_list(values)
        if not key or not found or bool(loss) != bool(colon):
            raise UserError(
                f"--tune '{text}' is not of the form NAME=VALUE,VALUE or 'LOSS: NAME=VALUE,VALUE'."
            )
        with suppress(UserError):  # an unknown loss is said in planning
            loss = canonical(load_loss(loss)) if "[" in loss else loss
        axes.setdefault((loss, key), []).extend(found)
    return axes


def tuning_grids(
    tune: Sequence[str], losses: Sequence[str], trials: int | None, seed: int
) -> dict[str, tuple[Configuration, ...]]:
    """The configurations of each loss, in the order of the values; `losses` are canonical.

    trials: so many are drawn of each larger grid, by the seed; grids of one size lose the same
    places. Raises UserError for a name or value that a loss cannot take, where the losses would not
    have as many configurations each, and where two variants of a loss would have the same ones.
    """
    axes = read_axes(tune)
    _require_known(axes, losses)
    grids = {loss: _grid(loss, axes) for loss in losses}
    for loss, grid in grids.items() if trials is not None else ():
        drawn = random.Random(seed).sample(range(len(grid)), min(trials or 0, len(grid)))
        grids[loss] = tuple(grid[at] for at in sorted(drawn))
    _require_fair(grids)
    return grids


def _require_known(axes: _Axes, losses: Sequence[str]) -> None:
    """Raise UserError for an axis that no loss can be tuned along."""
    for name, key in axes:
        meant = [loss for loss in losses if _is_for(name, loss)]
        if not meant:
            hint = did_you_mean(name, losses)
            raise UserError(f"--tune names '{name}', which is not in the losses: {hint}")
        known = {key for loss in meant for key in _keys(loss)}
        if key not in known:
            what = name or "the losses"
            hint = did_you_mean(key, known)
            raise UserError(f"--tune: '{key}' is not a parameter of {what}: {hint}")


def _is_for(name: str, loss: str) -> bool:
    """Whether an axis holds for a loss: that of "", of its name, or of it alone."""
    return name in ("", loss.partition("[")[0], loss)


def _keys(loss: str) -> set[str]:
    return {*parameters_of(type(load_loss(loss))), *TUNABLE}


def _grid(loss: str, axes: _Axes) -> tuple[Configuration, ...]:
    """All combinations of the values for a loss; the values of a key that are for it alone replace
    those that are for its variants, too, and these those for all."""
    mine: dict[str, Sequence[str]] = {}
    for name, key in sorted(axes, key=lambda axis: (bool(axis[0]), "[" in axis[0])):
        if _is_for(name, loss) and key in _keys(loss):
            mine[key] = axes[name, key]
    points = [dict(zip(mine, values, strict=True)) for values in itertools.product(*mine.values())]
    found = {one[1:]: one for one in (_configuration(loss, point) for point in points)}
    return tuple(found.values())


def _configuration(loss: str, values: Mapping[str, str]) -> Configuration:
    known = parameters_of(type(load_loss(loss)))
    own = {key: value for key, value in values.items() if key in known}
    settings = checked_settings({k: v for k, v in values.items() if k not in own})
    name, given = split_spec(loss)
    inside = ",".join(f"{key}={value}" for key, value in {**given, **own}.items())
    spec = canonical(load_loss(f"{name}[{inside}]" if inside else name))
    text = ",".join(f"{k}={spell(settings.get(k, v))}" for k, v in values.items())
    return Configuration(text, spec, tuple(settings.items()))


def _require_fair(grids: Mapping[str, Sequence[Configuration]]) -> None:
    """Raise UserError unless every loss has as many configurations, more than one, and its own."""
    counts = {loss: len(grid) for loss, grid in grids.items()}
    most = max(counts.values())
    if most == 1:
        raise UserError("--tune gives each loss one configuration: give at least two values.")
    if fewer := [loss for loss, count in counts.items() if count < most]:
        said = ", ".join(f"{loss} {count}" for loss, count in counts.items())
        raise UserError(
            f"--tune gives the losses unequal numbers of configurations ({said}): give {fewer[0]} "
            f"{most}, such as --tune '{fewer[0]}: learning_rate=...', or give --tune-trials."
        )
    held: dict[frozenset[Any], str] = {}
    for loss, grid in grids.items():
        if (other := held.setdefault(frozenset(point[1:] for point in grid), loss)) != loss:
            raise UserError(
                f"--tune gives {other} and {loss} the same configurations, so that one is tuned "
                f"for both: leave one out, or give it values of its own with --tune '{loss}: ...'."
            )
