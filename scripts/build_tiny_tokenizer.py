"""Make the tokenizer of `builtin/tiny`: Qwen2's, but small; one token a digit.

    python scripts/build_tiny_tokenizer.py smmd_bench/models/builtin/tiny

Qwen2's own pre-tokenizer over bytes, so that transformers and vLLM keep it as it is. The merges are
learned from the text that the checkpoint is pre-trained on, of words alone: operators and brackets
stay single characters, but for the space before them. The same command makes the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from _tiny_text import SOURCES
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import Qwen2Tokenizer

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
EXAMPLES = 4_000
"""Of each source; a merge has to be of use in one of a hundred of them."""
VOCABULARY, MODEL_MAX_LENGTH = 1_024, 16_384
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
Merges = list[tuple[str, str]]


def learn_merges(texts: Sequence[str], size: int, min_frequency: int) -> Merges:
    """The merges of a byte-level BPE with Qwen2's pre-tokenizer, of `size` tokens at most."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = Qwen2Tokenizer()._tokenizer.pre_tokenizer
    options = {"show_progress": False, "initial_alphabet": ALPHABET}
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=min_frequency, **options
    )
    learner.train_from_iterator(texts, trainer)
    return [
        (left, right) for left, right in json.loads(learner.to_str())["model"]["merges"]
    ]


def make_tokenizer(
    merges: Merges, special: Iterable[str], length: int
) -> Qwen2Tokenizer:
    tokens = dict.fromkeys([*ALPHABET, *("".join(pair) for pair in merges)])
    return Qwen2Tokenizer(
        vocab={token: index for index, token in enumerate(tokens)},
        merges=merges,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token=None,
        additional_special_tokens=[*special],
        model_max_length=length,
        clean_up_tokenization_spaces=False,
    )


def keep_words(merges: Merges) -> Merges:
    """Those that join letters, or a space and one mark."""
    kept, known = [], set(ALPHABET)
    for left, right in merges:
        letters = (left + right).lstrip("Ġ").isalpha()
        if {left, right} <= known and (letters or (left == "Ġ" and len(right) == 1)):
            kept.append((left, right))
            known.add(left + right)
    return kept


def main(folder: Path) -> None:
    texts = [
        prompt + target
        for name, source in SOURCES.items()
        if name != "stories"  # the words of the tasks
        for prompt, target in source("tokenizer", "train", EXAMPLES)
    ]
    merges = keep_words(learn_merges(texts, VOCABULARY - len(SPECIAL), EXAMPLES // 100))
    tokenizer = make_tokenizer(merges, SPECIAL, MODEL_MAX_LENGTH)
    tokenizer.save_pretrained(folder)
    print(f"{len(tokenizer)} tokens in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
