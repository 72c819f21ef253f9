"""Ways in which an engine can run weights that are not a checkpoint's: each must fail its canary,
or be one that the canary was known not to see."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from smmd_bench.contracts import Checkpoint, EngineSession
from smmd_bench.decoding.canary_check import could_pass
from smmd_bench.models.loading import load_model
from smmd_bench.training.canary import make_canary
from smmd_bench.training.canary_texts import CanaryTexts

from .families import Family

DTYPE = "bfloat16"
WEIGHTS = "adapter_model.safetensors"
Key = tuple[str, int, int]
Sabotage = Callable[[Family, Key, Path, random.Random], Checkpoint]


def base_instead(family: Family, key: Key, _: Path, __: random.Random) -> Checkpoint:
    """The base in place of the adapter."""
    return replace(family.checkpoints[key], kind="base", path=family.base)


def sibling(family: Family, key: Key, _: Path, __: random.Random) -> Checkpoint:
    """The adapter that another loss trained from the same seed, at the same epoch."""
    others = [k for k in family.checkpoints if k[0] != key[0] and k[1:] == key[1:]]
    return replace(family.checkpoints[key], path=family.checkpoints[others[0]].path)


def another_epoch(family: Family, key: Key, _: Path, __: random.Random) -> Checkpoint:
    """The same training's other epoch."""
    other = (*key[:2], 3 - key[2])
    return replace(family.checkpoints[key], path=family.checkpoints[other].path)


def half_the_tensors(family: Family, key: Key, to: Path, draw: random.Random) -> Checkpoint:
    """Of half of the adapted modules, both tensors are missing from the file."""

    def change(tensors: dict[str, Any]) -> dict[str, Any]:
        modules = sorted({name.rsplit(".lora_", 1)[0] for name in tensors})
        kept = set(draw.sample(modules, len(modules) // 2))
        return {k: v for k, v in tensors.items() if k.rsplit(".lora_", 1)[0] in kept}

    return _changed(family.checkpoints[key], to, change)


def wrong_names(family: Family, key: Key, to: Path, _: random.Random) -> Checkpoint:
    """Tensors under names of modules that the model does not have."""

    def change(tensors: dict[str, Any]) -> dict[str, Any]:
        return {k.replace(".layers.", ".blocks."): v for k, v in tensors.items()}

    return _changed(family.checkpoints[key], to, change)


def wrong_scale(family: Family, key: Key, to: Path, draw: random.Random) -> Checkpoint:
    """Twice or half of lora_alpha."""
    found = _changed(family.checkpoints[key], to, dict)
    file = to / "adapter_config.json"
    config = json.loads(file.read_text())
    config["lora_alpha"] = int(config["lora_alpha"] * draw.choice([0.5, 2]))
    file.write_text(json.dumps(config))
    return found


def zeroed_tensor(family: Family, key: Key, to: Path, draw: random.Random) -> Checkpoint:
    """One tensor of the adapter is zero."""

    def change(tensors: dict[str, Any]) -> dict[str, Any]:
        name = draw.choice(sorted(tensors))
        return {**tensors, name: tensors[name] * 0}

    return _changed(family.checkpoints[key], to, change)


SABOTAGES: dict[str, Sabotage] = {
    "the base instead of the adapter": base_instead,
    "a sibling adapter": sibling,
    "another epoch": another_epoch,
    "half the tensors": half_the_tensors,
    "wrong module names": wrong_names,
    "a wrong LoRA scale": wrong_scale,
    "a zeroed tensor": zeroed_tensor,
}
"""All but a stale prefix cache, which is of an engine and not of a file."""


@dataclass(frozen=True)
class Attempt:
    """A sabotaged checkpoint of a repeat, and whether the rule says beforehand that it does not see
    these weights in the canary's place."""

    name: str
    seed: int
    checkpoint: Checkpoint
    alike: bool


def attempts(family: Family, to: Path, label: str) -> list[Attempt]:
    """Each sabotage once a seed, of a checkpoint that the seed draws.

    To be called before vLLM runs in this process: it changes SmolLM3's class in transformers.
    """
    found = []
    for seed in sorted({seed for _, seed, _ in family.checkpoints}):
        draw = random.Random(f"{label} {seed}")
        key = draw.choice([key for key in family.checkpoints if key[1] == seed])
        for number, (name, sabotage) in enumerate(SABOTAGES.items()):
            wrong = sabotage(family, key, to / f"{seed}-{number}", draw)
            found.append(Attempt(name, seed, wrong, known_alike(family, wrong)))
    return found


def outcome(session: EngineSession, checkpoint: Checkpoint) -> str:
    """`passed`, `caught` by the canary, or `refused` by the engine itself."""
    try:
        session.log_probabilities([[5, 6]], checkpoint)
    except RuntimeError as error:
        return "caught" if "does not run the weights" in str(error) else "refused"
    except Exception:
        return "refused"
    return "passed"


def exact(family: Family, checkpoint: Checkpoint) -> tuple[tuple[float, ...], ...]:
    """What the weights at a checkpoint's path say of its canary's texts, in float32."""
    from peft import PeftModel

    canary = checkpoint.canary
    assert canary is not None
    model = load_model(family.base if checkpoint.kind != "full" else checkpoint.path, DTYPE)
    if checkpoint.kind == "lora":
        model = PeftModel.from_pretrained(model, checkpoint.path)
    texts = CanaryTexts(canary.token_ids, tuple(map(len, canary.log_probabilities)))
    return make_canary(model, texts).log_probabilities


def known_alike(family: Family, checkpoint: Checkpoint) -> bool:
    """Whether the rule says beforehand that it does not see these weights in the canary's place."""
    assert checkpoint.canary is not None
    return could_pass(checkpoint.canary, exact(family, checkpoint), DTYPE)


def _changed(
    checkpoint: Checkpoint, to: Path, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Checkpoint:
    """A copy of an adapter with other tensors."""
    shutil.copytree(checkpoint.path, to)
    tensors = {k: v.contiguous() for k, v in change(load_file(to / WEIGHTS)).items()}
    save_file(tensors, to / WEIGHTS, metadata={"format": "pt"})
    return replace(checkpoint, path=to)
