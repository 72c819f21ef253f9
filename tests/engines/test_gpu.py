"""What vLLM is asked for on a GPU, and refused; the card itself is not there in these tests."""

import math
import os
import re
import sys
from contextlib import nullcontext
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from smmd_bench.plugins.engines import vllm as module
from smmd_bench.plugins.engines.vllm import (
    FREE_RESERVE,
    FREE_SHARE,
    VllmEngine,
    memory_share,
)
from transformers import AttentionInterface

from smmd_bench.contracts import Checkpoint, EngineSettings
from smmd_bench.decoding.canary_check import check_canary
from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.cards import model_card
from smmd_bench.models.loading import load_model
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.plugin_system.registry import load_engine
from smmd_bench.run.preflight import preflight
from smmd_bench.training.canary import make_canary
from smmd_bench.training.canary_texts import general_texts
from tests.conftest import expect_user_error, silent

GIB = 1 << 30


def test_the_share_of_all_memory_follows_from_what_is_free():
    assert memory_share(40 * GIB, 80 * GIB) == 0.45  # vLLM's own 0.92 would be refused
    assert memory_share(8 * GIB, 80 * GIB) == 0.0875  # 1 GiB is left, more than a tenth


LISTING = """GPU:0
process       4211 uses    52224.000 MB GPU memory
process         17 uses      512.500 MB GPU memory"""


@pytest.mark.parametrize(
    ("answer", "holders"),
    [
        (LISTING, "; process 4211 holds 51.0 GiB; process 17 holds 0.5 GiB"),
        ("GPU:0\nno processes are running", ""),
        ("pynvml module not found, please install nvidia-ml-py", ""),
        (RuntimeError("NVML: Insufficient Permissions"), ""),
    ],
)
def test_too_little_memory_says_which_processes_hold_it(monkeypatch, answer, holders):
    ask = Mock(side_effect=[answer])
    monkeypatch.setattr(torch.cuda, "list_gpu_processes", ask)
    sentence = (
        f"Only 0.5 GiB of the GPU are free, too little for vLLM{holders}: end other programs on "
        "it, or name another GPU in CUDA_VISIBLE_DEVICES."
    )
    with expect_user_error(f"^{re.escape(sentence)}$"):
        memory_share(GIB // 2, 80 * GIB)


@given(st.integers(GIB, 200 * GIB), st.floats(0, 1))
def test_vllm_is_never_asked_for_more_than_is_free(total, part):
    free = int(part * total)
    try:
        share = memory_share(free, total)
    except UserError:
        assert free - FREE_RESERVE < total / 10_000
        return

    requested = math.ceil(total * share)  # as vLLM's `request_memory` has it
    assert requested <= min(FREE_SHARE * free, free - FREE_RESERVE) + 1
    assert 0 < share <= FREE_SHARE


ADAPTERS = r"no adapters in float32 on a GPU: add --set dtype=bfloat16, or .* --engine transformers"
OLD = r"compute capability 8\.0 or more, and Tesla T4 has 7\.5: decode with --engine transformers"


@pytest.fixture
def card(monkeypatch):
    """`card(7, 5)`: a GPU of that compute capability, for all that anybody asks."""

    def pretend(*capability):
        monkeypatch.setattr(module, "_on_cpu", lambda: False)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")

    return pretend


@pytest.mark.parametrize(
    ("dtype", "adapters", "capability", "refused"),
    [
        ("float32", True, (9, 0), ADAPTERS),
        ("float32", False, (9, 0), None),
        ("bfloat16", True, (7, 5), OLD),
        ("float32", False, (7, 5), None),
    ],
)
def test_what_a_card_cannot_run_is_refused_before_it_starts(
    card, tmp_path, dtype, adapters, capability, refused
):
    settings = EngineSettings(dtype=dtype, adapters=adapters)
    VllmEngine().require(tmp_path, settings, 1)  # a CPU runs it all
    card(*capability)
    if refused is None:
        VllmEngine().require(tmp_path, settings, 1)
    else:
        with (
            expect_user_error(refused),
            VllmEngine().open(tmp_path, settings),
        ):
            pass


def test_the_batch_invariant_mode_is_for_hopper_and_another_engine_to_keys(
    card, tmp_path, monkeypatch
):
    engine, plain, settings = (
        VllmEngine(batch_invariant=True),
        VllmEngine(),
        EngineSettings(),
    )
    with expect_user_error(r"compute capability 9\.0 or more: leave batch_invariant"):
        engine.require(tmp_path, settings, 1)
    monkeypatch.setattr(module, "_on_cpu", lambda: False)
    engine.require(tmp_path, settings, 1)  # the host that plans may have no GPU
    card(8, 9)
    with expect_user_error("batch-invariant mode"):
        engine.require(tmp_path, settings, 1)
    card(9, 0)
    engine.require(tmp_path, settings, 1)
    assert engine.identity() == {**plain.identity(), "batch_invariant": True}

    with module._environment({"VLLM_BATCH_INVARIANT": "1"}, cpu=False, exact=True):
        assert os.environ["VLLM_BATCH_INVARIANT"] == "1"
    assert "VLLM_BATCH_INVARIANT" not in os.environ

    monkeypatch.setattr(module, "_MODES", {"batch_invariant": False})
    with (
        expect_user_error("one for a process"),
        engine.open(tmp_path, settings),
    ):
        pass


@pytest.mark.parametrize(
    ("spec", "on_cpu", "eager"),
    [
        ("vllm", False, False),
        ("vllm[eager=true]", False, True),
        ("vllm", True, True),
    ],
)
def test_an_eager_engine_compiles_nothing_and_has_keys_of_its_own(
    monkeypatch, spec, on_cpu, eager
):
    start = Mock()
    monkeypatch.setitem(sys.modules, "vllm", Mock(LLM=start))
    monkeypatch.setitem(sys.modules, "vllm.distributed", Mock())
    monkeypatch.setattr(module, "_environment", lambda *_, **__: nullcontext())
    monkeypatch.setattr(module, "_on_cpu", lambda: on_cpu)

    engine = load_engine(spec)
    folder = model_card("builtin/tiny").folder
    with engine.open(folder, EngineSettings(adapters=False)):
        assert start.call_args.kwargs["enforce_eager"] is eager

    names = engine.identity().keys()
    assert names - {"eager"} == {"name", "version", "library"}
    assert ("eager" in names) == (spec != "vllm")


def test_nothing_is_trained_that_a_card_cannot_decode(card):
    recipe = {"method": "lora", "train_examples": 4}
    cells = Experiment(tasks=("arithmetic",), losses=("ce",), recipe=recipe).cells
    card(9, 0)
    with expect_user_error(ADAPTERS):
        preflight(cells, silent)


def test_heads_that_do_not_divide_by_the_gpus_are_refused_with_the_largest_number_that_does(
    card,
):
    (cell, *_) = cells = Experiment(tasks=("arithmetic",), losses=("ce",)).cells
    card(9, 0)
    message = r"cannot split the 4 attention heads of tiny over 3 GPUs: give gpus_per_cell=2 to"
    with expect_user_error(message):
        preflight(cells, silent, gpus=3)
    VllmEngine().require(cell.card.folder, cell.engine_settings, 4)


@pytest.mark.engine
def test_tritons_products_are_of_float32_where_that_is_asked_for():
    from triton import knobs

    for exact, precision in ((True, "ieee"), (False, None)):
        with module._environment({}, cpu=False, exact=exact):
            assert knobs.language.fp32_default == precision
    assert "TRITON_F32_DEFAULT" not in os.environ


def attend_in_tf32(module, query, key, value, mask, scaling, **_):
    """Causal attention with the ten bits of mantissa that TF32 keeps of each factor."""

    def rounded(x):
        bits = x.contiguous().view(torch.int32)
        return (bits & ~0x1FFF).view(torch.float32)

    # A key and a value serve several heads of the query.
    heads = query.shape[1] // key.shape[1]
    key = key.repeat_interleave(heads, 1)
    value = value.repeat_interleave(heads, 1)

    scores = rounded(query) @ rounded(key).mT * scaling
    future = torch.ones(scores.shape[-2:])
    future = future.triu(1).bool()
    masked = scores.masked_fill(future, -torch.inf)
    p = masked.softmax(-1)
    attended = rounded(p) @ rounded(value)
    return attended.transpose(1, 2).contiguous(), None


@pytest.mark.engine
def test_the_canary_notices_tf32():
    folder = model_card("builtin/tiny").folder
    model = load_model(folder, "float32")
    texts = general_texts(load_tokenizer(folder))
    canary = make_canary(model, texts)
    AttentionInterface.register("tf32", attend_in_tf32)
    model.set_attn_implementation("tf32")
    in_tf32 = make_canary(model, texts).log_probabilities
    base = Checkpoint("base", "base", folder, canary)
    check_canary(base, canary.log_probabilities, "float32")
    with pytest.raises(RuntimeError, match=r"at most 0\.001 is allowed in float32"):
        check_canary(base, in_tf32, "float32")
