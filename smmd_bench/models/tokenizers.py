"""Loading the tokenizer of a checkpoint folder, as its tokenizer.json says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import UserError, reason_of

_TRIED = ("What is 123 + 45?\nAnswer: -3/2", " 1080", "x  (12,345.60)")


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint folder, with a padding token (end-of-sequence if it has none).

    transformers 5 reads the tokenizer of some architectures, such as Qwen2, in that architecture's
    own class and with its pre-tokenizer, whatever the files say. Where that class spells texts
    otherwise than tokenizer.json does, the file counts. Raises UserError if the folder holds no
    usable tokenizer.
    """
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        if not follows_its_file(tokenizer, folder):
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        # A broken file can load as a tokenizer without a vocabulary.
        if not tokenizer.encode(_TRIED[0], add_special_tokens=False):
            raise ValueError("it spells nothing")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"The checkpoint {folder} has no tokenizer that transformers can load "
            f"({reason_of(error)}): put its tokenizer.json and tokenizer_config.json there."
        ) from error

    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def follows_its_file(tokenizer: Any, folder: Path) -> bool:
    """Whether a tokenizer spells texts as the folder's tokenizer.json does, if there is one."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        return True
    written = Tokenizer.from_file(str(file))
    # The file may pad or cut what it encodes; transformers does so only when asked.
    written.no_padding()
    written.no_truncation()
    return all(
        tokenizer.encode(text, add_special_tokens=False)
        == written.encode(text, add_special_tokens=False).ids
        for text in _TRIED
    )
