"""Beam search: against the list of all completions of a small Markov chain."""

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
        self.requests = []

    def likeliest_tokens(
        self, prefixes, checkpoint, *, most, images=None, progress=None
    ):
        assert checkpoint is CHECKPOINT
        self.requests.append((prefixes, images))
        rows = [self.log_p[ids[0], ids[-1]] for ids in prefixes]
        return [
            {int(t): float(row[t]) for t in np.argsort(-row)[:most]} for row in rows
        ]

    def every(self, prompt):
        """Each completion with its log p, by going through all of them."""
        transitions = self.log_p[prompt[0]]
        complete = {}
        growing = {(): 0.0}

        for _ in range(LENGTH):
            longer = {}
            for ids, log_p in growing.items():
                last = ids[-1] if ids else prompt[-1]
                for token, more in enumerate(transitions[last]):
                    longer[*ids, token] = log_p + float(more)
            complete |= {ids: log_p for ids, log_p in longer.items() if ids[-1] == END}
            growing = {ids: log_p for ids, log_p in longer.items() if ids[-1] != END}
        return complete | growing


@pytest.mark.parametrize("size", [3, 4])
def test_beams_are_the_likely_ones_of_all_completions(size):
    """At most 32 beginnings are likelier than the least, so none is cut for room."""
    chain = Chain(size, spread=3)
    prompts = [[0, 1], [1, 2]]
    searched = find_beams(chain, CHECKPOINT, prompts, {END}, LENGTH)

    for prompt, beams in zip(prompts, searched, strict=True):
        every = chain.every(prompt)
        likely = {
            ids: log_p for ids, log_p in every.items() if log_p >= math.log(LEAST)
        }
        assert len(likely) <= WIDTH

        log_p_of = {ids: log_p for log_p, ids in beams}
        assert log_p_of == pytest.approx(likely)
        assert beams == sorted(beams, reverse=True)


def test_at_most_the_width_is_kept_and_the_likeliest_of_them():
    chain = Chain(12, spread=0.3)
    ((*beams,),) = find_beams(chain, CHECKPOINT, [[0, 1]], {END}, 2)
    assert len(beams) == WIDTH
    assert max(len(prefixes) for prefixes, _ in chain.requests) <= WIDTH

    ended = chain.log_p[0, 1, END]
    longer = chain.log_p[0, 1, 1:] + chain.log_p[0, 1:].max(-1)
    assert beams[0][0] == pytest.approx(max(ended, *longer))


def test_a_long_list_is_searched_in_blocks_and_progress_counts_prompts():
    total = 2 * BLOCK + 4
    prompts = [[0, 1], [1, 1]] * (total // 2)
    counts = []

    def progress(what, done, total):
        counts.append(done)

    beams = find_beams(Chain(3), CHECKPOINT, prompts, {END}, 2, progress=progress)
    pair = find_beams(Chain(3), CHECKPOINT, prompts[:2], {END}, 2)

    assert beams == pair * (total // 2)
    assert counts == [0, BLOCK, 2 * BLOCK, total]


def test_each_beginning_goes_with_the_pictures_of_its_prompt():
    chain = Chain(4)
    find_beams(chain, CHECKPOINT, [[0, 1], [1, 2]], {END}, 2, images=[["a"], ["b"]])
    for prefixes, pictures in chain.requests:
        assert pictures == [["a"] if ids[0] == 0 else ["b"] for ids in prefixes]
    assert {ids[0] for ids in chain.requests[-1][0]} == {0, 1}
