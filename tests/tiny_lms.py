"""Configurations of tiny language models, with the tokenizers of tests/data."""

from typing import Any


def tiny_config(architecture: str, tokenizer: Any, **shape: Any) -> Any:
    """The configuration of a model of two layers; by model_type of transformers."""
    from transformers import AutoConfig

    default = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,  # vLLM has no CPU kernel for heads of less than 32
        "num_key_value_heads": 1,
        **special_tokens(tokenizer),
    }
    return AutoConfig.for_model(architecture, **{**default, **shape})


def special_tokens(tokenizer: Any) -> dict[str, int | None]:
    """The ids that a configuration names."""
    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    return {name: getattr(tokenizer, name) for name in names}
