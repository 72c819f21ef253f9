"""The rule by which an engine's log-probabilities are those of a checkpoint, or are not.

Let x be the canary: n log-probabilities in float32. Let e be what the engine says of them, and s
the rounding noise: the root mean square by which transformers in the engine's dtype is off.

    whole   |e - x| <= 2.5 s
    along   |<e - x, r - x>| / |r - x| <= 1.25 s   for every rival r with |r - x| > 2.5 s

|.| is the root mean square over the tokens, <., .> the mean of the product. `along` is the part of
the deviation that points to a rival, or away from it. It holds less noise than the whole, and so
sees an adapter at half or twice its scale (with the base as the rival) sooner. A rival's own
weights deviate by |r - x| along its direction, give or take 1.25 s of noise, so they pass only
where |r - x| <= 2.5 s: then the two are called indistinguishable, since rounding alone may be what
differs. In float32 no token may be off by more than 0.001, and a rival is indistinguishable where
no token of it differs by more than 0.002.

Measured with the right weights in bfloat16 (`docs/runs.md`: tiny Qwen2, Llama and SmolLM3;
vLLM and transformers on a CPU; 540 checks): the whole is 0.8 to 1.5 s, the part along a rival at
most 0.65 s; an adapter merged into bfloat16 weights is within 1.5 s too. s is 0.006 to 0.018 nat
there. Deeper models round more often, so each canary has measured its own.
Parts of a canary are compared with `whole` separately, each with its own s, so that none waters
down another: sequences without and with the picture, and the one that a prefix cache serves. The
tokens of one sequence round together: of the last s is at least that of all sequences without the
picture. SmolLM2-135M has 0.02 to 0.09 nat there in epochs of one training, 0.05 to 0.10 in all.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..contracts import Canary, Checkpoint

Rows = Sequence[Sequence[float]]
Array = NDArray[np.float64]
LARGEST = {"float32": 1e-3}
"""How far any token may be off, by the dtype that the engine runs in."""
NOISE = {"bfloat16": 0.05}
"""Root mean square of the rounding noise where a canary has not measured it."""
LEAST_NOISE = 1e-3
MANY = 24
"""Tokens of a sequence that is judged by itself, such as the one that a prefix cache serves."""
WHOLE = 2.5
ALONG = 1.25
_WITHOUT_PICTURE, _WITH_PICTURE = -1, -2


def check_canary(checkpoint: Checkpoint, seen: Rows, dtype: str) -> float:
    """Compare a session's log-probabilities of the canary's sequences with the canary.

    `seen[k]` ends with those of the tokens that the canary scores. Returns the largest deviation of
    a token. Raises RuntimeError, which names it and the nearest rival, where the rule above fails.
    """
    if checkpoint.canary is None:
        return 0.0
    rule = Rule(checkpoint.canary, dtype)
    scores = rule.scored(seen)
    off = scores - rule.exact  # [n]
    if rule.passes(off[None])[0]:
        return float(np.abs(off).max(initial=0))

    if dtype in LARGEST:
        allowed = f"at most {LARGEST[dtype]:g} is allowed in {dtype}"
    else:
        allowed = (
            f"rounding in {dtype} explains {WHOLE * rule.noise.max():.2g} (root mean square), and "
            "half of that towards another checkpoint"
        )

    # To argmax a NaN is the largest.
    worst = int(np.abs(off).argmax())
    raise RuntimeError(
        f"The engine does not run the weights of checkpoint '{checkpoint.name}' "
        f"({checkpoint.path}): the log-probabilities of its canary are off by up to "
        f"{abs(off[worst]):.3g} (token {worst}: transformers {rule.exact[worst]:.4f}, engine "
        f"{scores[worst]:.4f}){rule.describe_nearest(scores)}; {allowed}. Nothing was "
        "decoded with it."
    )


def indistinguishable(canary: Canary, dtype: str) -> list[str]:
    """The rivals whose weights the rule could take for the canary's own, by name."""
    rule = Rule(canary, dtype)
    alike = rule.passes(rule.rivals - rule.exact, times=2)
    return [
        name
        for (name, _), is_alike in zip(canary.rivals, alike, strict=True)
        if is_alike
    ]


def resolution(canary: Canary, dtype: str) -> float:
    """How far other weights may move the scored tokens and still pass, in whatever direction. In
    nats: in float32 the largest deviation of a token, in half precision the root mean square."""
    if dtype in LARGEST:
        return 2 * LARGEST[dtype]
    return float(2 * WHOLE * Rule(canary, dtype).noise.max())


class Rule:
    """The rule for one canary with n scored tokens and R rivals, in the dtype of an engine."""

    def __init__(self, canary: Canary, dtype: str) -> None:
        self.canary = canary
        self.dtype = dtype
        self.exact = _flat(canary.log_probabilities)  # [n]
        rivals = [_flat(rows) for _, rows in canary.rivals]
        # Without a rival, R = 0 is a shape all the same.
        shape = len(rivals), len(self.exact)
        self.rivals = np.reshape(rivals, shape)  # [R, n]

        self.kind = _kinds_of_tokens(canary)  # [n]
        kinds = np.unique(self.kind)
        self.parts = [self.kind == kind for kind in kinds]
        self.noise = self._measure_noise()  # [n], that of its part

    def _measure_noise(self) -> Array:
        noise = np.full(len(self.exact), NOISE.get(self.dtype, 0.0))
        if not self.canary.rounded:
            return noise

        off = _flat(self.canary.rounded) - self.exact
        without_picture = off[self.kind != _WITH_PICTURE]
        for part in self.parts:
            least = LEAST_NOISE
            # One sequence says little: its tokens round together.
            if self.kind[part][0] >= 0:
                least = max(least, float(_rms(without_picture)))
            noise[part] = max(least, float(_rms(off[part])))
        return noise

    def scored(self, seen: Rows) -> Array:
        """Of what a session gives for the canary's sequences, the tokens that the canary scores."""
        rows = zip(self.canary.log_probabilities, seen, strict=True)
        return _flat([row[len(row) - len(exact) :] for exact, row in rows])

    def passes(self, off: Array, times: float = 1) -> NDArray[np.bool_]:
        """Whether each deviation of `off` [K, n] is within `times` what is allowed; NaN is not."""
        if self.dtype in LARGEST:
            return np.asarray((np.abs(off) <= times * LARGEST[self.dtype]).all(axis=1))
        deviation, towards_rival = self.sizes(off)
        return np.asarray(
            (deviation <= times * WHOLE) & (towards_rival <= times * ALONG)
        )

    def sizes(self, off: Array) -> tuple[Array, Array]:
        """Of each deviation of `off` [K, n], in units of the noise: the largest whole of a part,
        and the largest share along a rival that is far enough; [K] each."""
        scaled = off / self.noise
        of_parts = [_rms(scaled[:, part]) for part in self.parts]
        largest = np.max(of_parts, axis=0)  # [K]

        ways = (self.rivals - self.exact) / self.noise  # [R, n]
        distances = _rms(ways)  # [R]
        # Rounding alone may be what parts a nearer rival from the canary.
        is_far = distances > 2 * ALONG
        ways, distances = ways[is_far], distances[is_far]
        directions = ways / distances[:, None]
        products = scaled @ directions.T  # [K, R]
        along = np.abs(products / len(self.noise))
        most_along = along.max(axis=1, initial=0)  # [K]
        return largest, most_along

    def describe_nearest(self, scores: Array) -> str:
        """A clause that names the rival to which scores are nearer than to the canary."""
        distance = _rms(scores - self.rivals)  # [R]
        if not len(distance) or not distance.min() < _rms(scores - self.exact):
            return ""
        name, _ = self.canary.rivals[int(distance.argmin())]
        return f", nearer to those of '{name}'"


def _kinds_of_tokens(canary: Canary) -> NDArray[np.int64]:
    """The part of each scored token: the number of its sequence, where that has `MANY` tokens, or
    else one of the two that other sequences share."""
    counts = [len(row) for row in canary.log_probabilities]
    first_picture = len(counts) - canary.pictures
    kinds = np.full(len(counts), _WITHOUT_PICTURE)
    kinds[first_picture:] = _WITH_PICTURE
    for number, count in enumerate(counts):
        if count >= MANY:
            kinds[number] = number
    return np.repeat(kinds, counts)


def _flat(rows: Rows) -> Array:
    return np.array([value for row in rows for value in row], dtype=float)


def _rms(values: Array) -> Array:
    """[..., n] -> [...]"""
    return np.asarray(np.sqrt(np.mean(values**2, axis=-1)))
