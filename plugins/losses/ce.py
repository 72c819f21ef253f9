"""CE: the cross-entropy alone, the baseline of every table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.numbers import NumericVocabulary
from smmd_bench.training.numeric_loss import NoAuxiliary


@dataclass(frozen=True)
class CrossEntropy:
    """L = L_CE, over the full vocabulary: no numeric term."""

    name: ClassVar[str] = "ce"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: ClassVar[float] = 0.0

    def bind(self, vocabulary: NumericVocabulary) -> NoAuxiliary:
        """A module without units."""
        return NoAuxiliary(self, vocabulary)
