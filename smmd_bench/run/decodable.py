"""When an engine is worth its start: the cells of a base that it would serve."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..experiment.cell import Cell

ENOUGH = 4
"""Trained cells of a base for which an engine is started while more are to come."""
FEWEST = 2
"""Trained cells of a base that are worth an engine of their own where there is room for it."""

Base = tuple[str, str, str]


def base_of(cell: Cell) -> Base:
    """Name what one start of an engine serves: model, engine, dtype."""
    return cell.model, cell.engine, cell.recipe.dtype


@dataclass(frozen=True)
class DecodableBase:
    """The cells of one base that can be decoded now, and whether they are worth an engine's start.

    number_to_come: cells of the same base that are still to be trained.
    """

    ready: list[Cell]
    number_to_come: int

    def split_into_jobs(self, slots: int) -> Iterator[list[Cell]]:
        """Yield the cells of each engine that is worth its start; none, if it is better to wait."""
        if not self.number_to_come:
            yield from self._split_last(slots)
            return

        # The trainings wait for an answer of the base, so that it is worth an engine of its own.
        base = [cell for cell in self.ready if cell.is_base]
        if base:
            yield base

        # The others wait until one start serves enough of them, but not for all that are to come:
        # the epochs of each lie on the disk until it is decoded.
        trained = [cell for cell in self.ready if not cell.is_base]
        if len(trained) >= ENOUGH:
            yield trained

    def _split_last(self, slots: int) -> Iterator[list[Cell]]:
        """Split the last cells of a base: there is nothing to wait for, and every slot helps."""
        # Cells of one owner test the same weights, which one engine then loads once.
        owners = [*dict.fromkeys(cell.owner for cell in self.ready)]
        engines = min(slots, math.ceil(len(owners) / FEWEST))
        for number in range(engines):
            served = owners[number::engines]
            yield [cell for cell in self.ready if cell.owner in served]
