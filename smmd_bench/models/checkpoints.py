"""What a checkpoint folder tells an engine: where to stop, how long a context may be."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..contracts import Checkpoint, EngineSettings
from ..errors import UserError
from ..storage.files import read_given_json

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
        raise UserError(
            f"The checkpoint {base} names no end-of-sequence token, neither in its tokenizer nor "
            "in generation_config.json: set eos_token there, or decoding never stops."
        )
    return sorted(found)


def context_length(base: Path, settings: EngineSettings) -> int:
    """The longest context: `max_model_length`, or the model's positions where they are fewer."""
    return at_most_positions(base, settings.max_model_length)


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
                f"Prompt {index} has {length} tokens; with up to {new_tokens} new ones it "
                f"does not fit the context of {context} tokens, and prompts are never cut: raise "
                "max_model_length (up to the model's own positions), ask for fewer new tokens, or "
                "leave the example out."
            )


def require_safetensors(checkpoint: Checkpoint) -> None:
    """Raise UserError unless the folder holds weights as safetensors, with every part of them."""
    pattern = "adapter_model.safetensors" if checkpoint.kind == "lora" else "*.safetensors"
    if not any(checkpoint.path.glob(pattern)):
        raise UserError(
            f"Checkpoint '{checkpoint.name}' ({checkpoint.path}) has no {pattern}: save it "
            "with save_pretrained of transformers or PEFT; no other format is loaded."
        )
    index = read_given_json(checkpoint.path / "model.safetensors.index.json")
    named = {str(name) for name in dict(index.get("weight_map") or {}).values()}
    if lacking := sorted(name for name in named if not (checkpoint.path / name).is_file()):
        raise UserError(
            f"Checkpoint '{checkpoint.name}' ({checkpoint.path}) has no {', '.join(lacking)}, "
            "which its model.safetensors.index.json names: copy it again."
        )
