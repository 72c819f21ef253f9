"""`transformers.Trainer` with the harness's objective.

The model's `forward` is replaced while it trains: it runs the decoder, keeps the hidden states at
supervised positions and gives them to the objective, so that a linear head's logits are never all
built. The objective runs as the forward of the output head, for which weights that are spread over
processes come together. The denominators T and U are counted over all micro-batches and processes
of an optimiser step before its first forward pass. What they and the objective need to know of the
labels is found when a batch is made, so that a GPU waits for nothing until the step's log.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.data_loader import SeedableRandomSampler
from accelerate.utils.memory import clear_device_cache
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import Trainer

from ..contracts import NumericLoss
from ..contracts.executor import is_sharded, shares_gpu
from ..errors import UserError
from ..models.loading import load_model
from ..objective.objective import (
    ObjectiveOutput,
    hidden_objective,
    logits_objective,
    say_once,
)
from ..objective.output_head import causal_model, current, output_head
from ..objective.supervised import SupervisedTargets, collate_targets, count_step
from .faster_steps import few_walks, with_casts, without_casts
from .ranks import let_cpu_shard, reduce_in_float32
from .sampler import LengthGroups, RankBatches


@contextmanager
def objective_forward(model: Any, loss: NumericLoss) -> Iterator[None]:
    """Inside, calling the model (PEFT-wrapped or not) on a batch with targets gives the objective.

    `model(input_ids=..., attention_mask=..., targets=..., num_tokens=T, num_units=U)` returns
    {"loss", "objective"}; targets are those of the labels without the first column. Other tensors,
    those of pictures, go to the model as they are.
    """
    causal = causal_model(model)
    plain_forward = causal.forward
    head = output_head(model)
    layer = causal.get_output_embeddings()
    if head is None:
        say_once(
            "The output head is no linear layer: the logits of all tokens are held at once."
        )

    def objective_of(hidden: Tensor, *step: Any) -> ObjectiveOutput:
        assert head is not None
        return hidden_objective(loss, hidden, current(head, causal), *step)

    def forward(
        targets: SupervisedTargets,
        num_tokens: Tensor | None = None,
        num_units: Tensor | None = None,
        **inputs: Any,
    ) -> dict[str, Any]:
        inputs = {
            key: value for key, value in inputs.items() if isinstance(value, Tensor)
        }
        inputs["use_cache"] = False
        step = targets, num_tokens, num_units
        places = targets.row, targets.position
        if head is None:
            logits = plain_forward(**inputs).logits[places]  # [T, V]
            out = logits_objective(loss, logits, *step)
        else:
            hidden = causal.base_model(**inputs).last_hidden_state[places]  # [T, H]
            out = layer(hidden, *step)
        return {"loss": out.total, "objective": out}

    causal.forward = forward
    if head is not None:
        layer.forward = objective_of
    try:
        yield
    finally:
        # An attribute hides the method of the class, which is seen again without it.
        del causal.forward
        if head is not None:
            del layer.forward


@contextmanager
def own_forward(model: Any) -> Iterator[None]:
    """Inside, the model's forward is its own again, also within `objective_forward`, without the
    autocast that the Trainer wraps it in, with adapters that cast their inputs, not compiled."""
    causal = causal_model(model)
    replaced = [
        (module, module.__dict__.pop("forward"))
        for module in (causal, causal.get_output_embeddings())
        if "forward" in getattr(module, "__dict__", ())
    ]
    try:
        with with_casts(model), torch.compiler.set_stance("force_eager"):
            yield
    finally:
        for module, forward in replaced:
            module.forward = forward


class ObjectiveTrainer(Trainer):  # type: ignore[misc]
    """Trains under `objective_forward`; logs the parts of the objective at every step.

    Batches carry `example` [B] int64, which with seed and step keys the noise of a loss. Where
    memory ends, a step is done again in micro-batches of half the size, `micro_batch_size`;
    on_halving is told of it. rehearse: run the longest micro-batch before the first step, so that
    it ends there; it changes no weight.
    """

    # Or the Trainer would divide each micro-batch's share by their number.
    loss_is_scaled_for_ga = True

    def __init__(
        self,
        *,
        numeric_loss: NumericLoss,
        sampler: LengthGroups | None,
        rehearse: bool = False,
        **arguments: Any,
    ) -> None:
        let_cpu_shard()
        super().__init__(**arguments)
        reduce_in_float32(self.accelerator)
        # Batches are made on the CPU, where the collator's own copy of the loss stays.
        loss_on_cpu = deepcopy(numeric_loss)
        self.data_collator: Any = partial(
            collate_targets, self.data_collator, loss_on_cpu
        )

        self.sampler, self.numeric_loss = sampler, numeric_loss
        self.rehearse = rehearse
        self.on_halving: Callable[[int], None] = lambda size: None
        self.micro_batch_size = self.args.per_device_train_batch_size
        self._step: list[dict[str, Any]] = []  # the micro-batches that are done of it
        # tokens and units; cross-entropy and auxiliary
        self._counts = self._sums = torch.zeros(2)

    def _get_train_sampler(self, *arguments: Any) -> Any:
        if self.sampler is None:
            return super()._get_train_sampler(*arguments)
        return self.sampler

    def train(self, *arguments: Any, **options: Any) -> Any:
        """Train as the Trainer does, with fewer operations and less host work a step."""
        autocast = self.args.bf16 and not is_sharded()  # FSDP2 has none
        with few_walks(self), without_casts(self.model, autocast=autocast):
            return super().train(*arguments, **options)

    @cached_property
    def trained_parameters(self) -> list[Tensor]:
        """Those with gradients, in the model's order: FSDP2 makes others of them before a step."""
        return [p for p in self.model.parameters() if p.requires_grad]

    @cached_property
    def _weights(self) -> int:
        return int(self.model.num_parameters(exclude_embeddings=True))

    def floating_point_ops(self, inputs: Any) -> int:
        """The Trainer's count for trackers, which itself walks over the weights at every step."""
        return 6 * int(inputs["input_ids"].numel()) * self._weights

    def _clip_grad_norm(self, model: Any) -> Any:
        if is_sharded():
            return super()._clip_grad_norm(model)
        limit = self.args.max_grad_norm
        return self.accelerator.clip_grad_norm_(self.trained_parameters, limit)

    def get_train_dataloader(self) -> Any:
        """The Trainer's own; of one of several processes the batches are its share of these."""
        arguments = self.args
        if arguments.world_size == 1:
            return super().get_train_dataloader()

        # accelerate repeats examples to fill the last step of all processes.
        steps = arguments.gradient_accumulation_steps
        batches = RankBatches(
            self.sampler
            or SeedableRandomSampler(self.train_dataset, data_seed=arguments.seed),
            arguments.per_device_train_batch_size * steps * arguments.world_size,
            accumulation=steps,
            rank=arguments.process_index,
            processes=arguments.world_size,
        )

        loader: Any = DataLoader(
            self.train_dataset,
            batch_sampler=batches,
            collate_fn=self.data_collator,
            num_workers=arguments.dataloader_num_workers,
            pin_memory=arguments.dataloader_pin_memory,
        )
        loader.set_epoch = batches.set_epoch
        return loader

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: Any = None
    ) -> None:
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

        # Every process needs the counts of all before its first forward pass.
        counts = count_step([batch["targets"] for batch in batches])
        self._counts = self.accelerator.reduce(counts.to(device), "sum")
        self._sums = torch.zeros(2, dtype=torch.float64, device=device)
        self._step = []
        return batches, items

    def training_step(
        self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None
    ) -> Tensor:
        """Forward and backward of a micro-batch."""
        # FSDP2 would keep its gradients for the step
        if self.rehearse and not is_sharded():
            self._rehearse(model)
        self.rehearse = False
        self._step.append(inputs)
        return self._train(model, [inputs], self._step)

    def _rehearse(self, model: Any) -> None:
        """Run the longest micro-batch, beside room for the optimiser's moments, and forget it."""
        rows = np.argsort(self.train_dataset.lengths)[-self.micro_batch_size :]
        devices = [self.args.device] if self.args.device.type == "cuda" else []
        moments: list[Tensor] = []
        # The first step must see the dropout that it has without a rehearsal.
        with torch.random.fork_rng(devices):
            # AdamW makes its two moments of each weight after the first step's backward pass. A
            # training that resumed has them.
            try:
                if not self.optimizer.state:
                    moments = [torch.empty_like(p) for p in 2 * self.trained_parameters]
            except torch.OutOfMemoryError as error:
                raise self._out_of_memory() from error

            longest = [self._collate(rows)]
            self._train(model, longest, longest)
            del moments
        self._forget(model)

    def _train(
        self, model: Any, batches: list[dict[str, Any]], step: list[dict[str, Any]]
    ) -> Tensor:
        """Train on batches, again on the whole step where memory ends; the loss of the last one."""
        while True:
            try:
                return [self._train_parts(model, batch) for batch in batches][-1]
            except torch.OutOfMemoryError as error:
                is_joint = self.args.world_size > 1 or shares_gpu()
                # Halves round otherwise, and beside others the lack may be theirs.
                if self.micro_batch_size == 1 or is_joint:
                    raise self._out_of_memory() from error
            # here, where the error no longer holds what the pass had made
            self._forget(model)
            self.micro_batch_size //= 2
            self.on_halving(self.micro_batch_size)
            batches = step

    def _out_of_memory(self) -> UserError:
        return UserError(
            f"Out of memory at a peak of {torch.cuda.max_memory_allocated() / 1e9:.1f} GB, with "
            f"micro_batch_size={self.micro_batch_size}: make that smaller if it is above 1, add "
            "--set gradient_checkpointing=true if it is not set, or choose another model or GPU."
        )

    def _train_parts(self, model: Any, batch: dict[str, Any]) -> Tensor:
        if len(batch["example"]) <= self.micro_batch_size:
            return super().training_step(model, batch)

        parts = batch["example"].cpu().split(self.micro_batch_size)
        losses = []
        # Shares of the step's objective add up, however its examples are divided.
        for examples in parts:
            losses.append(super().training_step(model, self._collate(examples)))
        return torch.stack(losses).sum()

    def _collate(self, rows: Any) -> Any:
        return self.data_collator([self.train_dataset[int(i)] for i in rows])

    def _forget(self, model: Any) -> None:
        """Drop the gradients and sums of this step."""
        model.zero_grad()
        self._sums.zero_()
        clear_device_cache(garbage_collection=True)

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """This micro-batch's share of the step's objective."""
        batch = dict(inputs)
        # The keys of the targets hold it already, and a model knows no such input.
        batch.pop("example")
        targets = batch["targets"].to(self.args.device)
        batch["targets"] = targets.at_step(self.args.seed, self.state.global_step)
        batch["num_tokens"], batch["num_units"] = self._counts
        outputs = model(**batch)

        objective: ObjectiveOutput = outputs["objective"]
        sums = objective.cross_entropy_sum, objective.auxiliary_sum
        self._sums += torch.stack(sums)

        # Data parallelism averages gradients over processes; the counts are already the step's.
        loss = outputs["loss"] * self.accelerator.num_processes
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Add the parts of the objective to a step's line."""
        if "loss" in logs:
            sums = self.accelerator.reduce(self._sums, "sum")
            cross_entropy, auxiliary = sums.tolist()
            tokens, units = map(float, self._counts.tolist())
            logs["cross_entropy"] = cross_entropy / max(tokens, 1)
            logs["tokens"], logs["units"] = tokens, units
            if units:
                logs["auxiliary"] = auxiliary / units
                weight = self.numeric_loss.weight
                # a sum over units, divided by tokens
                if self.numeric_loss.replaces_cross_entropy:
                    weight = units / tokens
                weighted = weight * logs["auxiliary"]
                at_least = max(logs["cross_entropy"], 1e-12)
                logs["relative_auxiliary"] = weighted / at_least
        super().log(logs, *args, **kwargs)
