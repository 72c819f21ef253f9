"""The canary of a checkpoint: a few log-probabilities that say which weights an engine runs.

An engine that swaps weights or adapters may silently keep the old ones. So training writes down
what transformers says of a few fixed sequences, and an engine session compares its own
log-probabilities with them whenever another checkpoint becomes the current one. The sequences are
prompts of the training data with their targets (`smmd_bench.training.canary_texts`), because that
is where checkpoints of one base differ most. Where a model reads images, some sequences follow a
picture, and so see the vision tower. `smmd_bench.decoding.canary_check` has the rule.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..contracts import Canary
from ..encoding.data import expand
from ..objective.output_head import evaluating
from .canary_texts import CanaryTexts, canary_picture

BATCH = 8  # sequences of a forward pass without a picture
Rows = tuple[tuple[float, ...], ...]


def make_canary(
    model: Any,
    texts: CanaryTexts,
    processor: Any | None = None,
    *,
    dtype: str = "float32",
) -> Canary:
    """Log-probabilities of fixed sequences under a transformers (or PEFT) model as it is now.

    The model computes in float32 whatever its dtype is, and once more in `dtype`, the one that
    engines will run it in.
    """
    rounded: Rows = ()
    with evaluating(model):
        exact = _log_probabilities(model, texts, processor, "float32")
        # How far these two are apart is the noise that an engine's rounding may have.
        if dtype != "float32":
            rounded = _log_probabilities(model, texts, processor, dtype)
    return Canary(texts.token_ids, exact, texts.pictures, rounded)


def _log_probabilities(
    model: Any, texts: CanaryTexts, processor: Any | None, dtype: str
) -> Rows:
    """log p of the scored tokens; the logits become float32 before their softmax."""
    device = next(model.parameters()).device
    scored_rows: list[tuple[float, ...]] = []
    with torch.no_grad(), computing_in(model, getattr(torch, dtype)):
        for inputs, counts in _batches(texts, processor):
            ids = inputs["input_ids"].to(device)  # [B, T], padded on the right
            spans = [(end or ids.shape[1], scored) for end, scored in counts]
            first = min(end - scored for end, scored in spans)
            last = max(end for end, _ in spans)

            # A token is predicted one place before it; all other logits would only take memory.
            logits = model(
                **{name: value.to(device) for name, value in inputs.items()},
                use_cache=False,
                logits_to_keep=torch.arange(first - 1, last - 1, device=device),
            ).logits  # [B, last - first, V]
            log_p = logits.float().log_softmax(-1)
            # [B, last - first]
            log_p = log_p.gather(-1, ids[:, first:last, None])[..., 0]

            if not log_p.isfinite().all():
                raise FloatingPointError(
                    "The model gives a probability that is no number, so its weights are not "
                    "finite: check the checkpoint, or lower learning_rate if it was trained here."
                )
            for row, (end, scored) in zip(log_p.tolist(), spans, strict=True):
                stop = end - first
                scored_rows.append(tuple(row[stop - scored : stop]))
    return tuple(scored_rows)


def _batches(
    texts: CanaryTexts, processor: Any | None
) -> Iterator[tuple[dict[str, Tensor], Sequence[tuple[int | None, int]]]]:
    """What a model takes for sequences; each one's end (None: the batch's), how many are scored."""
    first_picture = len(texts.token_ids) - texts.pictures

    for start in range(0, first_picture, BATCH):
        batch = slice(start, min(start + BATCH, first_picture))
        rows = texts.token_ids[batch]
        lengths = [len(row) for row in rows]
        width = max(lengths)
        padded = [_pad(row, width) for row in rows]
        counts = list(zip(lengths, texts.scored[batch], strict=True))
        yield {"input_ids": torch.tensor(padded)}, counts

    # A row with a picture is longer once its picture is in it.
    for index in range(first_picture, len(texts.token_ids)):
        row = texts.token_ids[index]
        inputs = expand(processor, row, [canary_picture()])
        yield inputs, [(None, texts.scored[index])]


def _pad(row: Sequence[int], width: int) -> list[int]:
    # Attention is causal: what pads a row on its right is seen by nothing that is scored.
    # It is the row's last token: the tokenizer's own may be a picture's placeholder.
    padding = [row[-1]] * (width - len(row))
    return [*row, *padding]


@contextmanager
def computing_in(model: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Inside, every module with weights of its own computes in `dtype`.

    The weights of a module are converted when its forward begins and put back when it ends: that
    takes the memory of one more module, not of one more model. Integer weights and buffers stay as
    they are. For inference only.
    """
    kept: dict[nn.Module, list[dict[str, Any]]] = {}

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kept.setdefault(module, []).append(dict(module._parameters))
        for name, weight in module._parameters.items():
            if weight is not None and weight.is_floating_point():
                module._parameters[name] = weight.detach().to(dtype)
        return (
            tuple(_cast(value, dtype) for value in args),
            {name: _cast(value, dtype) for name, value in kwargs.items()},
        )

    def leave(module: nn.Module, *_: Any) -> None:
        if kept.get(module):
            module._parameters.update(kept[module].pop())

    # A tied weight has two owners: each converts it for itself.
    owners = [
        m for m in model.modules() if any(p is not None for p in m._parameters.values())
    ]
    hooks = [m.register_forward_pre_hook(enter, with_kwargs=True) for m in owners]
    hooks += [m.register_forward_hook(leave, always_call=True) for m in owners]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for module, parameters in kept.items():
            for original in reversed(parameters):
                module._parameters.update(original)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    floating = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(dtype) if floating else value
