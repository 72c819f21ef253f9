"""What vLLM asks for on a GPU; the card itself is not there in these tests."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smmd_bench.plugins.engines.vllm import FREE_RESERVE, FREE_SHARE, memory_share

from smmd_bench.errors import UserError

GIB = 1 << 30


@pytest.mark.parametrize(
    ("free", "total", "share"),
    [
        (80, 80, 0.9),  # an empty card
        (40, 80, 0.45),  # half of it is taken: vLLM's own 0.92 would be refused
        (8, 80, 0.0875),  # 7 GiB: 1 GiB is left, which is more than a tenth
        (1.5, 24, 0.0208),
    ],
)
def test_the_share_of_all_memory_follows_from_what_is_free(free, total, share):
    assert memory_share(int(free * GIB), int(total * GIB)) == share


@given(st.integers(GIB, 200 * GIB), st.floats(0, 1))
def test_vllm_is_never_asked_for_more_than_is_free(total, part):
    free = int(part * total)
    try:
        share = memory_share(free, total)
    except UserError:
        assert free - FREE_RESERVE < total / 10_000
        return
    asked = math.ceil(total * share)  # as vLLM's `request_memory` has it
    assert asked <= min(FREE_SHARE * free, free - FREE_RESERVE) + 1
    assert 0 < share <= FREE_SHARE
