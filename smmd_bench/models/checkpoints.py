"""What a checkpoint folder tells an engine: where to stop, how long a context may be."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contracts import Checkpoint
from ..errors import UserError, quoted
from ..storage.files import read_given_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def stop_token_ids(base: Path, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The end-of-sequence tokens, sorted: the tokenizer's, and those of generation_config.json, or
    of config.json where that file is missing, as vLLM takes them. Raises UserError for one that is
    no token of the model, and where there is none."""
    from transformers import AutoConfig, GenerationConfig

    file = base / "generation_config.json"
    if file.exists():
        configured = read_given_json(file).get("eos_token_id")
    else:
        file = base / "config.json"
        defaults = GenerationConfig.from_model_config(AutoConfig.from_pretrained(base))
        configured = defaults.eos_token_id

    listed = configured if isinstance(configured, list) else [configured]
    stop = [token for token in (*listed, tokenizer.eos_token_id) if token is not None]
    rows = embedding_rows(base)

    # A token outside of the vocabulary would never end an answer, and `true` is no token 1.
    for token in stop:
        if type(token) is not int or not 0 <= token < rows:
            source = file if token in listed else f"The tokenizer of {base}"
            raise UserError(
                f"{source} names the end-of-sequence token {quoted(token)}, and the tokens of the "
                f"model are 0 to {rows - 1}: correct it there."
            )

    if not stop:
        raise UserError(
            f"The checkpoint {base} names no end-of-sequence token: set eos_token."
        )
    return sorted({*stop})


def at_most_positions(base: Path, tokens: int) -> int:
    """`tokens`, or the positions of a checkpoint's model where they are fewer."""
    positions = getattr(_text_config(base), "max_position_embeddings", None)
    return min(tokens, positions or tokens)


def embedding_rows(base: Path) -> int:
    """How many token ids the model of a checkpoint has."""
    return int(_text_config(base).vocab_size)


def training_bytes(base: Path, weights: int, tokens: int) -> float:
    """Estimate the GPU memory of LoRA in bfloat16 without gradient checkpointing, in bytes.

    weights: parameters of the base. tokens: of a micro-batch, with padding. Autograd keeps some 23
    bytes a token for each hidden unit of a layer, and 8.5 for each unit of its MLP: that gives the
    four models measured in docs/cluster.md ("How much memory") to 2 %. 3 GiB are for CUDA, the
    output head and fragments.
    """
    config = _text_config(base)
    units = 23 * config.hidden_size + 8.5 * config.intermediate_size
    activations = float(tokens * config.num_hidden_layers * units)
    return 2 * weights + 3 * 2**30 + activations


def _text_config(base: Path) -> Any:
    """The configuration of the language model, which may be a part of a larger one."""
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(base).get_text_config()


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
    pattern = (
        "adapter_model.safetensors" if checkpoint.kind == "lora" else "*.safetensors"
    )
    if not any(checkpoint.path.glob(pattern)):
        raise UserError(
            f"Checkpoint '{checkpoint.name}' ({checkpoint.path}) has no {pattern}: save it "
            "with save_pretrained of transformers or PEFT; no other format is loaded."
        )
