"""Tasks: their examples, answers and metrics; and the losses that are trained on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .numeric import NumericLoss, NumericVocabulary

Split = Literal["train", "validation", "test"]
Better = Literal["higher", "lower"]


class Modality(StrEnum):
    """What a prompt is made of."""

    TEXT = "text"
    VISION = "vision"


@dataclass(frozen=True, slots=True)
class Answer:
    """A parsed number: `value` is exact."""

    value: Fraction

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True, slots=True)
class Example:
    """One prompt with its target text, which the model is trained to write after it.

    `answer` is what `Task.parse(target)` must give. `attributes` are columns for analysis.
    `answer_start` is where the final answer begins in `target`, in characters: a target with a
    rationale before its answer must say so (0: there is none).
    """

    uid: str
    prompt: str
    target: str
    answer: Answer | None
    images: tuple[Path, ...] = ()
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    answer_start: int = 0


@runtime_checkable
class Metric(Protocol):
    """A number computed from the scored examples of one cell.

    `columns` are columns of the scored frame (see `smmd_bench.scoring.score`); only rows where the
    boolean column `subset` is true count (None: every row). `statistic` takes one array per
    column; it is vectorised over the other axes, for `scipy.stats.bootstrap(paired=True)`.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    label: ClassVar[str]
    better: ClassVar[Better]
    columns: ClassVar[tuple[str, ...]]
    subset: ClassVar[str | None]

    def statistic(
        self, *columns: NDArray[np.float64], axis: int = -1
    ) -> NDArray[np.float64]:
        """Reduce `axis` of every column (all of one shape) to the metric."""


@runtime_checkable
class Task(Protocol):
    """A source of examples, and the rule that reads an answer from a completion."""

    name: ClassVar[str]
    version: ClassVar[int]
    modality: ClassVar[Modality]
    max_new_tokens: ClassVar[int]
    paper_sizes: ClassVar[Mapping[Split, int]]

    def examples(
        self, split: Split, seed: int, limit: int | None = None
    ) -> Sequence[Example]:
        """The first `limit` examples of a split (None: the paper's number of them)."""

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """What identifies the split's data: generator version, parameters, seed, or digests."""

    def parse(self, completion: str) -> Answer | None:
        """The answer that a completion gives; None: unparsable, counted."""

    def metrics(self) -> Sequence[Metric]:
        """The metrics of the task, the one that selects checkpoints first."""


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
