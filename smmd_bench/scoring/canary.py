"""The canary of a checkpoint: a few log-probabilities that say which weights an engine runs.

An engine that swaps weights or adapters can go on with the old ones without a word. So training
writes down what transformers says of a few fixed sequences, and an engine session compares its own
log-probabilities with them whenever another checkpoint becomes the current one. Where a model reads
images, one more sequence follows a picture, and so sees the vision tower.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ..contracts import Canary, Checkpoint
from ..vision.prompts import text_after_images
from .canary_picture import canary_picture

if TYPE_CHECKING:
    from torch import Tensor
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


def make_canary(
    model: Any,
    sequences: Sequence[Sequence[int]] | PreTrainedTokenizerBase,
    processor: Any | None = None,
) -> Canary:
    """Log-probabilities of fixed sequences under a transformers (or PEFT) model as it is now.

    `sequences` are token ids, two or more each, or a tokenizer that makes them from `TEXTS`; with
    the model's processor comes one that reads a picture. The logits become float32 before their
    softmax; the model's train or eval mode is restored.
    """
    import torch

    if isinstance(sequences, Sequence):
        token_ids = [[int(token) for token in sequence] for sequence in sequences]
    else:
        token_ids = [sequences(text, add_special_tokens=True)["input_ids"] for text in TEXTS]
    if not token_ids or min(map(len, token_ids)) < 2:
        raise ValueError("A canary needs sequences of two tokens or more.")
    rows = [({"input_ids": torch.tensor([ids])}, len(ids) - 1) for ids in token_ids]
    if processor is not None:
        token_ids.append(_after_picture(processor))
        rows.append(_picture_row(processor, token_ids[-1]))
    device = next(model.parameters()).device
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            log_probabilities = []
            for row, scored in rows:
                inputs = {name: value.to(device) for name, value in row.items()}
                ids = inputs["input_ids"][0, -scored:, None]  # [S, 1]
                logits = model(**inputs, use_cache=False).logits[0, -scored - 1 : -1]  # [S, V]
                log_p = logits.float().log_softmax(-1).gather(-1, ids)[:, 0]  # [S]
                log_probabilities.append(tuple(log_p.tolist()))
    finally:
        for module, training in modes.items():
            module.training = training
    return Canary(
        tuple(map(tuple, token_ids)), tuple(log_probabilities), pictures=int(processor is not None)
    )


def canary_images(canary: Canary) -> list[list[Path]] | None:
    """The images of a canary's sequences, as an engine session takes them."""
    if not canary.pictures:
        return None
    without = len(canary.token_ids) - canary.pictures
    return [[]] * without + [[canary_picture()]] * canary.pictures


def _after_picture(processor: Any) -> list[int]:
    """Token ids of the last text after a picture, which a placeholder stands for."""
    from ..vision.encoding import encode_image_prompts

    (ids,) = encode_image_prompts(processor, [TEXTS[-1]], [1])
    return ids


def _picture_row(processor: Any, ids: Sequence[int]) -> tuple[dict[str, Tensor], int]:
    """What a model takes for the sequence with the picture, and how many of its last tokens a
    canary scores."""
    from ..vision.encoding import expand

    row = expand(processor, ids, [canary_picture()])
    return row, text_after_images(ids, processor.image_token_id)


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
    rows = [
        [abs(a - b) for a, b in zip(*pair, strict=True)]
        for pair in zip(canary.log_probabilities, seen, strict=True)
    ]
    deviations = list(chain(*rows))
    if dtype in LARGEST:
        within = all(deviation <= LARGEST[dtype] for deviation in deviations)  # NaN is not
        allowed = f"at most {LARGEST[dtype]:g} is allowed in {dtype}"
    else:  # text must not water down what the picture tells
        text = len(rows) - canary.pictures
        means = [fmean(chain(*part)) for part in (rows[:text], rows[text:]) if part]
        within = all(mean <= MEAN[dtype] for mean in means)
        allowed = f"at most {MEAN[dtype]:g} on average is allowed in {dtype}"
    if not within:
        worst = max(range(len(found)), key=lambda i: (found[i] != found[i], deviations[i]))
        raise RuntimeError(
            f"The engine does not run the weights of checkpoint '{checkpoint.name}' "
            f"({checkpoint.path}): the log-probabilities of its canary are off by up to "
            f"{deviations[worst]:.3g} (token {worst}: transformers {expected[worst]:.4f}, engine "
            f"{found[worst]:.4f}); {allowed}. Nothing was decoded with it."
        )
