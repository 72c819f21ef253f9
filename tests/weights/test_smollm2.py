"""A real checkpoint, SmolLM2-135M-Instruct, through every stage.

Where it is not: `python scripts/fetch_smollm2.py .cache/smollm2`. SMMD_BENCH_DATA has the real
problems and questions.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from smmd_bench.plugins.engines.transformers import TransformersEngine
from smmd_bench.plugins.engines.vllm import VllmEngine
from transformers import AutoModelForCausalLM

import smmd_bench as sb
from smmd_bench.contracts import Checkpoint, EngineSettings
from smmd_bench.models.loading import load_model
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.regression.suites import find_suites, lm_eval_tasks
from smmd_bench.training.canary import make_canary
from smmd_bench.training.canary_texts import general_texts

from ..end_to_end.conftest import CommandLine, cells

FOLDER = Path(os.environ.get("SMMD_BENCH_CACHE", ".cache"), "smollm2").resolve()
REAL = FOLDER.exists() and "SMMD_BENCH_DATA" in os.environ
WHY = "no scripts/fetch_smollm2.py .cache/smollm2, or no SMMD_BENCH_DATA"
pytestmark = [
    pytest.mark.weights, pytest.mark.timeout(3600), pytest.mark.skipif(not REAL, reason=WHY)
]  # fmt: skip
JOB = f"train-eval --task 'arithmetic[level=easy]' --losses smmd --model {FOLDER} --epochs 2 "
JOB += "--train-examples 32 --validation-examples 4 --test-examples 8 --out"


def test_both_engines_write_the_same_tokens_and_probabilities_for_real_problems():
    tokenizer = load_tokenizer(FOLDER)
    problems = load_task("gsm8k").examples("test", 0, 50)
    prompts = [tokenizer(problem.prompt)["input_ids"] for problem in problems]
    canary = make_canary(load_model(FOLDER, "float32"), general_texts(tokenizer))
    base = Checkpoint("base", "base", FOLDER, canary)
    numbers = sb.numeric_vocabulary(tokenizer).token_ids.tolist()
    assert len(numbers) == 10
    tokens, probabilities = [], []

    for engine in (TransformersEngine(), VllmEngine()):
        with engine.open(FOLDER, EngineSettings(max_model_length=512)) as session:
            result = session.generate(prompts, base, max_new_tokens=32)
            tokens.append([completion.token_ids for completion in result])
            probabilities.append(
                session.next_token_probabilities(prompts, numbers, base)
            )

    assert tokens[0] == tokens[1]
    np.testing.assert_allclose(*probabilities, atol=1e-3)


def test_an_adapter_is_trained_killed_resumed_merged_and_asked(tmp_path):
    command, out, other = (
        CommandLine({**os.environ}),
        tmp_path / "run",
        tmp_path / "other",
    )
    command.finish(JOB, out)
    cell = cells(out)["smollm2", "smmd"]
    command.kill_when(
        (other / f"train/.{cell.trained.name}.part/epochs/1").exists, JOB, other
    )
    command.finish(JOB, other)
    assert cells(other)["smollm2", "smmd"].tested == cell.tested  # the same weights
    command.finish(f"export {out} --loss smmd --merged --out", tmp_path / "merged")
    (config,) = (tmp_path / "merged").rglob("config.json")
    merged, info = AutoModelForCausalLM.from_pretrained(
        config.parent, dtype=torch.float32, output_loading_info=True
    )
    assert not any(info.values())
    ours = PeftModel.from_pretrained(load_model(FOLDER, "float32"), cell.checkpoint)
    texts = general_texts(load_tokenizer(FOLDER))
    rows = [make_canary(model, texts).log_probabilities for model in (merged, ours)]
    for row, expected in zip(*rows, strict=True):
        # the merged weights are bfloat16
        np.testing.assert_allclose(row, expected, atol=0.3)
    words = "--suite mmlu_anatomy --losses base --engine transformers --limit 20"
    command.finish(f"regress {out} {words}")

    with lm_eval_tasks(find_suites(["mmlu_anatomy"], None)[0]) as given:
        words = f"run --model hf --model_args pretrained={FOLDER},dtype=bfloat16 --device cpu "
        words += f"--tasks mmlu_anatomy --num_fewshot 5 --limit 20 --output_path {tmp_path}/theirs "
        words += f"--include_path {given['task_manager'].include_path}"
        lm_eval = Path(sys.executable).parent / "lm-eval"
        subprocess.run([lm_eval, *shlex.split(words)], check=True)

    (results,) = (tmp_path / "theirs").rglob("results_*.json")
    accuracy = json.loads(results.read_text())["results"]["mmlu_anatomy"]["acc,none"]
    frame = sb.read_run(out).regression.set_index("metric")
    assert frame.loc["acc", "value"] == pytest.approx(100 * accuracy)


def test_full_fine_tuning_with_the_chat_template(tmp_path):
    words = f"{JOB} {tmp_path / 'run'} --method full --set chat_template=true --no-base"
    CommandLine({**os.environ}).finish(words)
    assert cells(tmp_path / "run")["smollm2", "smmd"].metrics is not None
