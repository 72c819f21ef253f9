"""The supervised tokens of a batch, and those of them that are numeric.

Both are found on the CPU, where labels are when a batch is made, and move to the model's device
together: nothing that a GPU computes is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..contracts import NumericLoss, NumericPlaces, NumericTargets, mixed
from .number_places import number_places


@dataclass(frozen=True, slots=True, eq=False)
class SupervisedTargets:
    """The T supervised tokens of a batch, flat, and the M of them that are in a loss's V_num.

    label: the token to predict. row, position: where the logits that predict it stand: [T] int64.
    index: [M] int64, which of them are numeric, ascending; rows: the same, always on the CPU.
    places: what the loss sees of these without logits. units: of the loss, on them.
    """

    label: Tensor
    row: Tensor
    position: Tensor
    index: Tensor
    rows: NDArray[np.int64]
    places: NumericPlaces | None
    units: int

    def __len__(self) -> int:
        return int(self.label.numel())

    def to(
        self, device: torch.device | str, non_blocking: bool = True
    ) -> SupervisedTargets:
        """The same on a device, as a DataLoader asks for it."""
        moved: SupervisedTargets = _moved(self, device)
        return moved

    def at_step(self, seed: int, step: int) -> SupervisedTargets:
        """With keys of seed, step and example in place of the examples' own."""
        assert self.places is not None
        return replace(
            self, places=replace(self.places, key=mixed(seed, step, self.places.key))
        )

    def numeric(
        self, logits: Tensor, log_partition: Tensor, part: slice
    ) -> NumericTargets:
        """What the loss sees of a part of 0..M: logits [m, N], log_partition [m]."""
        values: dict[str, Any] = {}
        for field in fields(NumericPlaces):
            value = getattr(self.places, field.name)
            # The spans stay whole: a loss that has any is never evaluated in parts.
            values[field.name] = value[part] if isinstance(value, Tensor) else value
        return NumericTargets(logits=logits, log_partition=log_partition, **values)


def supervised_targets(
    loss: NumericLoss | None,
    labels: Tensor,
    keys: Tensor | None = None,
) -> SupervisedTargets:
    """The supervised tokens of aligned labels [B, T], -100 ignored: the caller has done any shift.

    keys: [B] int64, of the examples, see `NumericPlaces`; without them, the numbers of the rows.
    Without a loss no token is numeric.
    """
    if loss is not None and not isinstance(loss, NumericLoss):
        raise TypeError(
            f"{loss!r} is not bound to a vocabulary: pass loss.bind(numeric_vocabulary(tokenizer))."
        )
    labels = labels.cpu()
    row, position = (labels != -100).nonzero(as_tuple=True)
    label = labels[row, position]
    if loss is None:
        return SupervisedTargets(
            label, row, position, row[:0], row[:0].numpy(), None, 0
        )

    target = loss.vocabulary.index_of(label)  # [T]
    index = (target >= 0).nonzero().squeeze(1)  # [M]
    number, place, is_whole = number_places(
        loss.vocabulary, label, target, row, position
    )

    places = NumericPlaces(
        target=target[index],
        row=row[index],
        position=position[index],
        key=(row if keys is None else keys.cpu()[row])[index],
        number=number,
        place=place,
        whole=is_whole,
    )
    places = replace(places, spans=loss.spans(places))
    units = loss.units(places)
    return SupervisedTargets(label, row, position, index, index.numpy(), places, units)


def collate_targets(collate: Any, loss: NumericLoss, rows: list[Any]) -> dict[str, Any]:
    """A batch of `collate` that has the targets of its labels in place of these."""
    batch = dict(collate(rows))
    labels = batch.pop("labels")
    batch["targets"] = supervised_targets(loss, labels[:, 1:], batch["example"])
    return batch


def count_units(loss: NumericLoss | None, labels: Tensor) -> int:
    """The units of a loss in aligned labels [B, T], known before any forward pass."""
    return supervised_targets(loss, labels).units


def count_step(batches: Sequence[SupervisedTargets]) -> Tensor:
    """Tokens and units of the micro-batches of a step: [2] int64."""
    tokens = sum(map(len, batches))
    units = sum(targets.units for targets in batches)
    return torch.tensor([tokens, units])


def _moved(structure: Any, device: torch.device | str) -> Any:
    """The same with every tensor in it on a device."""
    if isinstance(structure, Tensor):
        return structure.to(device, non_blocking=True)
    if isinstance(structure, dict):
        return {name: _moved(value, device) for name, value in structure.items()}
    if isinstance(structure, SupervisedTargets | NumericPlaces):
        values = {
            field.name: getattr(structure, field.name) for field in fields(structure)
        }
        return replace(structure, **_moved(values, device))
    return structure
