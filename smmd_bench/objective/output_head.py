"""The map from last hidden states to logits, and how to read it off a transformers model."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, slots=True, eq=False)
class OutputHead:
    """logits = cap(scale * (W h + b)), with cap(x) = soft_cap * tanh(x / soft_cap).

    weight: [V, H], frozen, trainable or tied to the embedding. bias: [V].
    """

    weight: Tensor
    bias: Tensor | None = None
    scale: float = 1.0
    soft_cap: float | None = None

    @property
    def plain(self) -> bool:
        """Whether the logits are W h alone, which the chunked cross-entropy needs."""
        return self.bias is None and self.scale == 1.0 and self.soft_cap is None

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., V]."""
        logits = F.linear(hidden, self.weight, self.bias) * self.scale
        if self.soft_cap is None:
            return logits
        return self.soft_cap * torch.tanh(logits / self.soft_cap)


def causal_model(model: Any) -> Any:
    """The causal language model itself, out of its PEFT wrapper where it has one."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Every module in evaluation mode inside, and in its own mode again afterwards."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def output_head(model: Any) -> OutputHead | None:
    """The head of a transformers causal language model, PEFT-wrapped or not.

    None where it is not a linear layer followed by a known scale and soft-cap, which is checked on
    a few tokens. Such a model's logits must come from its own forward pass: `logits_objective`.
    """
    causal = causal_model(model)
    layer = causal.get_output_embeddings()
    # A subclass, such as a quantised layer, may compute something else of its weight.
    if type(layer) is not torch.nn.Linear:
        return None
    config = causal.config.get_text_config()
    head = OutputHead(
        layer.weight,
        layer.bias,
        _scale(config),
        getattr(config, "final_logit_softcapping", None),
    )
    return head if _explains(head, causal) else None


def current(head: OutputHead, causal: Any) -> OutputHead:
    """The head with the layer's tensors as they are now: sharding replaces a layer's parameters."""
    layer = causal.get_output_embeddings()
    return replace(head, weight=layer.weight, bias=layer.bias)


def _scale(config: Any) -> float:
    """What the logits are multiplied by: Cohere and Falcon-H1 multiply, Granite divides."""
    scale: float = getattr(config, "logit_scale", None) or 1.0
    scale *= getattr(config, "lm_head_multiplier", None) or 1.0
    return scale / (getattr(config, "logits_scaling", None) or 1.0)


@torch.no_grad()  # type: ignore[untyped-decorator]
def _explains(head: OutputHead, causal: Any) -> bool:
    """Whether the head gives the model's own logits on a few tokens."""
    vocabulary_size = len(head.weight)
    # [1, 4]
    tokens = torch.arange(1, 5, device=head.weight.device)[None] % vocabulary_size
    with evaluating(causal):
        hidden = causal.base_model(input_ids=tokens, use_cache=False).last_hidden_state
        logits = causal(input_ids=tokens, use_cache=False).logits.float()
    predicted = head.logits(hidden).float()
    if predicted.shape != logits.shape:
        return False

    # Each rounding to bfloat16 is off by up to 0.4 %, and the model may round in another order.
    is_wide = head.weight.dtype in (torch.float32, torch.float64)
    tolerance = 1e-4 if is_wide else 2e-2
    largest = (predicted - logits).abs().max()
    return bool(largest <= tolerance * float(logits.abs().max()))
