"""The contracts between the harness and its plugins, and the frozen data that they exchange.

Nothing here imports torch, vLLM or pandas at run time, so that plugins can be listed quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from torch import Tensor

    from .encoding.numbers import NumericVocabulary
    from .objective.numeric_loss import NumericLoss
    from .results.frames import RunFrames

Split = Literal["train", "validation", "test"]


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
    """One prompt with its target text.

    `target` is what the model is trained to write after `prompt` (without the end-of-sequence
    token), `answer` what `Task.parse(target)` must give. `attributes` are columns for analysis,
    such as the number of operations. `answer_start` is where the final answer begins in `target`,
    in characters: a target with a rationale before its answer must say so (0: there is none).
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
    column and reduces `axis`; it is vectorised, so that `scipy.stats.bootstrap(paired=True)` can
    call it on resamples.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    label: ClassVar[str]
    better: ClassVar[Literal["higher", "lower"]]
    columns: ClassVar[tuple[str, ...]]
    subset: ClassVar[str | None]

    def statistic(self, *columns: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        """Reduce `axis` of every column (all of one shape) to the metric."""
        ...


@runtime_checkable
class Task(Protocol):
    """A source of examples, and the rule that reads an answer from a completion."""

    name: ClassVar[str]
    version: ClassVar[int]
    modality: ClassVar[Modality]
    max_new_tokens: ClassVar[int]
    paper_sizes: ClassVar[Mapping[Split, int]]

    def examples(self, split: Split, seed: int, limit: int | None = None) -> Sequence[Example]:
        """The first `limit` examples of a split (None: the paper's number of them)."""
        ...

    def identity(self, split: Split, seed: int) -> Mapping[str, Any]:
        """What identifies the split's data: generator version, parameters, seed, or digests."""
        ...

    def parse(self, completion: str) -> Answer | None:
        """The answer that a completion gives; None: unparsable, counted."""
        ...

    def metrics(self) -> Sequence[Metric]:
        """The metrics of the task, the one that selects checkpoints first."""
        ...


@runtime_checkable
class Loss(Protocol):
    """A training loss: cross-entropy plus, or at numeric positions replaced by, an auxiliary.

    `weight` is lambda; a replacing loss is not weighted.
    """

    name: ClassVar[str]
    version: ClassVar[int]

    @property
    def replaces_cross_entropy(self) -> bool:
        """Whether the auxiliary stands in place of the cross-entropy at numeric positions."""
        ...

    @property
    def weight(self) -> float:
        """Lambda, by which an additive auxiliary is multiplied."""
        ...

    def bind(self, vocabulary: NumericVocabulary) -> NumericLoss:
        """The auxiliary as a module over `NumericTargets`, with its constants over V_num."""
        ...


@dataclass(frozen=True, slots=True)
class NumericTargets:
    """What a loss sees: the positions of a batch whose target is a numeric token.

    logits: [M, N] over V_num, float32 or wider, differentiable.
    log_partition: [M], logsumexp over the whole vocabulary, differentiable.
    target: [M] int64, indices into V_num. row, position: [M] int64, where in the batch it stands;
    in reading order. key: [M] int64, names the example and the optimiser step, however the batch is
    split: what a loss keys its noise to (`smmd_bench.objective.keyed_noise`).
    """

    logits: Tensor
    log_partition: Tensor
    target: Tensor
    row: Tensor
    position: Tensor
    key: Tensor


CheckpointKind = Literal["base", "lora", "full"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights to decode with: the base as it is, an adapter on it, or a full replacement.

    `name` is unique in a session; `path` is the folder (for `base`, the base itself); `canary`
    holds what transformers says of these weights.
    """

    name: str
    kind: CheckpointKind
    path: Path
    canary: Canary | None = None


@dataclass(frozen=True, slots=True)
class Canary:
    """Log-probabilities, by transformers in float32, that identify a checkpoint's weights.

    `log_probabilities[k]` are those of the last tokens of `token_ids[k]`, as many as are given:
    `EngineSession.log_probabilities` must end with them. The last `pictures` sequences read the
    picture of `smmd_bench.training.canary_picture`. `rounded` is the same in the dtype that the
    engine runs in (empty in float32), from which the rounding noise is known. `rivals` are the
    checkpoints that an engine could run in place of this one: names and `log_probabilities`.
    """

    token_ids: tuple[tuple[int, ...], ...]
    log_probabilities: tuple[tuple[float, ...], ...]
    pictures: int = 0
    rounded: tuple[tuple[float, ...], ...] = ()
    rivals: tuple[tuple[str, tuple[tuple[float, ...], ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How an engine is started; of all this only the dtype and the pixels can change answers.

    `memory_gb` is for the key-value cache on a CPU; on a GPU vLLM asks for most of what is free.
    `min_pixels` and `max_pixels` are the processor's limits on an image (None: the checkpoint's
    own); `images` is the most that a prompt has.
    """

    dtype: str = "float32"
    max_model_length: int = 2048
    max_log_probabilities: int = 1000
    max_lora_rank: int = 16
    adapters: bool = False
    seed: int = 0
    memory_gb: float = 1.0
    min_pixels: int | None = None
    max_pixels: int | None = None
    images: int = 1


@dataclass(frozen=True, slots=True)
class Completion:
    """Greedy text after a prompt; `finish_reason` is "stop" or "length".

    `token_ids` end with the end-of-sequence token where there was one; `text` is without it.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: str


Progress = Callable[[str, int, int], None]
"""`progress(what, done, total)`: called often; must be cheap. With total 0, `what` is a message."""


Images = Sequence[Sequence[Path]]
"""The image files of each row, in the order of their placeholders."""


class EngineSession(Protocol):
    """A started engine. Each call names the checkpoint that it is for.

    Token ids hold one placeholder an image; `images` are the files that stand there, parallel to
    the rows (None: no row has any).
    """

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        checkpoint: Checkpoint,
        *,
        max_new_tokens: int,
        images: Images | None = None,
        progress: Progress | None = None,
    ) -> list[Completion]:
        """Greedy completions of tokenised prompts, in order; stops at the end-of-sequence token."""
        ...

    def next_token_probabilities(
        self,
        prefixes: Sequence[Sequence[int]],
        token_ids: Sequence[int],
        checkpoint: Checkpoint,
        *,
        images: Images | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """softmax over `token_ids` of the next token's logits after each prefix: [n, N]."""
        ...

    def log_probabilities(
        self,
        sequences: Sequence[Sequence[int]],
        checkpoint: Checkpoint,
        *,
        images: Images | None = None,
    ) -> list[list[float]]:
        """For each sequence, log p of every token after the first, over the whole vocabulary; with
        images, of every token after the last image."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Decodes prompts with many checkpoints of one base.

    An engine that cannot run every architecture may have `refuses(base: Path) -> str | None`: why
    it cannot run a checkpoint, as a clause; None: it can. What it refuses, transformers decodes.
    """

    name: ClassVar[str]
    version: ClassVar[int]

    def identity(self) -> Mapping[str, Any]:
        """What of the engine can change its answers: its name, version and its library's."""
        ...

    def open(self, base: Path, settings: EngineSettings) -> AbstractContextManager[EngineSession]:
        """Start the engine on a base checkpoint folder; leaving the context stops it."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work that runs in a process of its own: `python -m smmd_bench.run.worker FILE`.

    `stage` is "train" or "decode"; `label` is what people read; `cells` are the addresses that it
    serves; `payload` is the JSON that the worker reads.
    """

    stage: str
    label: str
    cells: tuple[str, ...]
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `failure` is None or the last words of the process."""

    job: Job
    failure: str | None


@runtime_checkable
class Executor(Protocol):
    """Runs jobs somewhere and yields each result as its job ends. No part of any address."""

    name: ClassVar[str]

    def run(self, jobs: Sequence[Job], folder: Path, progress: Progress) -> Iterator[JobResult]:
        """Run all jobs; a job that dies never stops the others."""
        ...


@runtime_checkable
class Report(Protocol):
    """One table or figure of the paper, made from the frames of a run."""

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]

    def skip(self, run: RunFrames) -> str | None:
        """Why this report has nothing to show of the run; None: it has."""
        ...

    def build(self, run: RunFrames) -> Artefact:
        """The table or figure."""
        ...


@dataclass(frozen=True)
class Artefact:
    """What a report makes: a table, a figure, or both, with the sentence that goes under it.

    `caption` says n, seeds, intervals and what is published; `data` is the tidy frame behind a
    figure, written beside it as CSV.
    """

    caption: str
    table: pd.DataFrame | None = None
    figure: Figure | None = None
    data: pd.DataFrame | None = None
