"""Engines: checkpoints, their canaries, settings, sessions and completions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

    `log_probabilities[k]` are those of the last tokens of `token_ids[k]`. The last `pictures`
    sequences read a picture. `rounded` is the same in the dtype of the engine (empty in float32).
    `rivals` are checkpoints that an engine could run instead: names and `log_probabilities`.
    """

    token_ids: tuple[tuple[int, ...], ...]
    log_probabilities: tuple[tuple[float, ...], ...]
    pictures: int = 0
    rounded: tuple[tuple[float, ...], ...] = ()
    rivals: tuple[tuple[str, tuple[tuple[float, ...], ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How an engine is started; only the dtype and the pixels can change answers.

    `memory_gb`: of the key-value cache on a CPU. `min_pixels`, `max_pixels`: the processor's limits
    (None: the checkpoint's own). `images`: the most of a prompt.
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
    """Greedy text; `token_ids` end with the end of sequence; `finish_reason`: stop or length."""

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

    def likeliest_tokens(
        self,
        prefixes: Sequence[Sequence[int]],
        checkpoint: Checkpoint,
        *,
        most: int,
        images: Images | None = None,
        progress: Progress | None = None,
    ) -> list[dict[int, float]]:
        """The `most` likeliest next tokens after each prefix: token id and log p over the whole
        vocabulary. Decoding rules other than greedy need it."""


@runtime_checkable
class Engine(Protocol):
    """Decodes prompts with many checkpoints of one base.

    It may have `refuses(base: Path) -> str | None`: why it cannot run a checkpoint, as a clause;
    None: it can. What it refuses, transformers decodes. And `require(base: Path, settings:
    EngineSettings, gpus: int)`, which raises UserError where it cannot run the checkpoint so, on so
    many GPUs; it is called before training.
    """

    name: ClassVar[str]
    version: ClassVar[int]

    def identity(self) -> Mapping[str, Any]:
        """What of the engine can change its answers: its name, version and its library's."""

    def open(
        self, base: Path, settings: EngineSettings
    ) -> AbstractContextManager[EngineSession]:
        """Start the engine on a base checkpoint folder; leaving the context stops it."""
