"""Any loss in a plain Trainer: `NumericTrainer("smmd", tokenizer, model=..., args=..., ...)`."""

import torch
from transformers import Trainer

import smmd_bench as sb


class NumericTrainer(Trainer):
    loss_is_scaled_for_ga = True  # means are over the step's micro-batches, in each process

    def __init__(self, loss, tokenizer, **arguments):
        super().__init__(processing_class=tokenizer, **arguments)
        self.numeric = sb.load_loss(loss).bind(sb.numeric_vocabulary(tokenizer))

    def get_batch_samples(self, *arguments):  # all micro-batches of a step, before the first pass
        batches, items = super().get_batch_samples(*arguments)
        labels = [batch["labels"][:, 1:] for batch in batches]
        counts = [(int((x != -100).sum()), sb.count_units(self.numeric, x)) for x in labels]
        self.counts = [sum(column) for column in zip(*counts, strict=True)]  # tokens, units
        return batches, items

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels, counts = inputs["labels"][:, 1:], self.counts if model.training else (None, None)
        outputs = model(**{name: x for name, x in inputs.items() if name != "labels"})
        keys = torch.randint(2**62, labels.shape[:1])  # for noise, drawn anew at every step
        out = sb.numeric_objective(self.numeric, outputs.logits[:, :-1], labels, *counts, keys)
        return (out.total, outputs) if return_outputs else out.total
