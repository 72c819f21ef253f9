"""The contract of a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from .numeric import NumericLoss, NumericVocabulary


@runtime_checkable
class Loss(Protocol):
    """A training loss: cross-entropy plus, or at numeric positions replaced by, an auxiliary."""

    name: ClassVar[str]
    version: ClassVar[int]

    @property
    def replaces_cross_entropy(self) -> bool:
        """Whether the auxiliary stands in place of the cross-entropy at numeric positions."""

    @property
    def weight(self) -> float:
        """Lambda, by which an additive auxiliary is multiplied; a replacing one is not weighted."""

    def bind(self, vocabulary: NumericVocabulary) -> NumericLoss:
        """The auxiliary as a module over `NumericTargets`, with its constants over V_num."""
