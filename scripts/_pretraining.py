"""What the pre-training scripts share: optimizers, a state to go on from, logs, and their flags.

Muon for the matrices inside the blocks, AdamW for the rest, a constant learning rate after a short
warm-up. RUNDIR/state.pt, phases.json (which recipe held from which step on) and log.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Optimizers = list[torch.optim.Optimizer]


def make_optimizers(recipe: Any, matrices: Iterable[Tensor], rest: Iterable[Tensor]) -> Optimizers:
    return [
        torch.optim.Muon(list(matrices), lr=recipe.muon_lr, weight_decay=recipe.weight_decay),
        torch.optim.AdamW(list(rest), lr=recipe.adamw_lr, weight_decay=0.0, betas=(0.9, 0.98)),
    ]


def set_rates(optimizers: Optimizers, recipe: Any, share: float) -> None:
    """Set the learning rates to a share of the recipe's."""
    for optimizer, lr in zip(optimizers, [recipe.muon_lr, recipe.adamw_lr], strict=True):
        for group in optimizer.param_groups:
            group["lr"] = lr * share


def update(optimizers: Optimizers, model: nn.Module) -> None:
    """One step along the gradients, which are clipped and dropped."""
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


def save(folder: Path, model: nn.Module, optimizers: Optimizers, step: int, seconds: float) -> None:
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


def log(folder: Path, line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def last_recipe(folder: Path, kind: type) -> Any:
    return kind(**json.loads((folder / "phases.json").read_text())[-1]["recipe"])


def export(folder: Path, target: Path, trained: nn.Module, model: Any, tokenizer: Any) -> None:
    """Write `model`, which is `trained` or a part of it, with the weights of the last state."""
    trained.load_state_dict(torch.load(folder / "state.pt", weights_only=True)["model"])
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(target)
    (target / "pretraining.json").write_text((folder / "phases.json").read_text())
    (target / "pretraining.jsonl").write_text((folder / "log.jsonl").read_text())


def parser(description: str, recipe: type) -> argparse.ArgumentParser:
    """RUNDIR, --threads, --export and a flag for each setting of a recipe."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("folder", type=Path)
    made.add_argument("--threads", type=int, default=os.cpu_count())
    made.add_argument("--export", type=Path)
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
