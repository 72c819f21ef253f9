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

    def list_completions(self, prompt):
        """Each completion with its log p, by going through all of them."""
        log_p = self.log_p[prompt[0]]
        completions = {}
        for length in range(1, LENGTH + 1):
            for ids in itertools.product(range(len(log_p)), repeat=length):
                # It ends at the first end of sequence, or at the limit.
                ends = ids[-1] == END or length == LENGTH
                if END in ids[:-1] or not ends:
                    continue
                steps = itertools.pairwise([prompt[-1], *ids])
                completions[ids] = sum(float(log_p[step]) for step in steps)
        return completions


@pytest.mark.parametrize("size", [3, 4])
def test_beams_are_the_likely_ones_of_all_completions(size):
    """At most 32 beginnings are likelier than the least, so none is cut for room."""
    chain = Chain(size, spread=3)
    prompts = [[0, 1], [1, 2]]
    by_prompt = find_beams(chain, CHECKPOINT, prompts, {END}, LENGTH)

    for prompt, beams in zip(prompts, by_prompt, strict=True):
        completions = chain.list_completions(prompt)
        likely = {ids for ids, log_p in completions.items() if log_p >= math.log(LEAST)}
        assert len(likely) <= WIDTH

        log_ps = {ids: log_p for log_p, ids in beams}
        assert log_ps.keys() == likely
        assert log_ps == pytest.approx({ids: completions[ids] for ids in likely})
        assert beams == sorted(beams, reverse=True)
        assert sum(map(math.exp, log_ps.values())) <= 1 + 1e-9


def test_at_most_the_width_is_kept_and_the_likeliest_of_them():
    chain = Chain(12, spread=0.3)
    ((*beams,),) = find_beams(chain, CHECKPOINT, [[0, 1]], {END}, 2)
    assert len(beams) == WIDTH
    assert max(len(prefixes) for prefixes, _ in chain.asked) <= WIDTH
    best = max(chain.log_p[0, 1, END], max(chain.log_p[0, 1, 1:] + chain.log_p[0, 1:].max(-1)))
    assert beams[0][0] == pytest.approx(best)


def test_a_long_list_is_searched_in_blocks_and_progress_counts_prompts():
    count = 2 * BLOCK + 3
    prompts = [[at % 2, 1] for at in range(count)]
    steps = []

    def progress(what, done, total):
        steps.append(done)

    beams = find_beams(Chain(3), CHECKPOINT, prompts, {END}, 2, progress=progress)
    pair = find_beams(Chain(3), CHECKPOINT, prompts[:2], {END}, 2)
    assert beams == (pair * count)[:count]
    assert steps == [0, BLOCK, 2 * BLOCK, count]


def test_each_beginning_goes_with_the_pictures_of_its_prompt():
    chain = Chain(4)
    find_beams(chain, CHECKPOINT, [[0, 1], [1, 2]], {END}, 2, images=[["a"], ["b"]])
    for prefixes, pictures in chain.asked:
        assert pictures == [["a"] if ids[0] == 0 else ["b"] for ids in prefixes]
    assert {ids[0] for ids in chain.asked[-1][0]} == {0, 1}
