"""What vLLM asks for on a GPU; the card itself is not there in these tests."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from smmd_bench.plugins.engines import _gpu_memory
from smmd_bench.plugins.engines._gpu_memory import RESERVE, SHARE, request_memory
from smmd_bench.plugins.engines._vllm_session import VllmSession

from smmd_bench.contracts import Checkpoint
from smmd_bench.errors import UserError

GIB = 1 << 30


@pytest.mark.parametrize(
    ("free", "total", "utilization"),
    [
        (80, 80, 0.9),  # an empty card
        (40, 80, 0.45),  # half of it is taken: vLLM's own 0.92 would be refused
        (8, 80, 0.0875),  # 7 GiB: 1 GiB is left, which is more than a tenth
        (140, 140, 0.9),
        (1.5, 24, 0.0208),
    ],
)
def test_the_share_of_all_memory_follows_from_what_is_free(free, total, utilization):
    assert request_memory(int(free * GIB), int(total * GIB)).utilization == utilization


def test_the_note_says_what_is_free_and_what_is_asked_for():
    said = "vLLM asks for 36.0 GiB: 40.0 of the GPU's 80.0 GiB are free."
    assert request_memory(40 * GIB, 80 * GIB).note == said


@pytest.mark.parametrize("free", [0, GIB // 2, GIB])
def test_a_card_that_is_full_is_refused_with_the_remedy(free):
    with pytest.raises(UserError, match=r"GiB are free, too little for vLLM.*CUDA_VISIBLE_DEVICES"):
        request_memory(free, 80 * GIB)


@given(st.integers(GIB, 200 * GIB), st.floats(0.05, 1))
def test_vllm_is_never_asked_for_more_than_is_free(total, part):
    free = int(part * total)
    try:
        utilization = request_memory(free, total).utilization
    except UserError:
        assert free - RESERVE < total / 10_000
        return
    asked = math.ceil(total * utilization)  # as vLLM's `request_memory` has it
    assert asked <= min(SHARE * free, free - RESERVE) + 1
    assert 0 < utilization <= SHARE


def test_the_memory_is_that_of_torchs_gpu_or_vllm_decides_itself(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert _gpu_memory.gpu_memory_request() is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (40 * GIB, 80 * GIB))
    assert _gpu_memory.gpu_memory_request() == request_memory(40 * GIB, 80 * GIB)


def test_a_session_says_its_note_once(monkeypatch):
    def stop(*_):
        raise InterruptedError

    session = object.__new__(VllmSession)  # no engine is started
    session._note = "vLLM asks for 36.0 GiB."
    monkeypatch.setattr(VllmSession, "_rows", stop)
    heard = []
    base = Checkpoint("base", "base", Path())
    for progress in (None, lambda *said: heard.append(said), lambda *said: heard.append(said)):
        with pytest.raises(InterruptedError):
            session.generate([[1]], base, max_new_tokens=1, progress=progress)
    assert heard == [("vLLM asks for 36.0 GiB.", 0, 0)]
