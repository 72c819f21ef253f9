"""The tokenizer of a checkpoint folder, and the processor that makes pixels of pictures for it."""

import json
from pathlib import Path
from typing import Any

from ..errors import UserError, reason_of

# Where pre-tokenizers differ: digits, signs, points, and the blanks and lines around them.
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


def reads_images(folder: Path) -> bool:
    """Whether the model of a checkpoint folder takes pictures; an adapter's folder says no."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and bool(config.get("vision_config"))


def load_processor(
    folder: Path, min_pixels: int | None = None, max_pixels: int | None = None
) -> Any:
    """The processor of a checkpoint folder, with limits on the area that pictures are scaled to.

    Without limits (None), the checkpoint's own. Raises UserError if transformers cannot load the
    processor, or it takes no such limits.
    """
    from transformers import AutoProcessor

    try:
        processor = AutoProcessor.from_pretrained(folder)
        images, tokenizer = processor.image_processor, processor.tokenizer
    except (
        OSError,
        ValueError,
        KeyError,
        ImportError,
        TypeError,
        AttributeError,
    ) as error:
        raise UserError(
            f"The checkpoint {folder} has no processor of images and text that transformers can "
            f"load ({reason_of(error)}): put its processor_config.json or preprocessor_config.json "
            "there, and see that torchvision is installed."
        ) from error

    # A processor brings the tokenizer of its architecture: see `load_tokenizer`.
    if not follows_its_file(tokenizer, folder):
        processor.tokenizer = load_tokenizer(folder)
    if processor.tokenizer.pad_token_id is None:
        processor.tokenizer.pad_token = processor.tokenizer.eos_token

    edges = {"shortest_edge": min_pixels, "longest_edge": max_pixels}
    limits = {edge: pixels for edge, pixels in edges.items() if pixels is not None}

    # Only a processor such as Qwen2.5-VL's scales pictures to an area between two limits.
    options = getattr(getattr(images, "valid_kwargs", None), "__annotations__", {})
    if limits and "min_pixels" not in options:
        raise UserError(
            f"The processor of {folder} ({type(processor).__name__}) takes no min_pixels or "
            "max_pixels: leave them out."
        )

    if limits:
        # `size` is a dict in some processors and a class of transformers in others.
        images.size = type(images.size)(**{**dict(images.size), **limits})
    return processor
