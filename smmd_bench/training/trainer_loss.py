"""Any loss as `compute_loss_func` of a stock `transformers.Trainer`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..contracts import Loss, NumericLoss
from ..encoding.numbers import Rule, numeric_vocabulary
from ..errors import UserError
from ..objective.objective import Count, numeric_objective
from ..objective.supervised import count_step, supervised_targets
from ..plugin_system.registry import load_loss


def compute_loss_func(
    loss: str | Loss | NumericLoss, tokenizer: Any = None, *, rule: Rule = "integer"
) -> TrainerLoss:
    """A loss for `Trainer(compute_loss_func=...)`, of a spec, a loaded loss or a bound one.

    `tokenizer` and `rule` make the numeric vocabulary; a bound loss has its own. Call
    `watch(trainer)` of the result before training: a Trainer says how many tokens an optimiser step
    has, but not how many numeric units. Without it, an auxiliary that is added is refused under
    gradient accumulation and with several processes.
    """
    if isinstance(loss, NumericLoss):
        return TrainerLoss(loss)
    if tokenizer is None:
        raise UserError(
            "compute_loss_func needs the tokenizer of the model as second argument."
        )
    loss = load_loss(loss) if isinstance(loss, str) else loss
    return TrainerLoss(loss.bind(numeric_vocabulary(tokenizer, rule=rule)))


class TrainerLoss:
    """The objective of a causal language model, from its outputs and unshifted labels.

    The gradients of one micro-batch are final before the next is seen: units of the whole step have
    to be counted before its first forward pass. Noise is drawn anew at every call.

    step: tokens and units of the step, [2]; None: no Trainer is watched.
    """

    def __init__(self, loss: NumericLoss) -> None:
        self.loss = loss
        self.step: Tensor | None = None

    def watch(self, trainer: Any) -> None:
        """Count tokens and units of each step of this Trainer, before training starts."""
        fetch = trainer.get_batch_samples

        def get_batch_samples(*arguments: Any) -> Any:
            batches, items = fetch(*arguments)
            targets = [
                supervised_targets(self.loss, batch["labels"][:, 1:])
                for batch in batches
            ]
            counts = count_step(targets)
            self.step = counts.to(trainer.args.device)
            # the Trainer then adds up processes
            if trainer.args.average_tokens_across_devices:
                self.step = trainer.accelerator.reduce(self.step, "sum")
            return batches, items

        trainer.get_batch_samples = get_batch_samples

    def __call__(
        self,
        outputs: Any,
        labels: Tensor,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """The batch's share of the total of the step, or of the evaluation."""
        named = isinstance(outputs, Mapping)
        is_encoder_decoder = named and "encoder_last_hidden_state" in outputs
        if labels is None or is_encoder_decoder:
            raise UserError(
                "compute_loss_func takes batches with labels and a causal language model: labels "
                "of an encoder-decoder are aligned otherwise."
            )

        if isinstance(num_items_in_batch, Tensor) and num_items_in_batch.numel() > 1:
            raise UserError(
                "One process trains on several GPUs: start one a GPU with torchrun."
            )

        logits = outputs["logits"] if named else outputs[0]
        labels = labels[:, 1:]
        counts: tuple[Count | None, Count | None] = (None, None)
        tokens = int(labels.ne(-100).sum())
        items = tokens if num_items_in_batch is None else int(num_items_in_batch)

        is_training = torch.is_grad_enabled()
        if is_training and self.step is not None:
            counts = self.step[0], self.step[1]
        elif is_training and tokens != items:
            if self.loss.weight and not self.loss.replaces_cross_entropy:
                raise UserError(
                    f"The batch has {tokens} of the {items} supervised tokens of its step, and "
                    "no numeric units of the others: call watch(trainer) before trainer.train()."
                )
            counts = items, items  # no unit changes the total

        # A stock Trainer's outputs name no examples to which noise could be keyed.
        keys = torch.randint(2**62, labels.shape[:1])
        total = numeric_objective(
            self.loss, logits[:, :-1], labels, *counts, keys
        ).total
        # In an evaluation the counts are the batch's own: its mean becomes a share of the whole.
        return total if is_training else total * (tokens / max(items, 1))
