"""What a checkpoint folder tells an engine: where to stop, how long a context may be."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..contracts import Checkpoint
from ..errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def stop_token_ids(base: Path, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The end-of-sequence tokens: the generation config's and the tokenizer's, sorted."""
    from transformers import GenerationConfig

    found: set[int] = set()
    if tokenizer.eos_token_id is not None:
        found.add(int(tokenizer.eos_token_id))
    if (base / "generation_config.json").exists():
        configured = GenerationConfig.from_pretrained(base).eos_token_id
        if configured is not None:
            found.update([configured] if isinstance(configured, int) else configured)
    if not found:
        raise UserError(f"The checkpoint {base} names no end-of-sequence token: set eos_token.")
    return sorted(found)


def at_most_positions(base: Path, tokens: int) -> int:
    """`tokens`, or the positions of a checkpoint's model where they are fewer."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(base).get_text_config()
    return min(tokens, getattr(config, "max_position_embeddings", None) or tokens)


def embedding_rows(base: Path) -> int:
    """How many token ids the model of a checkpoint has."""
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(base).get_text_config().vocab_size)


def require_room(lengths: Iterable[int], new_tokens: int, context: int) -> None:
    """Raise UserError for the first prompt that is empty, or too long with its new tokens."""
    for index, length in enumerate(lengths):
        if not length:
            raise UserError(f"Prompt {index} is empty: give it at least one token.")
        if length + new_tokens > context:
            raise UserError(
                f"Prompt {index} has {length} tokens, which with {new_tokens} new ones do not fit "
                f"the context of {context}: raise max_model_length, or leave the example out."
            )


def require_safetensors(checkpoint: Checkpoint) -> None:
    """Raise UserError unless the folder holds weights as safetensors."""
    pattern = "adapter_model.safetensors" if checkpoint.kind == "lora" else "*.safetensors"
    if not any(checkpoint.path.glob(pattern)):
        raise UserError(
            f"Checkpoint '{checkpoint.name}' ({checkpoint.path}) has no {pattern}: save it "
            "with save_pretrained of transformers or PEFT; no other format is loaded."
        )
