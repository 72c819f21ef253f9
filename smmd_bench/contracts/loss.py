"""The contract of a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from .numeric import NumericVocabulary, Weighting

if TYPE_CHECKING:
    from .numeric_loss import NumericLoss


@runtime_checkable
class Loss(Weighting, Protocol):
    """A training loss: cross-entropy plus, or at numeric positions replaced by, an auxiliary."""

    name: ClassVar[str]
    version: ClassVar[int]

    def bind(self, vocabulary: NumericVocabulary) -> NumericLoss:
        """The auxiliary as a module over `NumericTargets`, with its constants over V_num."""
