"""Examples -> token ids -> batches.

A prompt is tokenised with the tokenizer's special tokens, less an end-of-sequence token that it
may append; a target is tokenised alone, without special tokens, and closed by the end-of-sequence
token. Training and decoding use the same functions, so both see the same prompt ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..contracts import Example, NumericLoss, Progress
from ..errors import UserError

IGNORE = -100
_CHUNK = 1000


def encode_prompts(tokenizer: Any, texts: Sequence[str], *, chat: bool = False) -> list[list[int]]:
    """Token ids of prompts, each with a leading special token where the tokenizer adds one.

    With `chat` each is the turn of a user, in the tokenizer's chat template, up to where the
    assistant writes. Raises UserError if the tokenizer has no chat template.
    """
    if chat:
        if not tokenizer.chat_template:
            raise UserError(
                f"The tokenizer {tokenizer.name_or_path} has no chat template: leave out "
                "chat_template=true, or take an instruction-tuned model."
            )
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": text.strip()}],
                tokenize=False,
                add_generation_prompt=True,
            )
            for text in texts
        ]
    rows: list[list[int]] = tokenizer(list(texts), add_special_tokens=not chat)["input_ids"]
    for row in rows:
        while row and row[-1] == tokenizer.eos_token_id:
            row.pop()
    return rows


def encode_targets(tokenizer: Any, texts: Sequence[str], *, chat: bool = False) -> list[list[int]]:
    """Token ids of targets, each with the end-of-sequence token that closes it.

    With `chat` a target begins an assistant's turn, so it has no leading space. Raises UserError if
    the tokenizer has no end-of-sequence token.
    """
    if tokenizer.eos_token_id is None:
        raise UserError(
            f"The tokenizer {tokenizer.name_or_path} has no end-of-sequence token: set "
            "eos_token in its tokenizer_config.json."
        )
    texts = [text.lstrip() if chat else text for text in texts]
    rows = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return [[*row, int(tokenizer.eos_token_id)] for row in rows]


class TokenisedExamples(torch.utils.data.Dataset[dict[str, Tensor]]):  # type: ignore[misc]
    """Examples tokenised once, in flat int32 arrays: 2M short ones take about 300 MB.

    Item k is {input_ids [L], labels [L], example []} int64: labels unshifted, -100 over the prompt,
    and example is k. `lengths` [n] are in tokens. Raises UserError at the first example longer than
    `max_length` tokens: nothing is ever cut.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        tokenizer: Any,
        max_length: int,
        progress: Progress | None = None,
        *,
        chat: bool = False,
    ) -> None:
        ids, stored, lengths, prompts = [], [], [], []
        for start in range(0, len(examples), _CHUNK):
            chunk = list(examples[start : start + _CHUNK])
            for example, prompt, target in zip(
                chunk,
                self._encode(tokenizer, chunk, chat=chat),
                encode_targets(tokenizer, [e.target for e in chunk], chat=chat),
                strict=True,
            ):
                length = self._read_length(example, prompt) + len(target)
                if length > max_length:
                    raise UserError(
                        f"Training example {example.uid} has {length} tokens, "
                        f"more than {max_length}, the lower of max_length and the model's "
                        "positions, and is never cut: raise --set max_length=N, or take a model "
                        "with more positions."
                    )
                ids.append(np.asarray(prompt + target, dtype=np.int32))
                stored.append(len(prompt) + len(target))
                lengths.append(length)
                prompts.append(len(prompt))
            if progress is not None:
                progress("tokenise", min(start + _CHUNK, len(examples)), len(examples))
        self.ids = np.concatenate(ids)
        self.lengths = np.asarray(lengths)
        self.prompts = np.asarray(prompts)
        self.ends = np.cumsum(stored)
        self.starts = self.ends - stored

    def _encode(
        self, tokenizer: Any, examples: Sequence[Example], *, chat: bool
    ) -> list[list[int]]:
        return encode_prompts(tokenizer, [e.prompt for e in examples], chat=chat)

    def _read_length(self, example: Example, prompt: list[int]) -> int:
        """How many tokens the model reads of a prompt."""
        return len(prompt)

    def numeric_targets(self, tokenizer: Any, loss: NumericLoss) -> dict[str, int]:
        """How many target tokens there are, with those that end a target (`tokens`), how many hold
        a digit, how many of these are outside V_num, how many are in V_num (`numeric`), and on how
        many of those the loss acts (`covered`).

        A token such as "045" of a tokenizer with N = 1000 is outside: only cross-entropy sees it.
        """
        targets = np.concatenate(
            [self.ids[a:b] for a, b in zip(self.starts + self.prompts, self.ends, strict=True)]
        )
        tokens, counts = (torch.from_numpy(x) for x in np.unique(targets, return_counts=True))
        index = loss.vocabulary.index_of(tokens.long())
        numeric = index >= 0
        digits = torch.tensor(
            [any(x.isdigit() for x in tokenizer.decode([token])) for token in tokens.tolist()]
        )
        return {
            "tokens": len(targets),
            "digit_tokens": int(counts[digits].sum()),
            "outside": int(counts[digits & ~numeric].sum()),
            "numeric": int(counts[numeric].sum()),
            "covered": int(counts[numeric][loss.covers(index[numeric])].sum()),
        }

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        ids = self._ids(index)
        labels = ids.clone()
        labels[: self.prompts[index]] = IGNORE
        return {"input_ids": ids, "labels": labels, "example": torch.tensor(index)}

    def _ids(self, index: int) -> Tensor:
        return torch.from_numpy(self.ids[self.starts[index] : self.ends[index]].astype(np.int64))


class RightPaddingCollator:
    """Rows of any lengths -> {input_ids, attention_mask, labels} [B, T], example [B], all int64."""

    def __init__(self, pad_token_id: int) -> None:
        self.pad_token_id = pad_token_id

    def __call__(self, rows: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Pad to the longest row."""
        width = max(len(row["input_ids"]) for row in rows)
        batch = {
            "input_ids": torch.full((len(rows), width), self.pad_token_id),
            "attention_mask": torch.zeros((len(rows), width), dtype=torch.long),
            "labels": torch.full((len(rows), width), IGNORE),
            "example": torch.stack([row["example"] for row in rows]),
        }
        for i, row in enumerate(rows):
            length = len(row["input_ids"])
            batch["input_ids"][i, :length] = row["input_ids"]
            batch["attention_mask"][i, :length] = 1
            batch["labels"][i, :length] = row["labels"]
        return batch
