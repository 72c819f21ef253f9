"""`transformers.Trainer` with the harness's objective.

The model's `forward` is replaced while it trains: it runs the decoder, keeps the hidden states at
supervised positions and gives them to the objective, so that the full logits are never built. The
objective runs as the forward of the output head, for which weights that are spread over processes
come together. The denominators T and U are counted over all micro-batches and processes of an
optimiser step before its first forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import Trainer

from ..contracts import NumericLoss, mixed
from ..contracts.executor import is_sharded
from ..models.loading import load_model
from ..objective.objective import ObjectiveOutput, hidden_objective, logits_objective
from ..objective.output_head import causal_model, current, output_head
from ..objective.supervised import count_step, supervised_targets
from .processes import let_cpu_shard, reduce_in_float32
from .sampler import LengthGroups, RankBatches, RankLoader, random_order


@contextmanager
def objective_forward(model: Any, loss: NumericLoss) -> Iterator[None]:
    """Inside, calling the model (PEFT-wrapped or not) on a batch with labels gives the objective.

    `model(input_ids=..., attention_mask=..., labels=..., num_tokens=T, num_units=U, keys=...)`
    returns {"loss", "objective"}; labels are unshifted, as usual, and keys [B] as in
    `numeric_objective`. Other tensors, those of pictures, go to the model as they are.
    """
    causal = causal_model(model)
    plain_forward = causal.forward
    found = output_head(model)
    layer = causal.get_output_embeddings()

    def objective_of(hidden: Tensor, *step: Any) -> ObjectiveOutput:
        assert found is not None
        return hidden_objective(loss, hidden, current(found, causal), *step)

    def forward(
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        num_tokens: Tensor | None = None,
        num_units: Tensor | None = None,
        keys: Tensor | None = None,
        **others: Any,
    ) -> dict[str, Any]:
        assert labels is not None
        targets = supervised_targets(labels[:, 1:], keys)
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask, "use_cache": False}
        inputs |= {key: value for key, value in others.items() if isinstance(value, Tensor)}
        step = targets, num_tokens, num_units
        if found is None:
            logits = plain_forward(**inputs).logits[targets.row, targets.position]  # [T, V]
            out = logits_objective(loss, logits, *step)
        else:
            hidden = causal.base_model(**inputs).last_hidden_state[targets.row, targets.position]
            out = layer(hidden, *step)
        return {"loss": out.total, "objective": out}

    causal.forward = forward
    if found is not None:
        layer.forward = objective_of
    try:
        yield
    finally:
        del causal.forward
        if found is not None:
            del layer.forward


@contextmanager
def own_forward(model: Any) -> Iterator[None]:
    """Inside, the model's forward is its own again, also within `objective_forward`."""
    causal = causal_model(model)
    replaced = [
        (module, module.__dict__.pop("forward"))
        for module in (causal, causal.get_output_embeddings())
        if "forward" in getattr(module, "__dict__", ())
    ]
    try:
        yield
    finally:
        for module, forward in replaced:
            module.forward = forward


class ObjectiveTrainer(Trainer):  # type: ignore[misc]
    """Trains under `objective_forward`; logs the parts of the objective at every step.

    Batches may carry `example` [B] int64, which with seed and step keys the noise of a loss.
    """

    loss_is_scaled_for_ga = True

    def __init__(
        self, *, numeric_loss: NumericLoss, sampler: LengthGroups | None, **arguments: Any
    ) -> None:
        let_cpu_shard()
        super().__init__(**arguments)
        reduce_in_float32(self.accelerator)
        self.sampler = sampler
        self.numeric_loss = numeric_loss
        self._step_counts: tuple[Tensor, Tensor] | None = None
        self._sums: Tensor | None = None

    def _get_train_sampler(self, *arguments: Any) -> Any:
        return super()._get_train_sampler(*arguments) if self.sampler is None else self.sampler

    def get_train_dataloader(self) -> Any:
        """The Trainer's own; of one of several processes the batches are its share of these."""
        if self.args.world_size == 1:
            return super().get_train_dataloader()
        steps = self.args.gradient_accumulation_steps
        batches = RankBatches(
            self.sampler or random_order(self.train_dataset, self.args.seed),
            self.args.per_device_train_batch_size * steps * self.args.world_size,
            accumulation=steps,
            rank=self.args.process_index,
            processes=self.args.world_size,
        )
        return RankLoader(
            self.train_dataset,
            batches,
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory,
        )

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """The Trainer's own leaves out, without an error, each weight that transformers saves under
        another name than the model's, such as those of Qwen2.5-VL."""
        if is_sharded() or hasattr(self.model, "peft_config"):
            super()._load_from_checkpoint(resume_from_checkpoint, model)
            return
        saved = load_model(Path(resume_from_checkpoint), "float32")
        self.model.load_state_dict(saved.state_dict())

    def get_batch_samples(
        self, epoch_iterator: Any, num_batches: int, device: torch.device
    ) -> tuple[list[Any], Any]:
        """The micro-batches of a step; counts their supervised tokens and units on the way."""
        batches, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        counts = count_step(self.numeric_loss, batches).to(device)
        counts = self.accelerator.reduce(counts, "sum").clamp(min=1)
        self._step_counts = (counts[0], counts[1])
        self._sums = torch.zeros(4, dtype=torch.float64)
        return batches, items

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """This micro-batch's share of the step's objective."""
        assert self._step_counts is not None
        assert self._sums is not None
        tokens, units = self._step_counts
        inputs = dict(inputs)
        example = inputs.pop("example", None)
        step = self.args.seed, self.state.global_step
        keys = None if example is None else mixed(*step, example)
        outputs = model(**inputs, num_tokens=tokens, num_units=units, keys=keys)
        out: ObjectiveOutput = outputs["objective"]
        self._sums += torch.tensor(
            [float(out.cross_entropy_sum), float(out.auxiliary_sum), out.tokens, out.units],
            dtype=torch.float64,
        )
        # Data parallelism averages gradients over processes; the counts are already the step's.
        loss = outputs["loss"] * self.accelerator.num_processes
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Add the parts of the objective to a step's line."""
        if "loss" in logs and self._sums is not None:
            sums = self.accelerator.reduce(self._sums.to(self.args.device), "sum").tolist()
            cross_entropy, auxiliary, tokens, units = sums
            logs["cross_entropy"] = cross_entropy / max(tokens, 1)
            logs["tokens"], logs["units"] = tokens, units
            if units:
                logs["auxiliary"] = auxiliary / units
                weight = self.numeric_loss.weight
                if self.numeric_loss.replaces_cross_entropy:  # a sum over units, divided by tokens
                    weight = units / tokens
                weighted = weight * logs["auxiliary"]
                logs["relative_auxiliary"] = weighted / max(logs["cross_entropy"], 1e-12)
        super().log(logs, *args, **kwargs)
