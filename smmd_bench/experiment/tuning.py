"""The configurations that a loss is tuned over: as many for every loss.

`--tune 'lambda=0.1,1,10'` holds for every loss that has the parameter, `--tune 'ce: learning_rate=
1e-4,3e-4,1e-3'` for that loss alone. What a loss has of both makes a grid: all combinations.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, product
from typing import Any, NamedTuple

from ..errors import UserError, did_you_mean
from ..models.recipe import TUNABLE, checked_settings
from ..plugin_system.parameters import (
    canonical,
    parameters_of,
    spell,
    split_list,
    split_spec,
)
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
    """Read `ce: learning_rate=1e-4,3e-4`, also without a loss; what is given twice adds up.
    Raises UserError for another form."""
    axes: dict[tuple[str, str], list[str]] = {}
    for text in tune:
        loss, colon, assignment = text.rpartition(":")
        key, _, listed = assignment.partition("=")
        loss = loss.strip()
        key = key.strip()
        values = split_list(listed.strip())
        # `: lambda=1` names no loss, and still has its colon.
        has_whole_loss = bool(loss) == bool(colon)
        if not key or not values or not has_whole_loss:
            raise UserError(
                f"--tune '{text}' is not of the form NAME=VALUE,VALUE or 'LOSS: NAME=VALUE,VALUE'."
            )

        # An unknown loss is said in planning, where the losses are known.
        with suppress(UserError):
            loss = canonical(load_loss(loss)) if "[" in loss else loss
        axes.setdefault((loss, key), []).extend(values)
    return axes


def tuning_grids(
    tune: Sequence[str], losses: Sequence[str], trials: int | None, seed: int
) -> dict[str, tuple[Configuration, ...]]:
    """Make the configurations of each loss, in the order of the values; `losses` are canonical.

    trials: so many are drawn of each larger grid, by the seed; grids of one size lose the same
    places. Raises UserError for a name or value that a loss cannot take, where the losses would not
    have as many configurations each, and where two variants of a loss would have the same ones.
    """
    axes = read_axes(tune)
    # A name that fits no loss would otherwise change nothing, in silence.
    _require_tunable(axes, losses)
    grids = {loss: _make_grid(loss, axes) for loss in losses}
    if trials is not None:
        for loss, grid in grids.items():
            grids[loss] = _draw(grid, trials, seed)
    _require_as_many(grids)
    _require_different(grids)
    return grids


def _draw(
    grid: tuple[Configuration, ...], trials: int, seed: int
) -> tuple[Configuration, ...]:
    # The generator is new for every grid, so that those of one size lose the same places.
    drawn = random.Random(seed).sample(range(len(grid)), min(trials, len(grid)))
    return tuple(grid[place] for place in sorted(drawn))


def _require_tunable(axes: _Axes, losses: Sequence[str]) -> None:
    """Raise UserError for an axis that no loss can be tuned along."""
    for name, key in axes:
        meant = [loss for loss in losses if _is_for(name, loss)]
        if not meant:
            hint = did_you_mean(name, losses)
            raise UserError(
                f"--tune names '{name}', which is not in the losses: {hint}"
            )

        # One of them is enough: the others keep to what they have.
        tunable = set(chain(*map(_find_tunable, meant)))
        if key not in tunable:
            owner = name or "the losses"
            hint = did_you_mean(key, tunable)
            raise UserError(f"--tune: '{key}' is not a parameter of {owner}: {hint}")


def _is_for(name: str, loss: str) -> bool:
    """Check whether an axis holds for a loss: that of "", of its name, or of it alone."""
    return name in ("", loss.partition("[")[0], loss)


def _find_tunable(loss: str) -> set[str]:
    return {*parameters_of(type(load_loss(loss))), *TUNABLE}


def _make_grid(loss: str, axes: _Axes) -> tuple[Configuration, ...]:
    """Combine all values for a loss: those for it alone, or else those for all its variants, or
    else those for all losses."""
    tunable = _find_tunable(loss)
    names = {name for name, _ in axes if _is_for(name, loss)}
    # "" < smmd < smmd[sigma=1]: the longer a name, the fewer losses it means.
    closest = max(names, key=len, default="")
    values: dict[str, Sequence[str]] = {}
    for (name, key), listed in axes.items():
        if name == closest and key in tunable:
            values[key] = listed

    # Values that are spelled in two ways, as 0.1 and 1e-1, make one configuration.
    grid = {}
    for combination in product(*values.values()):
        point = dict(zip(values, combination, strict=True))
        configuration = _make_configuration(loss, point)
        grid[configuration[1:]] = configuration
    return tuple(grid.values())


def _make_configuration(loss: str, values: Mapping[str, str]) -> Configuration:
    parameters = parameters_of(type(load_loss(loss)))
    name, in_spec = split_spec(loss)
    of_recipe: dict[str, str] = {}
    # A parameter of the loss hides a setting of the recipe that has its name.
    for key, value in values.items():
        if key in parameters:
            in_spec[key] = value
        else:
            of_recipe[key] = value

    settings = checked_settings(of_recipe)
    inside = ",".join(f"{key}={value}" for key, value in in_spec.items())
    spec = canonical(load_loss(f"{name}[{inside}]" if inside else name))

    # A setting is written as the recipe reads it: 3e-4 and 0.0003 are the same text.
    text = ",".join(
        f"{key}={spell(settings.get(key, value))}" for key, value in values.items()
    )
    return Configuration(text, spec, tuple(settings.items()))


def _require_as_many(grids: Mapping[str, Sequence[Configuration]]) -> None:
    """Raise UserError unless every loss has as many configurations, and more than one."""
    counts = {loss: len(grid) for loss, grid in grids.items()}
    largest = max(counts.values())
    if largest == 1:
        raise UserError(
            "--tune gives each loss one configuration: give at least two values."
        )

    # The best of more configurations is better by chance alone.
    for loss, count in counts.items():
        if count < largest:
            listed = ", ".join(f"{name} {number}" for name, number in counts.items())
            raise UserError(
                f"--tune gives the losses unequal numbers of configurations ({listed}): give "
                f"{loss} {largest}, such as --tune '{loss}: learning_rate=...', or give "
                "--tune-trials."
            )


def _require_different(grids: Mapping[str, Sequence[Configuration]]) -> None:
    """Raise UserError where two losses, such as variants of one, have the same configurations."""
    owners: dict[frozenset[Any], str] = {}
    for loss, grid in grids.items():
        # The first of a configuration is its text, which may spell a number otherwise.
        configurations = frozenset(point[1:] for point in grid)
        owner = owners.setdefault(configurations, loss)
        if owner != loss:
            raise UserError(
                f"--tune gives {owner} and {loss} the same configurations, so that one is tuned "
                f"for both: leave one out, or give it values of its own with --tune '{loss}: ...'."
            )
