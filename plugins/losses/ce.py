"""CE: the cross-entropy alone, the baseline of every table."""

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import NoAuxiliary, NumericVocabulary, parameter, share


@dataclass(frozen=True)
class CrossEntropy:
    """L = L_CE, over the full vocabulary: no numeric term.

    With `smoothing` = epsilon the one-hot target gives a share epsilon to all V tokens alike, as in
    `torch.nn.functional.cross_entropy(label_smoothing=epsilon)` (Szegedy et al. 2016); the reported
    cross-entropy is the plain one all the same.
    """

    name: ClassVar[str] = "ce"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: ClassVar[float] = 0.0
    smoothing: float = parameter(
        0.0, "label smoothing epsilon, over all tokens", check=share
    )

    def bind(self, vocabulary: NumericVocabulary) -> NoAuxiliary:
        """A module without units."""
        bound = NoAuxiliary(self, vocabulary)
        bound.label_smoothing = self.smoothing
        return bound
