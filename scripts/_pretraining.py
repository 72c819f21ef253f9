"""What the pre-training scripts share: recipe, loop, a state to go on from, logs, flags.

Muon for the matrices inside the blocks, AdamW for the rest; a warm-up, a constant learning rate,
and where it is asked for a linear way down to zero, which ends the training. RUNDIR holds state.pt,
phases.json (which recipe held from which step on) and log.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Optimizers = list[torch.optim.Optimizer]


@dataclass(frozen=True)
class Recipe:
    """What the weights depend on, whatever the model."""

    seed: int = 0
    batch: int = 256
    shares: str = ""
    muon_lr: float = 0.02
    adamw_lr: float = 2e-3
    weight_decay: float = 0.01
    warmup_steps: int = 200
    anneal_from: int = 0
    anneal_steps: int = 0  # 0: a constant learning rate
    bf16: bool = True

    def rate(self, step: int) -> float:
        """The share of the learning rates that a step takes: a warm-up, and an end at zero."""
        left = 1.0
        if self.anneal_steps:
            left = max(0.0, 1 - (step - self.anneal_from) / self.anneal_steps)
        return min(left, (step + 1) / self.warmup_steps)

    def parts(self) -> dict[str, float]:
        """The share of every source, which add up to one."""
        shares = {
            name: float(n) for name, n in (s.split("=") for s in self.shares.split(","))
        }
        return {name: share / sum(shares.values()) for name, share in shares.items()}


def train(
    arguments: argparse.Namespace,
    recipe: Any,
    model: nn.Module,
    matrices: Iterable[Tensor],
    batches_from: Callable[[Any, int], Iterator[Any]],
    losses_of: Callable[[Any], Iterable[Tensor]],
    evaluate: Callable[[], dict[str, float]],
) -> None:
    """Train until the minutes or the annealing end.

    losses_of: parts that add up to a batch's loss. evaluate: the scores of a log's line.
    """
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    optimizers = make_optimizers(recipe, matrices, model)
    step, seconds = resume(folder, model, optimizers)
    if recipe.anneal_steps:
        # it may go on after a kill
        begun = last_recipe(folder, type(recipe)) if step else recipe
        same = begun.anneal_steps == recipe.anneal_steps
        recipe = replace(recipe, anneal_from=begun.anneal_from if same else step)
    last = recipe.anneal_from + recipe.anneal_steps if recipe.anneal_steps else None
    if last is not None and step >= last:
        print(f"{folder} is annealed already, after {step:,} steps.")
        return
    note_phase(folder, step, recipe)
    start = saved_at = time.monotonic()
    losses: list[float] = []
    for batch in batches_from(recipe, step):
        set_rates(optimizers, recipe, recipe.rate(step))
        loss = 0.0
        for part in losses_of(batch):
            part.backward()
            loss += float(part.detach())
        update(optimizers, model)
        losses.append(loss)
        step += 1
        now = time.monotonic()
        ended = step == last or now - start > arguments.minutes * 60
        if not ended and now - saved_at < arguments.save_every * 60:
            continue
        log(
            folder,
            {
                "step": step,
                "examples": examples_until(folder, step),
                "minutes": round((seconds + now - start) / 60, 2),
                "loss": round(sum(losses) / len(losses), 4),
                **evaluate(),
            },
        )
        losses = []
        save(folder, model, optimizers, step, seconds + now - start)
        saved_at = now
        if ended:
            return


def make_optimizers(
    recipe: Any, matrices: Iterable[Tensor], model: nn.Module
) -> Optimizers:
    matrices = list(matrices)
    rest = [p for p in model.parameters() if all(p is not m for m in matrices)]
    return [
        torch.optim.Muon(matrices, lr=recipe.muon_lr, weight_decay=recipe.weight_decay),
        torch.optim.AdamW(
            rest, lr=recipe.adamw_lr, weight_decay=0.0, betas=(0.9, 0.98)
        ),
    ]


def set_rates(optimizers: Optimizers, recipe: Any, share: float) -> None:
    """Set the learning rates to a share of the recipe's."""
    for optimizer, lr in zip(
        optimizers, [recipe.muon_lr, recipe.adamw_lr], strict=True
    ):
        for group in optimizer.param_groups:
            group["lr"] = lr * share


def update(optimizers: Optimizers, model: nn.Module) -> None:
    """One step along the gradients, which are clipped and dropped."""
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


def save(
    folder: Path, model: nn.Module, optimizers: Optimizers, step: int, seconds: float
) -> None:
    file = folder / "state.pt"
    part = file.with_suffix(".part")
    torch.save(
        {
            "model": model.state_dict(),
            "optimizers": [o.state_dict() for o in optimizers],
            "step": step,
            "seconds": seconds,
        },
        part,
    )
    part.replace(file)


def resume(folder: Path, model: nn.Module, optimizers: Optimizers) -> tuple[int, float]:
    """(steps, seconds) that were trained before, now in the model and optimizers."""
    file = folder / "state.pt"
    if not file.exists():
        return 0, 0.0
    state = torch.load(file, weights_only=True)
    model.load_state_dict(state["model"])
    for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(saved)
    return state["step"], state["seconds"]


def note_phase(folder: Path, step: int, recipe: Any) -> None:
    """Append the recipe that holds from this step on, if it is another one than before."""
    file = folder / "phases.json"
    phases = json.loads(file.read_text()) if file.exists() else []
    if not phases or phases[-1]["recipe"] != asdict(recipe):
        phases.append({"from_step": step, "recipe": asdict(recipe)})
        file.write_text(json.dumps(phases, indent=1) + "\n")


def examples_until(folder: Path, step: int) -> int:
    """How many examples the steps before this one had, whose batches may differ by phase."""
    phases = json.loads((folder / "phases.json").read_text())
    starts = [*(phase["from_step"] for phase in phases), step]
    counts = (b - a for a, b in pairwise(starts))
    return sum(n * p["recipe"]["batch"] for n, p in zip(counts, phases, strict=True))


def log(folder: Path, line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def last_recipe(folder: Path, kind: type) -> Any:
    return kind(**json.loads((folder / "phases.json").read_text())[-1]["recipe"])


def export(
    folder: Path, target: Path, trained: nn.Module, model: Any, tokenizer: Any
) -> None:
    """Write `model`, which is `trained` or a part of it, with the weights of the last state."""
    trained.load_state_dict(torch.load(folder / "state.pt", weights_only=True)["model"])
    model.config.use_cache = model.generation_config.use_cache = True
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(target)
    (target / "pretraining.json").write_text((folder / "phases.json").read_text())
    (target / "pretraining.jsonl").write_text((folder / "log.jsonl").read_text())


def parser(description: str, recipe: type) -> argparse.ArgumentParser:
    """RUNDIR, threads, times, --export and a flag for each setting of a recipe."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("folder", type=Path)
    made.add_argument("--threads", type=int, default=os.cpu_count())
    made.add_argument("--export", type=Path)
    made.add_argument("--minutes", type=float, default=60)
    made.add_argument("--save-every", type=float, default=5, help="minutes")
    for item in fields(recipe):
        kind = type(item.default)
        made.add_argument(
            f"--{item.name.replace('_', '-')}",
            default=item.default,
            type=(lambda text: text == "true") if kind is bool else kind,
        )
    return made


def recipe_of(arguments: argparse.Namespace, kind: type) -> Any:
    return kind(**{f.name: getattr(arguments, f.name) for f in fields(kind)})
