"""What a start of an engine takes, and what it leaves behind."""

import os
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from smmd_bench.plugins.engines.transformers import TransformersEngine
from smmd_bench.plugins.engines.vllm import VllmEngine

from smmd_bench.contracts import Checkpoint
from smmd_bench.encoding.prompts import expanded_lengths
from smmd_bench.models.tokenizers import load_processor
from tests.conftest import expect_user_error

from .cases import SETTINGS, build_variants, vision_case

pytestmark = pytest.mark.engine


def test_an_engine_leaves_the_process_as_it_was_and_after_a_failed_swap_answers_nothing_more(
    tiny, tmp_path
):
    state = dict(os.environ), torch.set_num_threads
    prompts = tiny.tokenizer(["3+4=", "40+2="])["input_ids"]
    broken, missing = (
        Checkpoint(n, "full", tmp_path / n) for n in ("broken", "missing")
    )
    shutil.copytree(tiny.base, broken.path)
    (broken.path / "model.safetensors").write_bytes(b"no weights")

    with VllmEngine().open(tiny.base, replace(SETTINGS, adapters=False)) as session:
        decode = partial(session.generate, prompts, max_new_tokens=2)
        assert decode(tiny.checkpoints["full1"])
        with pytest.raises(ValueError, match="adapters=True"):
            decode(tiny.checkpoints["lora1"])
        with expect_user_error(r"'missing'.*has no \*\.safetensors"):
            decode(missing)
        decode(tiny.checkpoints["base"])
        with pytest.raises(Exception, match="header"):
            decode(broken)
        with pytest.raises(RuntimeError, match=r"'broken'.*half-way"):
            decode(tiny.checkpoints["base"])

    assert (dict(os.environ), torch.set_num_threads) == state
    with pytest.raises(RuntimeError, match="closed"):
        decode(tiny.checkpoints["base"])


@pytest.mark.slow
def test_vllm_finds_weights_below_a_folder_whose_name_is_a_pattern(tiny, tmp_path):
    odd = tmp_path / "runs [ce], *1"
    base = shutil.copytree(tiny.base, odd / "base")
    prompts = tiny.tokenizer(["3+4=", "40+2="])["input_ids"]

    with VllmEngine().open(base, SETTINGS) as session:
        for name in ("full1", "lora1", "base"):
            checkpoint = tiny.checkpoints[name]
            path = shutil.copytree(checkpoint.path, odd / name, dirs_exist_ok=True)
            moved = replace(checkpoint, path=path)
            completions = session.generate(prompts, moved, max_new_tokens=2)
            assert len(completions) == 2


@pytest.mark.slow
def test_limits_on_pixels_are_the_same_in_both_engines(tmp_path):
    case = vision_case(
        "qwen2_5_vl", tmp_path, build_variants("qwen2_5_vl", tmp_path), {}
    )
    settings = replace(SETTINGS, adapters=False, min_pixels=28 * 28, max_pixels=56 * 56)
    processor = load_processor(case.base, settings.min_pixels, settings.max_pixels)
    short = expanded_lengths(processor, case.prompts, case.images)
    assert max(short) < max(expanded_lengths(case.processor, case.prompts, case.images))

    base = replace(case.checkpoints["base"], canary=None)
    p = []
    for engine in (TransformersEngine(), VllmEngine()):
        with engine.open(case.base, settings) as session:
            p.append(case.probe(session, base))
    np.testing.assert_allclose(*p, atol=1e-4)
