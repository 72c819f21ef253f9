"""The supervised tokens of a batch, and those of them that are numeric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from ..contracts import NumericLoss, NumericPlaces, NumericTargets
from .number_places import number_places


@dataclass(frozen=True, slots=True, eq=False)
class SupervisedTargets:
    """The supervised tokens of a batch, flat: [T] int64 each.

    label: the token to predict. row, position: where the logits that predict it stand. key: of the
    example and step, see `NumericTargets`.
    """

    label: Tensor
    row: Tensor
    position: Tensor
    key: Tensor

    def __len__(self) -> int:
        return int(self.label.numel())


@dataclass(frozen=True, slots=True, eq=False)
class NumericPositions:
    """The supervised tokens that are in the V_num of a loss.

    index: [M] int64, which of the supervised tokens, ascending. places: what the loss sees of them
    without logits. units: of the loss, on these positions.
    """

    index: Tensor
    places: NumericPlaces
    units: int

    def targets(self, logits: Tensor, log_partition: Tensor, part: slice) -> NumericTargets:
        """What the loss sees of a part of the positions: logits [m, N], log_partition [m]."""
        found = {
            field.name: getattr(self.places, field.name)[part] for field in fields(self.places)
        }
        return NumericTargets(logits=logits, log_partition=log_partition, **found)


def supervised_targets(
    labels: Tensor, keys: Tensor | None = None, ignore_index: int = -100
) -> SupervisedTargets:
    """The supervised tokens of aligned labels [B, T]: the caller has done any shift.

    keys: [B] int64, of examples and step; without them, the numbers of the rows.
    """
    row, position = (labels != ignore_index).nonzero(as_tuple=True)
    key = row if keys is None else keys.to(row.device)[row]
    return SupervisedTargets(labels[row, position], row, position, key)


def numeric_positions(loss: NumericLoss, targets: SupervisedTargets) -> NumericPositions:
    """The numeric ones among the supervised tokens."""
    target = loss.vocabulary.index_of(targets.label)  # [T]
    index = (target >= 0).nonzero().squeeze(1)  # [M]
    number, place, whole = number_places(
        loss.vocabulary, targets.label, target, targets.row, targets.position
    )
    places = NumericPlaces(
        target=target[index],
        row=targets.row[index],
        position=targets.position[index],
        key=targets.key[index],
        number=number,
        place=place,
        whole=whole,
    )
    return NumericPositions(index, places, loss.units(places))


def count_units(loss: NumericLoss | None, labels: Tensor) -> int:
    """The units of a loss in aligned labels [B, T], known before any forward pass."""
    return 0 if loss is None else numeric_positions(loss, supervised_targets(labels)).units


def count_step(loss: NumericLoss | None, batches: Iterable[Mapping[str, Any]]) -> Tensor:
    """The supervised tokens and the units of micro-batches with unshifted labels: [2] int64."""
    shifted = [batch["labels"][:, 1:] for batch in batches]
    tokens = sum(int(labels.ne(-100).sum()) for labels in shifted)
    return torch.tensor([tokens, sum(count_units(loss, labels) for labels in shifted)])
