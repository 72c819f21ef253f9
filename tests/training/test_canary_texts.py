"""What a canary reads: training prompts with their targets, the same for every loss and seed."""

from pathlib import Path

from smmd_bench.contracts import Answer, Example
from smmd_bench.encoding.prompts import encode_prompts, encode_targets
from smmd_bench.models.processor import load_processor
from smmd_bench.training.canary_texts import (
    BLOCK,
    CACHED,
    SCORED,
    SEQUENCES,
    SEQUENCES_WITH_PICTURES,
    canary_texts,
    general_texts,
)


def sums(count, words=0):
    """Every third one is shorter than the others."""
    return [
        Example(
            f"sum/{k}",
            f"{k}+{k}={'1+2=' * (words + 4 * bool(k % 3))}",
            "123456789012345"[: 1 + k % 15],
            Answer(k),
            images=(Path("nowhere.png"),),
        )
        for k in range(count)
    ]


def test_they_are_the_shortest_prompts_with_the_first_tokens_of_their_targets(tiny_checkpoints):
    tokenizer, examples = tiny_checkpoints("digit").tokenizer, sums(90)
    texts = canary_texts(examples, tokenizer, None, 400)
    assert texts == canary_texts(examples, tokenizer, None, 400)
    *short, long = zip(texts.token_ids, texts.scored, strict=True)
    prompts = encode_prompts(tokenizer, [e.prompt for e in examples])
    targets = encode_targets(tokenizer, [e.target for e in examples])
    every = {(*p, *t[:SCORED]): len(t[:SCORED]) for p, t in zip(prompts, targets, strict=True)}
    assert len(short) == SEQUENCES
    assert all(every[ids] == scored for ids, scored in short)
    longest = max(len(ids) for ids, _ in short)
    assert sum(len(ids) < longest for ids in every) <= SEQUENCES
    assert len(long[0]) == CACHED
    assert long[1] == CACHED - BLOCK  # a block of a prefix cache, and then what it serves
    assert long[0][: len(short[0][0])] == short[0][0]


def test_prompts_with_a_picture_come_behind_texts_without(tiny_vlm):
    processor = load_processor(tiny_vlm("qwen2_5_vl"))
    texts = canary_texts(sums(30), processor.tokenizer, processor, 400)
    general = general_texts(processor.tokenizer, processor)
    without = len(texts.token_ids) - texts.pictures
    assert texts.pictures == SEQUENCES_WITH_PICTURES
    assert texts.token_ids[:without] == general.token_ids[: -general.pictures]
    counts = [ids.count(processor.image_token_id) for ids in texts.token_ids]
    assert counts == [0] * without + [1] * texts.pictures
    bare = [Example("a", "1+1=", "2", Answer(2))]
    assert canary_texts(bare, processor.tokenizer, processor, 400) == general
