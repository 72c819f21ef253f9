"""The main job against what a person would write, and decoding against vLLM's own `LLM.generate`.

    python -m benchmarks.end_to_end              # three losses, one seed, builtin/tiny: 20 minutes
    MODEL=.cache/smollm2 python -m benchmarks.end_to_end    # less of it, by LoRA in bfloat16
    python -m benchmarks.end_to_end decoding 7   # rounds in one engine, probes included
    python -m benchmarks.end_to_end engines 5    # rounds of transformers and vLLM, by turns

The plain script has stock parts: a Trainer a loss, one after the other, with `ntloss` or SMMD's
formula in `compute_loss`, on the same examples and recipe; a process with a start of vLLM for each
epoch, which decodes validation and test; scores by a loop. No canary, probes, intervals, reports.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import smmd_bench as sb

os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}
REAL = os.environ.get("MODEL")
MODEL, NEW_TOKENS, WIDEST = Path(REAL or "smmd_bench/models/builtin/tiny"), 32, 512
TASK = (
    f"arithmetic[level={'easy' if REAL else 'medium'},operations=1..{1 if REAL else 2}]"
)
COUNTS, LOSSES = (960, 100, 500) if REAL else (5000, 500, 2000), ("ce", "ntl", "smmd")
SIZES = dict(zip(("train", "validation", "test"), COUNTS, strict=True))
EPOCHS, BATCH, RATE, DTYPE = (
    (1, 16, 2e-4, "bfloat16") if REAL else (2, 64, 5e-4, "float32")
)


def train(loss: str, folder: Path) -> None:
    """Fine-tune as the model's card says, and save every epoch."""
    import ntloss
    import torch
    import transformers as hf
    from peft import LoraConfig, get_peft_model

    tokenizer = hf.AutoTokenizer.from_pretrained(MODEL)
    digits = torch.tensor(tokenizer.convert_tokens_to_ids(list("0123456789")))
    ntl = ntloss.NTLoss(tokenizer, vocab_size=len(tokenizer))
    values = torch.arange(10.0)
    kernel = torch.exp(-((values[:, None] - values) ** 2) / 8)  # [10, 10], sigma = 2
    laplacian = kernel.sum(1).diag() - kernel
    matrix = kernel + laplacian / (2 * kernel.sum(1).mean())

    def auxiliary(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if loss == "ntl":
            return 2 * ntl(logits[..., : len(tokenizer)], labels)
        right = (labels[..., None] == digits).float()  # [B, T, 10]
        numeric = right.any(-1)
        r = logits[numeric][:, digits].softmax(-1) - right[numeric]
        return 3 * (r @ matrix * r).sum(-1).mean()

    class PlainTrainer(hf.Trainer):
        def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
            outputs = model(**inputs)
            if loss == "ce":
                return outputs.loss
            return outputs.loss + auxiliary(
                outputs.logits[:, :-1], inputs["labels"][:, 1:]
            )

    rows = []
    for example in sb.load_task(TASK).examples("train", 0, SIZES["train"]):
        prompt = tokenizer(example.prompt)["input_ids"]
        target = [*tokenizer(example.target)["input_ids"], tokenizer.eos_token_id]
        rows.append(
            {"input_ids": prompt + target, "labels": [-100] * len(prompt) + target}
        )
    settings = hf.TrainingArguments(
        str(folder), num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, learning_rate=RATE,
        weight_decay=0.01, warmup_steps=0.03, save_strategy="epoch", save_only_model=True,
        report_to=[], seed=0, use_cpu=True, dataloader_pin_memory=False, disable_tqdm=True,
    )  # fmt: skip
    model, collator = (
        hf.AutoModelForCausalLM.from_pretrained(MODEL),
        hf.DataCollatorForSeq2Seq,
    )
    if REAL:
        how = LoraConfig(r=16, lora_alpha=16, target_modules="all-linear")
        model = get_peft_model(model.to(torch.bfloat16), how)
    PlainTrainer(
        model, settings, collator(tokenizer), rows, processing_class=tokenizer
    ).train()


def decode(checkpoint: str) -> None:
    """Print the accuracy of a checkpoint on validation and test."""
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest

    task = sb.load_task(TASK)
    how = {
        "max_model_len": WIDEST,
        "kv_cache_memory_bytes": 2**30,
        "enforce_eager": True,
    }
    adapter = (
        LoRARequest("adapter", 1, checkpoint) if REAL and checkpoint != REAL else None
    )
    llm = LLM(REAL or checkpoint, dtype=DTYPE, enable_lora=adapter is not None, **how)  # type: ignore
    sampling = SamplingParams(temperature=0, max_tokens=NEW_TOKENS)
    for split in ("validation", "test"):
        examples = task.examples(split, 0, SIZES[split])  # type: ignore[arg-type]
        prompts = [example.prompt for example in examples]
        outputs = llm.generate(prompts, sampling, use_tqdm=False, lora_request=adapter)
        answers = [task.parse(output.outputs[0].text) for output in outputs]
        pairs = zip(answers, examples, strict=True)
        print("accuracy", 100 * sum(a == e.answer for a, e in pairs) / len(examples))


def seconds(words: Sequence[str]) -> tuple[float, str]:
    then = time.perf_counter()
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - then, done.stdout


def plain(folder: Path) -> dict[str, Any]:
    """Seconds of each part of the plain script, and its accuracies."""
    me, accuracy = [sys.executable, "-m", "benchmarks.end_to_end"], {}
    spent = {"training": 0.0, "engines and decoding": 0.0}

    def decoded(checkpoint: Path) -> tuple[float, float]:
        took, said = seconds([*me, "decode", str(checkpoint)])
        spent["engines and decoding"] += took
        validation, test = (
            float(part.split()[0]) for part in said.split("accuracy")[1:]
        )
        return validation, test

    _, accuracy["base"] = decoded(MODEL)
    for loss in LOSSES:
        spent["training"] += seconds([*me, "train", loss, str(folder / loss)])[0]
        epochs = sorted(
            (folder / loss).glob("checkpoint-*"), key=lambda path: path.stat().st_mtime
        )
        _, accuracy[loss] = max(map(decoded, epochs))
    return {"seconds": sum(spent.values()), **spent, "accuracy": accuracy}


def decoding(rounds: int) -> dict[str, Any]:
    """Prompts a CPU second of a session and of `LLM.generate` in its engine, by turns."""
    import transformers as hf
    from smmd_bench.plugins.engines.vllm import VllmEngine
    from vllm import SamplingParams

    from smmd_bench.contracts import Checkpoint, EngineSettings
    from smmd_bench.training.canary import make_canary
    from smmd_bench.training.canary_texts import general_texts

    tokenizer = hf.AutoTokenizer.from_pretrained(MODEL)
    model = hf.AutoModelForCausalLM.from_pretrained(MODEL)
    base = Checkpoint(
        "base", "base", MODEL, make_canary(model, general_texts(tokenizer))
    )
    examples = sb.load_task(TASK).examples("test", 0, SIZES["test"])
    prompts = tokenizer([example.prompt for example in examples])["input_ids"]
    digits = tokenizer.convert_tokens_to_ids(list("0123456789"))
    greedy = SamplingParams(temperature=0, max_tokens=NEW_TOKENS)
    probe = SamplingParams(temperature=0, max_tokens=1, logprob_token_ids=digits)
    asked, spent = (
        [{"prompt_token_ids": row} for row in prompts],
        dict[str, list[float]](),
    )
    with VllmEngine().open(MODEL, EngineSettings(max_model_length=WIDEST)) as session:
        llm = session.engine_with(base)  # type: ignore[attr-defined]
        ways = {
            "completions": lambda: session.generate(
                prompts, base, max_new_tokens=NEW_TOKENS
            ),
            "completions of vLLM": lambda: llm.generate(asked, greedy, use_tqdm=False),
            "probes": lambda: session.next_token_probabilities(prompts, digits, base),
            "probes of vLLM": lambda: llm.generate(asked, probe, use_tqdm=False),
        }
        for name, way in [*ways.items()] * (rounds + 1):
            then = time.process_time()
            way()
            spent.setdefault(name, []).append(time.process_time() - then)
    middle = {name: statistics.median(own[1:]) for name, own in spent.items()}
    found = {name: {"a second": len(prompts) / took} for name, took in middle.items()}
    for name in ("completions", "probes"):
        pairs = zip(spent[name][1:], spent[f"{name} of vLLM"][1:], strict=True)
        ratios = sorted(mine / theirs for mine, theirs in pairs)
        found[name] |= {
            "time": statistics.median(ratios),
            "least": ratios[0],
            "most": ratios[-1],
        }
    return found


def engines(rounds: int) -> dict[str, Any]:
    """CPU time and seconds of transformers as a multiple of vLLM's, for the same completions."""
    import transformers as hf

    from smmd_bench.contracts import Checkpoint, EngineSettings
    from smmd_bench.plugin_system.registry import load_engine

    tokenizer = hf.AutoTokenizer.from_pretrained(MODEL)
    examples = sb.load_task(TASK).examples("test", 0, SIZES["test"])
    prompts = tokenizer([example.prompt for example in examples])["input_ids"]
    settings = EngineSettings(max_model_length=WIDEST, dtype=DTYPE)  # type: ignore[arg-type]
    base = Checkpoint("base", "base", MODEL)
    clocks = {"CPU time": time.process_time, "seconds": time.perf_counter}
    ratios = {name: list[float]() for name in clocks}
    with (
        load_engine("transformers").open(MODEL, settings) as plain,
        load_engine("vllm").open(MODEL, settings) as fast,
    ):
        for _ in range(rounds + 1):
            spent = []
            for session in (plain, fast):
                then = [clock() for clock in clocks.values()]
                session.generate(prompts, base, max_new_tokens=NEW_TOKENS)
                now = [clock() for clock in clocks.values()]
                spent.append([b - a for a, b in zip(then, now, strict=True)])
            for own, mine, theirs in zip(ratios.values(), *spent, strict=True):
                own.append(mine / theirs)
    # The first round compiles and fills caches.
    found = {name: sorted(own[1:]) for name, own in ratios.items()}
    return {
        name: [statistics.median(own), own[0], own[-1]] for name, own in found.items()
    }


def main() -> None:
    match sys.argv[1:]:
        case "train", loss, folder:
            train(loss, Path(folder))
        case "decode", checkpoint:
            decode(checkpoint)
        case "decoding", rounds:
            print(json.dumps(decoding(int(rounds)), indent=1))
        case "engines", rounds:
            print(json.dumps(engines(int(rounds)), indent=1))
        case _:
            line = f"{Path(sys.executable).parent}/smmd-bench train-eval --task {TASK} --quiet"
            line += "".join(f" --{split}-examples {n}" for split, n in SIZES.items())
            line += f" --epochs {EPOCHS} --model {REAL or 'builtin/tiny'} --losses"
            with tempfile.TemporaryDirectory() as place:
                theirs, run = plain(Path(place)), f"{place}/run"
                ours, _ = seconds([*line.split(), ",".join(LOSSES), "--out", run])
                exact = sb.read_run(run).metrics.query("metric == 'exact_match'")
            found = {
                "seconds": ours,
                "accuracy": dict(exact[["loss", "value"]].to_numpy()),
            }
            print(json.dumps({"plain": theirs, "ours": found}, indent=1))


if __name__ == "__main__":
    main()
