"""Beam search: against the list of all completions of a small Markov chain."""

import itertools
import math

import numpy as np
import pytest

from smmd_bench.decoding.beams import BLOCK, LEAST, WIDTH, find_beams

END, LENGTH = 0, 4
CHECKPOINT = object()


class Chain:
    """Log p of the next token follows from the last one and the prompt's first."""

    def __init__(self, size, spread=1.5):
        logits = spread * np.random.default_rng(size).normal(size=(2, size, size))
        self.log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        self.asked = []

    def likeliest_tokens(self, prefixes, checkpoint, *, most, images=None, progress=None):
        assert checkpoint is CHECKPOINT
        self.asked.append((prefixes, images))
        rows = [self.log_p[ids[0], ids[-1]] for ids in prefixes]
        return [{int(t): float(row[t]) for t in np.argsort(-row)[:most]} for row in rows]

    def every(self, prompt):
        """Each completion with its log p, by going through all of them."""
        found = {}
        for length in range(1, LENGTH + 1):
            for ids in itertools.product(range(self.log_p.shape[1]), repeat=length):
                if END in ids[:-1] or (ids[-1] != END and length < LENGTH):
                    continue
                steps = itertools.pairwise([prompt[-1], *ids])
                found[ids] = sum(float(self.log_p[prompt[0], a, b]) for a, b in steps)
        return found


@pytest.mark.parametrize("size", [3, 4])
def test_beams_are_the_likely_ones_of_all_completions(size):
    """At most 32 beginnings are likelier than the least, so none is cut for room."""
    chain, prompts = Chain(size, spread=3), [[0, 1], [1, 2]]
    found = find_beams(chain, CHECKPOINT, prompts, {END}, LENGTH)
    for prompt, beams in zip(prompts, found, strict=True):
        every = chain.every(prompt)
        likely = {ids: p for ids, p in every.items() if p >= math.log(LEAST)}
        assert len(likely) <= WIDTH
        assert {ids for _, ids in beams} == {*likely}
        assert all(p == pytest.approx(every[ids]) for p, ids in beams)
        assert beams == sorted(beams, reverse=True)
        assert sum(math.exp(p) for p, _ in beams) <= 1 + 1e-9


def test_at_most_the_width_is_kept_and_the_likeliest_of_them():
    chain = Chain(12, spread=0.3)
    ((*beams,),) = find_beams(chain, CHECKPOINT, [[0, 1]], {END}, 2)
    assert len(beams) == WIDTH
    assert max(len(prefixes) for prefixes, _ in chain.asked) <= WIDTH
    best = max(chain.log_p[0, 1, END], max(chain.log_p[0, 1, 1:] + chain.log_p[0, 1:].max(-1)))
    assert beams[0][0] == pytest.approx(best)


def test_a_long_list_is_searched_in_blocks_and_progress_counts_prompts():
    prompts, said = [[at % 2, 1] for at in range(2 * BLOCK + 3)], []
    found = find_beams(Chain(3), CHECKPOINT, prompts, {END}, 2, progress=lambda *s: said.append(s))
    pair = find_beams(Chain(3), CHECKPOINT, prompts[:2], {END}, 2)
    assert found == (pair * len(prompts))[: len(prompts)]
    total = len(prompts)
    assert [done for _, done, _ in said] == [0, BLOCK, 2 * BLOCK, total]


def test_each_beginning_goes_with_the_pictures_of_its_prompt():
    chain = Chain(4)
    find_beams(chain, CHECKPOINT, [[0, 1], [1, 2]], {END}, 2, images=[["a"], ["b"]])
    for prefixes, pictures in chain.asked:
        assert pictures == [["a"] if ids[0] == 0 else ["b"] for ids in prefixes]
    assert {ids[0] for ids in chain.asked[-1][0]} == {0, 1}
