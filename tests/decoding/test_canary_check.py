"""The rule of the canary, with made-up numbers: rounding passes, other weights do not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from smmd_bench.contracts import Canary, Checkpoint
from smmd_bench.decoding.canary_check import (
    ALONG,
    MANY,
    WHOLE,
    check_canary,
    indistinguishable,
    resolution,
)
from smmd_bench.decoding.session_canaries import add_rivals, decode_receipt

TOKENS = 40
NOISE = 0.02
EXACT = np.linspace(-0.1, -6, TOKENS)
Vector = NDArray[np.float64]


def rows(values):
    """Two sequences of equal lengths, neither so long that it is judged by itself."""
    return tuple(tuple(half.tolist()) for half in np.split(values, 2))


def of_size(direction, size):
    """The direction with this root mean square."""
    return direction * size / np.sqrt(np.mean(direction**2))


def a_canary(*rivals):
    ids = tuple(tuple(range(TOKENS // 2 + 1)) for _ in range(2))
    rounded = rows(EXACT + NOISE * np.tile([1, -1], TOKENS // 2))
    named = tuple((f"rival {k}", rows(EXACT + rival)) for k, rival in enumerate(rivals))
    return Canary(ids, rows(EXACT), rounded=rounded, rivals=named)


def passes(canary, off, dtype="bfloat16"):
    try:
        check_canary(
            Checkpoint("epoch 3", "lora", Path("here"), canary),
            rows(EXACT + off),
            dtype,
        )
    except RuntimeError:
        return False
    return True


WITHIN = 0.999 * ALONG  # the sizes below are those asked for but for rounding
directions = st.integers(0, 10_000).map(
    lambda seed: np.random.default_rng(seed).normal(size=TOKENS)
)


@given(directions, directions, st.floats(0, WITHIN), st.floats(0.01, 40))
def test_the_right_weights_pass_whatever_their_rivals(noise, rival, size, far):
    assert passes(a_canary(of_size(rival, far * NOISE)), of_size(noise, size * NOISE))


@given(directions, directions, st.floats(0, WITHIN), st.floats(0.01, 40))
def test_a_rivals_weights_fail_or_are_called_indistinguishable(noise, rival, size, far):
    off = of_size(rival, far * NOISE)
    canary = a_canary(off)
    passed = passes(canary, off + of_size(noise, size * NOISE))
    assert not passed or indistinguishable(canary, "bfloat16") == ["rival 0"]


@given(directions, st.sampled_from([-1.0, 0.5, 2.0]))
def test_an_adapter_at_another_scale_fails_where_the_base_is_far(base, share):
    way = of_size(base, 2.05 * ALONG * NOISE)  # from the adapter to the base
    assert passes(a_canary(way), np.zeros(TOKENS))
    assert not passes(a_canary(way), share * way)


@given(
    directions, st.floats(2 * WHOLE + 0.01, 40), directions, st.floats(0, 0.999 * WHOLE)
)
def test_what_moves_more_than_the_resolution_fails_in_any_direction(
    way, far, noise, size
):
    canary, off = a_canary(), of_size(way, far * NOISE)
    assert resolution(canary, "bfloat16") == pytest.approx(2 * WHOLE * NOISE)
    assert not passes(canary, off + of_size(noise, size * NOISE))


@pytest.mark.parametrize(
    ("dtype", "within", "beyond"), [("float32", 0.0009, 0.5), ("bfloat16", 0.15, 0.5)]
)
def test_one_without_rounded_values_is_judged_by_the_dtype(dtype, within, beyond):
    plain = Checkpoint(
        "epoch 3", "lora", Path("here"), Canary(((1, 2, 3),), ((-1.0, -2.0),))
    )
    check_canary(plain, [[-1.0 - within, -2.0]], dtype)
    with pytest.raises(RuntimeError, match=r"'epoch 3' \(here\).*0\.5.*token 1"):
        check_canary(plain, [[-1.0, -2.0 - beyond]], dtype)
    check_canary(replace(plain, canary=None), [[0.0]], dtype)


def test_in_half_precision_a_picture_counts_by_itself():
    """Nine tokens of text are right; the one after the picture is off by 0.5."""
    canary = Canary((tuple(range(10)), (1, 2)), ((-1.0,) * 9, (-1.0,)), pictures=1)
    checkpoint = Checkpoint("epoch 2", "full", Path("here"), canary)
    check_canary(checkpoint, [[-1.0] * 9, [-1.05]], "bfloat16")
    with pytest.raises(RuntimeError, match="epoch 2"):
        check_canary(checkpoint, [[-1.0] * 9, [-1.5]], "bfloat16")


def test_in_float32_any_token_counts_and_near_rivals_are_named():
    token = np.eye(TOKENS)[3]
    canary = a_canary(0.0019 * token, 0.0021 * token)
    assert indistinguishable(canary, "float32") == ["rival 0"]
    assert resolution(canary, "float32") == 0.002
    assert passes(canary, 0.00095 * token, "float32")
    assert not passes(canary, 0.0021 * token, "float32")


def test_a_long_sequence_is_judged_by_itself():
    """The tokens that a stale prefix cache moves are few among all."""
    lengths = [10] * 20 + [MANY]

    def values(short, long):
        offsets = [short] * 20 + [long]
        pairs = zip(offsets, lengths, strict=True)
        return tuple((off - 1.0,) * length for off, length in pairs)

    ids = tuple((1,) * (length + 1) for length in lengths)
    canary = Canary(ids, values(0, 0), rounded=values(NOISE, NOISE))
    checkpoint = Checkpoint("epoch 3", "full", Path("here"), canary)

    stale = values(0, 3 * NOISE)
    with pytest.raises(RuntimeError, match="epoch 3"):
        check_canary(checkpoint, stale, "bfloat16")

    spread = values(2 * NOISE, 2 * NOISE)
    check_canary(checkpoint, spread, "bfloat16")

    # As if the long sequence rounded nothing.
    lucky = replace(canary, rounded=values(NOISE, 0))
    checkpoint = replace(checkpoint, canary=lucky)
    check_canary(checkpoint, spread, "bfloat16")


def test_a_session_may_give_more_tokens_than_the_canary_scores():
    canary = Canary(((1, 2, 3, 4),), ((-2.0,),))
    checkpoint = Checkpoint("epoch 3", "lora", Path("here"), canary)
    check_canary(checkpoint, [[-9.0, -9.0, -2.0]], "float32")
    with pytest.raises(RuntimeError, match="token 0"):
        check_canary(checkpoint, [[-2.0, -2.0, -9.0]], "float32")


def test_the_error_names_the_rival_that_is_nearest():
    away = of_size(np.ones(TOKENS), 30 * NOISE)
    checkpoint = Checkpoint("epoch 3", "lora", Path("here"), a_canary(-away, away))
    with pytest.raises(
        RuntimeError, match=r"nearer to those of 'rival 1'.*rounding in bfloat16"
    ):
        check_canary(checkpoint, rows(EXACT + away), "bfloat16")

    alone = replace(checkpoint, canary=a_canary())
    with pytest.raises(RuntimeError) as raised:
        check_canary(alone, rows(EXACT + away), "bfloat16")
    assert "nearer" not in str(raised.value)


def test_two_seeds_that_are_near_each_other_have_the_same_note():
    names = [f"tiny arithmetic smmd seed {seed} epoch 2" for seed in (0, 1)]
    canary = Canary(((1, 2, 3),), ((-1.0, -2.0),))
    rivals = add_rivals(dict.fromkeys(names, canary))
    receipts = [decode_receipt(rivals[name], "float32") for name in names]
    assert receipts[0]["notes"] == receipts[1]["notes"]
    assert "from tiny arithmetic smmd: on its texts" in receipts[0]["notes"][0]
    # Which of them it was, a file of the cell says.
    assert [receipt["indistinguishable"] for receipt in receipts] == [
        [names[1]],
        [names[0]],
    ]
