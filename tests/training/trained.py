"""Trainings of a few steps, as the stage runs them."""

from dataclasses import replace

import pytest
import torch

import smmd_bench as sb
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.models.recipe import Recipe
from smmd_bench.objective.supervised import supervised_targets
from smmd_bench.training.stage import training_arguments
from smmd_bench.training.trainer import ObjectiveTrainer, objective_forward


def train(
    base,
    folder,
    data,
    collate,
    tokenizer,
    spec,
    *,
    sgd=False,
    readers=0,
    watch=None,
    **recipe,
):
    """The model and its log. watch: called with the model before the first step."""
    recipe.setdefault("micro_batch_size", recipe["batch_size"])
    options = Recipe(dtype="float32", lora_rank=4, learning_rate=1e-3).changed(recipe)
    torch.manual_seed(0)
    model = load_model(base, "float32" if options.method == "full" else options.dtype)
    if options.method == "lora":
        model = add_adapter(model, options)
    loss = sb.load_loss(spec).bind(sb.numeric_vocabulary(tokenizer))
    arguments = training_arguments(options, 0, folder, saves=False, readers=readers)
    trainer = ObjectiveTrainer(
        model=model,
        args=replace(arguments, optim="sgd") if sgd else arguments,
        train_dataset=data,
        data_collator=collate,
        numeric_loss=loss,
        sampler=None,
    )

    with objective_forward(model, loss):
        if watch is not None:
            watch(model)
        trainer.train()
    return model, [
        line for line in trainer.state.log_history if "cross_entropy" in line
    ]


def moved(model, base):
    """By name, how far the parameters went that a trained model has otherwise than its base."""
    start = load_model(base, "float32").state_dict()
    distances = {}
    for name, parameter in model.named_parameters():
        name = name.removeprefix("base_model.model.").replace(".base_layer.", ".")
        way = parameter.detach() - start.get(name, 0)
        distance = float(way.abs().sum())
        if distance:
            distances[name] = distance
    return distances


def require_same_log(log, other, rel):
    for line, expected in zip(log, other, strict=True):
        for key in ("loss", "cross_entropy", "tokens", "units"):
            assert line[key] == pytest.approx(expected[key], rel=rel, abs=0), key


def require_objective_of(model, batch, loss):
    """The objective of a batch is the model's own cross-entropy, and the auxiliary of numbers."""
    with torch.no_grad():
        expected = float(model(**batch).loss)
    inputs = dict(batch)
    labels = inputs.pop("labels")
    inputs["targets"] = supervised_targets(loss, labels[:, 1:])
    with objective_forward(model, loss):
        out = model(**inputs)["objective"]

    assert out.cross_entropy.item() == pytest.approx(expected, rel=1e-5)
    total = expected + loss.weight * out.auxiliary.item()
    assert out.total.item() == pytest.approx(total, rel=1e-5)
    assert out.units == int(torch.isin(labels, loss.token_ids).sum())
