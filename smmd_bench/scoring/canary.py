"""The canary of a checkpoint: a few log-probabilities that say which weights an engine runs.

An engine that swaps weights or adapters can go on with the old ones without a word. So training
writes down what transformers says of a few fixed sequences, and an engine session compares its own
log-probabilities with them whenever another checkpoint becomes the current one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..contracts import Canary, Checkpoint

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TEXTS = (
    "What is 12 + 345? 357",
    "Calculate (7 - 28)*9/3. -63",
    "A farmer has 160 sheep and sells 48. How many are left? 112",
    "The time is 10:42.",
)
"""What a canary reads unless it is given token ids: numbers, because fine-tuning moves those."""

LARGEST = {"float32": 1e-3}
"""How far any token may be off, by the dtype that the engine runs in."""
MEAN = {"bfloat16": 0.1, "float16": 0.03}
"""How far tokens may be off on average in half precision, where an improbable token alone can be
off by 0.7. Seen: 0.01 to 0.04 in bfloat16 and up to 0.01 in float16 with the right weights, 0.6 and
more with another checkpoint's."""


def make_canary(model: Any, sequences: Sequence[Sequence[int]] | PreTrainedTokenizerBase) -> Canary:
    """Log-probabilities of fixed sequences under a transformers (or PEFT) model as it is now.

    `sequences` are token ids, two or more each, or a tokenizer that makes them from `TEXTS`. The
    logits become float32 before their softmax; the model's train or eval mode is restored.
    """
    import torch

    if isinstance(sequences, Sequence):
        token_ids = tuple(tuple(int(token) for token in sequence) for sequence in sequences)
    else:
        token_ids = tuple(
            tuple(sequences(text, add_special_tokens=True)["input_ids"]) for text in TEXTS
        )
    if not token_ids or min(map(len, token_ids)) < 2:
        raise ValueError("A canary needs sequences of two tokens or more.")
    device = next(model.parameters()).device
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            log_probabilities = []
            for sequence in token_ids:
                inputs = torch.tensor([sequence], device=device)  # [1, T]
                logits = model(input_ids=inputs, use_cache=False).logits[0, :-1]  # [T-1, V]
                log_p = logits.float().log_softmax(-1).gather(-1, inputs[0, 1:, None])  # [T-1, 1]
                log_probabilities.append(tuple(log_p[:, 0].tolist()))
    finally:
        for module, training in modes.items():
            module.training = training
    return Canary(token_ids, tuple(log_probabilities))


def check_canary(checkpoint: Checkpoint, seen: Sequence[Sequence[float]], dtype: str) -> None:
    """Compare a session's log-probabilities of the canary's sequences with the canary.

    Raises RuntimeError, naming the checkpoint and the largest deviation, where they differ by
    more than the dtype's rounding, or are not numbers.
    """
    canary = checkpoint.canary
    if canary is None:
        return
    expected = [value for row in canary.log_probabilities for value in row]
    found = [value for row in seen for value in row]
    deviations = [abs(a - b) for a, b in zip(expected, found, strict=True)]
    if dtype in LARGEST:
        within = all(deviation <= LARGEST[dtype] for deviation in deviations)  # NaN is not
        allowed = f"at most {LARGEST[dtype]:g} is allowed in {dtype}"
    else:
        within = sum(deviations) / len(deviations) <= MEAN[dtype]
        allowed = f"at most {MEAN[dtype]:g} on average is allowed in {dtype}"
    if not within:
        worst = max(range(len(found)), key=lambda i: (found[i] != found[i], deviations[i]))
        raise RuntimeError(
            f"The engine does not run the weights of checkpoint '{checkpoint.name}' "
            f"({checkpoint.path}): the log-probabilities of its canary are off by up to "
            f"{deviations[worst]:.3g} (token {worst}: transformers {expected[worst]:.4f}, engine "
            f"{found[worst]:.4f}); {allowed}. Nothing was decoded with it."
        )
