"""Make the tokenizer of `builtin/tiny`: one token a digit, byte fallback, 16k positions.

    python scripts/build_tiny_tokenizer.py smmd_bench/models/builtin/tiny

Digits, operators and brackets stand alone; a binary plus or minus with its
spaces is one token, and so is the cue before an answer. The few merges are learned from the
arithmetic task's own prompts (words such as "Calculate"), so that a prompt is short; any other text
falls back to characters and bytes. The same command makes the same bytes.
"""

from __future__ import annotations

import random
import string
import sys
from pathlib import Path

import numpy as np
from smmd_bench.tasks._mixed_expressions import REGIMES, problems
from smmd_bench.tasks.arithmetic import PROMPT
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<eos>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
CHARACTERS = ["\n", *(c for c in string.printable if c.isprintable())]
PIECES = Regex(r"\nAnswer: | [-+] |[0-9]| ?[A-Za-z]+|\s|[^0-9A-Za-z\s]")
MODEL_MAX_LENGTH = 16_384


def main(folder: Path) -> None:
    stream = problems(REGIMES["easy"], random.Random(0), np.random.RandomState(0))
    prompts = [PROMPT.format(question=next(stream).question) for _ in range(2_000)]
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Split(PIECES, behavior="isolated")
    learner.train_from_iterator(
        prompts, trainers.BpeTrainer(vocab_size=4_096, show_progress=False, min_frequency=50)
    )
    merges = _merges(learner)
    vocabulary = [*SPECIAL, *BYTES, *CHARACTERS, *("".join(pair) for pair in merges)]
    vocabulary = list(dict.fromkeys(vocabulary))
    tokenizer = Tokenizer(
        models.BPE(
            vocab={token: index for index, token in enumerate(vocabulary)},
            merges=merges,
            byte_fallback=True,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(PIECES, behavior="isolated")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<eos>",
        pad_token="<pad>",
        model_max_length=MODEL_MAX_LENGTH,
        clean_up_tokenization_spaces=False,
    ).save_pretrained(folder)
    print(f"{len(vocabulary)} tokens, {len(merges)} merges, in {folder}")


def _merges(learner: Tokenizer) -> list[tuple[str, str]]:
    import json

    merges = json.loads(learner.to_str())["model"]["merges"]
    return [(left, right) for left, right in merges]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
