"""A loss of the user's, whose STRENGTH is edited."""

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Loss

STRENGTH = 0


@dataclass(frozen=True)
class Mine:
    """What the stub of the training makes of it depends on `strength`."""

    name: ClassVar[str] = "mine"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: ClassVar[float] = 1.0
    strength: ClassVar[int] = STRENGTH

    def bind(self, vocabulary: object) -> Loss:
        raise NotImplementedError  # the training is a stub
