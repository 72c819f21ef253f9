"""Does the canary see it when an engine runs other weights than a checkpoint's?

    python -m benchmarks.canary

For each of three architectures: a tiny base, CE and SMMD adapters of some seeds, two epochs each,
in bfloat16, trained by the harness's own stage; full checkpoints for the prefix cache. Both engines
are given each checkpoint with its own weights, and with those of a sabotage under its name: what
passes is `indistinguishable` where the rule says so beforehand, from the weights in float32.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import json
import random
import shutil
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from smmd_bench.contracts import Checkpoint, EngineSession, EngineSettings
from smmd_bench.decoding.canary_check import Rule
from smmd_bench.decoding.session_canaries import session_canaries
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples
from smmd_bench.experiment.cell import Cell
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.loading import load_model, quiet_libraries
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.plugin_system.registry import load_engine
from smmd_bench.training.canary import make_canary
from smmd_bench.training.canary_texts import CanaryTexts
from smmd_bench.training.stage import train_cell

TOKENIZERS = Path(__file__).parent.parent / "tests" / "data" / "tokenizers"
TASK, DTYPE, WEIGHTS = "arithmetic[level=easy]", "bfloat16", "adapter_model.safetensors"
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2": ("digit", {"num_hidden_layers": 2, "tie_word_embeddings": True}),
    "llama": ("triple", {"num_hidden_layers": 2, "tie_word_embeddings": False}),
    "smollm3": ("triple", {"num_hidden_layers": 4, "tie_word_embeddings": True}),
}
"""By model_type of transformers: the tokenizer of tests/data, and what its config has."""
RECIPE: dict[str, Any] = {
    "dtype": DTYPE, "train_examples": 64, "validation_examples": 4, "test_examples": 4,
    "batch_size": 8, "micro_batch_size": 8, "epochs": 2, "max_length": 400,
}  # fmt: skip
# by turns of the seeds: the lower one leaves checkpoints nearer together
RATES = (5e-3, 1e-3)
SETTINGS = EngineSettings(
    dtype=DTYPE,
    max_model_length=512,
    adapters=True,
    memory_gb=0.25,
    max_log_probabilities=10,
)
SABOTAGES = (
    "the base instead of the adapter", "a sibling adapter", "another epoch", "half the tensors",
    "wrong module names", "a wrong LoRA scale", "a zeroed tensor",
)  # fmt: skip
Key = tuple[str, int, int]
Counts = defaultdict[str, Counter[str]]


@dataclass(frozen=True)
class Family:
    """A base and checkpoints trained from it, by (loss, seed, epoch), each with its canary."""

    base: Path
    checkpoints: dict[Key, Checkpoint]


def make_base(
    architecture: str, folder: Path, *, steps: int = 150, batch: int = 16
) -> Path:
    """Save a checkpoint that has seen a few thousand sums of another data seed (in about 5 s)."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    kind, shape = ARCHITECTURES[architecture]
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / kind)
    ids = {name: getattr(tokenizer, name) for name in ("eos_token_id", "pad_token_id")}
    config = AutoConfig.for_model(
        architecture,
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_attention_heads=2,  # vLLM has no CPU kernel for heads of less than 32
        num_key_value_heads=1,
        max_position_embeddings=512,
        **ids,
        **shape,
    )
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_config(config)
    task = Experiment((TASK,), ("ce",), engine="transformers").cells[0].task_plugin
    examples = task.examples("train", 1, batch * steps)
    rows = TokenisedExamples(examples, load_tokenizer(folder), RECIPE["max_length"])
    collate = RightPaddingCollator(tokenizer.pad_token_id)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for start in range(0, batch * steps, batch):
        inputs = collate([rows[at] for at in range(start, start + batch)])
        del inputs["example"]
        model(**inputs).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    return folder


def train_family(
    base: Path, folder: Path, losses: Sequence[str], seeds: Sequence[int], **recipe: Any
) -> Family:
    """Train with the harness's own stage, in bfloat16; every epoch's weights are kept."""
    cells: list[Cell] = []
    for seed in seeds:
        settings = {**RECIPE, "learning_rate": RATES[seed % len(RATES)], **recipe}
        common: Any = {"seeds": (seed,), "engine": "transformers", "base": False}
        cells += Experiment(
            (TASK,), tuple(losses), (str(base),), recipe=settings, **common
        ).cells
    for cell in cells:
        train_cell(cell, folder, lambda *_: None)
    canaries, checkpoints = session_canaries(cells, folder), {}
    for cell in cells:
        for epoch, canary in canaries[cell.parts["train"]].items():
            weights, kind = cell.stored(folder).epoch(epoch), cell.recipe.method
            found = Checkpoint(f"{cell.label} epoch {epoch}", kind, weights, canary)  # type: ignore[arg-type]
            checkpoints[cell.loss, cell.seed, epoch] = found
    return Family(base, checkpoints)


def sabotage(
    name: str, family: Family, key: Key, to: Path, draw: random.Random
) -> Checkpoint:
    """A checkpoint of the family with other weights under its name, if need be below `to`."""
    right, (loss, seed, epoch) = family.checkpoints[key], key
    if name == "the base instead of the adapter":
        return replace(right, kind="base", path=family.base)
    if name in ("a sibling adapter", "another epoch"):
        other = (loss, seed, 3 - epoch)
        if name == "a sibling adapter":
            other = next(
                k for k in family.checkpoints if k[0] != loss and k[1:] == key[1:]
            )
        return replace(right, path=family.checkpoints[other].path)
    shutil.copytree(right.path, to)
    tensors = load_file(to / WEIGHTS)
    if name == "half the tensors":
        modules = sorted({tensor.rsplit(".lora_", 1)[0] for tensor in tensors})
        kept = set(draw.sample(modules, len(modules) // 2))
        tensors = {k: v for k, v in tensors.items() if k.rsplit(".lora_", 1)[0] in kept}
    elif name == "wrong module names":
        tensors = {k.replace(".layers.", ".blocks."): v for k, v in tensors.items()}
    elif name == "a zeroed tensor":
        tensors[draw.choice(sorted(tensors))] *= 0
    else:  # a wrong LoRA scale: twice or half of lora_alpha
        config = json.loads((to / "adapter_config.json").read_text())
        config["lora_alpha"] = int(config["lora_alpha"] * draw.choice([0.5, 2]))
        (to / "adapter_config.json").write_text(json.dumps(config))
    tensors = {k: v.contiguous() for k, v in tensors.items()}
    save_file(tensors, to / WEIGHTS, metadata={"format": "pt"})
    return replace(right, path=to)


def is_known_alike(family: Family, wrong: Checkpoint) -> bool:
    """Whether the rule, from the float32 log-probabilities of these weights, says beforehand that
    it does not see them. Call it before vLLM runs here: that changes SmolLM3 in transformers."""
    from peft import PeftModel

    canary = wrong.canary
    assert canary is not None
    model = load_model(wrong.path if wrong.kind == "full" else family.base, DTYPE)
    if wrong.kind == "lora":
        model = PeftModel.from_pretrained(model, wrong.path)
    texts = CanaryTexts(canary.token_ids, tuple(map(len, canary.log_probabilities)))
    rule, rows = Rule(canary, DTYPE), make_canary(model, texts).log_probabilities
    return bool(rule.passes((rule.scored(rows) - rule.exact)[None], times=2)[0])


def attempts(
    family: Family, to: Path, label: str
) -> list[tuple[str, Checkpoint, bool]]:
    """Each sabotage once a seed: its name, the checkpoint, and whether it is known to be alike."""
    found = []
    for seed in sorted({seed for _, seed, _ in family.checkpoints}):
        draw = random.Random(f"{label} {seed}")
        key = draw.choice([key for key in family.checkpoints if key[1] == seed])
        for number, name in enumerate(SABOTAGES):
            wrong = sabotage(name, family, key, to / f"{seed}-{number}", draw)
            found.append((name, wrong, is_known_alike(family, wrong)))
    return found


def outcome(
    session: EngineSession, checkpoint: Checkpoint, *, alike: bool = False
) -> str:
    """Caught by the canary, refused by the engine itself, indistinguishable, or passed."""
    try:
        session.generate([[5, 6]], checkpoint, max_new_tokens=1)
    except Exception as error:
        return "caught" if "does not run the weights" in str(error) else "refused"
    return "indistinguishable" if alike else "passed"


def count_stale(family: Family, session: Any, counts: Counts) -> None:
    """Each full checkpoint after another one, without and with a reset of vLLM's prefix cache."""
    checkpoints, llm = list(family.checkpoints.values()), session._llm
    for before, checkpoint in zip(
        [checkpoints[-1], *checkpoints], checkpoints, strict=False
    ):
        outcome(session, before)
        llm.reset_prefix_cache = lambda: True
        counts["a stale prefix cache"][outcome(session, checkpoint)] += 1
        del llm.reset_prefix_cache
        llm.reset_prefix_cache()
        session._current = None  # or the right weights would not be checked again
        counts["right weights, full"][outcome(session, checkpoint)] += 1


def measure(architecture: str, place: Path, repeats: int, counts: Counts) -> None:
    """All rows of one architecture, on both engines."""
    seeds = range(repeats)
    base = make_base(architecture, place / "base")
    family = train_family(base, place / "adapters", ["ce", "smmd"], seeds)
    full = train_family(base, place / "full", ["ce"], seeds, method="full", epochs=1)
    tried = attempts(family, place / "wrong", architecture)
    for engine in ("transformers", "vllm"):
        with load_engine(engine).open(base, SETTINGS) as session:
            for checkpoint in family.checkpoints.values():
                counts["right weights, LoRA"][outcome(session, checkpoint)] += 1
            for name, wrong, alike in tried:
                counts[name][outcome(session, wrong, alike=alike)] += 1
    with load_engine("vllm").open(base, replace(SETTINGS, adapters=False)) as session:
        count_stale(full, session, counts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20, help="at least 2")
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    quiet_libraries()
    counts: Counts = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        for architecture in ARCHITECTURES:
            measure(architecture, Path(folder) / architecture, repeats, counts)
    outcomes = ("caught", "refused", "indistinguishable", "passed")
    print(f"| weights | n | {' | '.join(outcomes)} |\n|---|{'---:|' * 5}")
    for name, found in counts.items():
        print(
            f"| {name} | {found.total()} | {' | '.join(str(found[o]) for o in outcomes)} |"
        )
    alarms = sum(
        f["caught"] + f["refused"] for n, f in counts.items() if n.startswith("right")
    )
    sys.exit(
        bool(alarms + sum(f["passed"] for n, f in counts.items() if n[:5] != "right"))
    )


if __name__ == "__main__":
    main()
