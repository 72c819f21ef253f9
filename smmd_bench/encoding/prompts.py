"""Prompts and targets -> token ids and back, and how many tokens a model reads of them.

A prompt is tokenised with the tokenizer's special tokens, without an end-of-sequence token that it
may append. A target is tokenised alone, without special tokens, and closed by the end-of-sequence
token. A picture is one placeholder in the ids; `smmd_bench.encoding.data` expands it. Training
and decoding use the same functions, so both see the same prompt ids. Nothing here imports torch.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import takewhile
from typing import Any

from ..contracts import Example, Images
from ..errors import UserError, quoted, reason_of
from .images import image_size

CROSS_ATTENTION = "cross_attention_mask"
TODAY = datetime(2024, 7, 26)
"""What templates that write the date take for it, so that no prompt depends on the day: the date
that Llama 3's own template has where there is no clock."""
# Qwen reads a picture between these marks, which its processor leaves to the prompt.
_WRAPPED = {"<|image_pad|>": "<|vision_start|><|image_pad|><|vision_end|>"}
# Characters of a text that an error shows.
_SHOWN = 30
_SPACES = re.compile(r"[ \t]+")


def user_turn(prompt: str) -> str:
    """What a chat template gets of a prompt: the text without blanks at its ends, which many
    templates drop and others keep."""
    return prompt.strip()


def encode_prompts(
    tokenizer: Any, texts: Sequence[str], *, chat: bool = False
) -> list[list[int]]:
    """Token ids of prompts, each with a leading special token where the tokenizer adds one.

    With `chat` each is the turn of a user (`user_turn`), in the tokenizer's chat template, up to
    where the assistant writes. Raises UserError if the tokenizer has no chat template.
    """
    if chat:
        _require_template(
            tokenizer.chat_template, f"tokenizer {tokenizer.name_or_path}"
        )
        texts = [_chat(tokenizer, user_turn(text)) for text in texts]
    return _encode(tokenizer, texts, special=not chat)


def encode_targets(
    tokenizer: Any, texts: Sequence[str], *, chat: bool = False
) -> list[list[int]]:
    """Token ids of targets, each with the end-of-sequence token that closes it.

    With `chat` a target begins an assistant's turn, so it has no leading space. Raises UserError if
    the tokenizer has no end-of-sequence token.
    """
    # Without it a checkpoint never learns to stop.
    if tokenizer.eos_token_id is None:
        raise UserError(
            f"The tokenizer {tokenizer.name_or_path} has no end-of-sequence token: set "
            "eos_token in its tokenizer_config.json."
        )
    texts = [text.lstrip() if chat else text for text in texts]
    rows = _token_ids(tokenizer, texts, special=False)
    return [[*row, int(tokenizer.eos_token_id)] for row in rows]


def decode_texts(
    tokenizer: Any, rows: Sequence[Sequence[int]], stop: Collection[int]
) -> list[str]:
    """The texts of completions, without padding, begin-of-text and the tokens of `stop`. Other
    special tokens stay, because a tokenizer may have its digits among them."""
    dropped = {*stop, tokenizer.pad_token_id, tokenizer.bos_token_id}
    rows = [[token for token in row if token not in dropped] for row in rows]
    # Without rows it would decode one empty text.
    if not rows:
        return []
    return list(tokenizer.batch_decode(rows, clean_up_tokenization_spaces=False))


def encode_image_prompts(
    processor: Any,
    texts: Sequence[str],
    images_each: Sequence[int],
    *,
    chat: bool = False,
    uids: Sequence[str] | None = None,
) -> list[list[int]]:
    """Token ids of prompts, each with one placeholder a picture in front of its text. Raises
    UserError if `chat` and there is no chat template, and for a prompt (named by its uid, if there
    are `uids`) that does not have one placeholder for each picture."""
    tokenizer = processor.tokenizer
    counts = list(zip(texts, images_each, strict=True))
    if chat:
        template = processor.chat_template or tokenizer.chat_template
        _require_template(template, f"processor {tokenizer.name_or_path}")
        texts = []
        for text, n in counts:
            turn = [{"type": "image"}] * n + [{"type": "text", "text": user_turn(text)}]
            texts.append(_chat(processor, turn, chat_template=template))
    elif pictures_cross(processor):
        # Mllama's pictures stand before the first token.
        image, begin = processor.image_token, tokenizer.bos_token
        texts = [image * n + begin + text for text, n in counts]
    else:
        image = _WRAPPED.get(processor.image_token, processor.image_token)
        texts = [image * n + text for text, n in counts]

    # A template and the branch of Mllama have written the leading special token already.
    special = not (chat or pictures_cross(processor))
    rows = _encode(tokenizer, texts, special=special)

    # A text may hold a placeholder, and a chat template may drop the picture's.
    for at, (row, pictures) in enumerate(zip(rows, images_each, strict=True)):
        placeholders = row.count(processor.image_token_id)
        if placeholders != pictures:
            who = f"Example {uids[at]}" if uids is not None else f"Prompt {at}"
            remedy = "leave chat_template out"
            if placeholders > pictures:
                remedy = "take them out of its text"
            raise UserError(
                f"{who} has {placeholders} placeholders '{processor.image_token}' for {pictures} "
                f"images: {remedy}."
            )
    return rows


def describe_prompts(tokenizer: Any, processor: Any | None, *, chat: bool) -> str:
    """A clause on what stands around the text of a prompt, as the model reads it."""
    if not chat:
        return "prompts without a chat template or system prompt"
    if processor is None:
        ids = encode_prompts(tokenizer, ["PROMPT"], chat=True)
    else:
        ids = encode_image_prompts(processor, ["PROMPT"], [1], chat=True)
    return f"the chat template with all that it adds, {tokenizer.decode(ids[0])!r}"


def encode_examples(
    tokenizer: Any,
    processor: Any | None,
    examples: Sequence[Example],
    *,
    chat: bool = False,
) -> list[list[int]]:
    """Token ids of the examples' prompts, with one placeholder an image.

    `processor` is the checkpoint's, or None where no example has an image. Raises UserError for an
    example whose text holds a placeholder itself.
    """
    texts = [example.prompt for example in examples]
    if processor is None:
        return encode_prompts(tokenizer, texts, chat=chat)
    counts = [len(example.images) for example in examples]
    uids = [example.uid for example in examples]
    return encode_image_prompts(processor, texts, counts, chat=chat, uids=uids)


def images_of(examples: Sequence[Example]) -> Images | None:
    """The images of each example; None where none has any."""
    images = [example.images for example in examples]
    return images if any(images) else None


def expanded_lengths(
    processor: Any, rows: Sequence[Sequence[int]], images: Images | None
) -> list[int]:
    """The tokens of each row once its images are in it, by the headers of their files alone. Images
    of one size take the same number of tokens, which is worked out once."""
    if images is None:
        return [len(row) for row in rows]
    # To work it out calls the image processor; a data set has pictures of a few sizes.
    tokens = lru_cache(None)(lambda size: picture_tokens(processor, size))
    return [
        len(row) + sum(tokens(image_size(file)) - 1 for file in files)
        for row, files in zip(rows, images, strict=True)
    ]


def picture_tokens(processor: Any, size: tuple[int, int]) -> int:
    """How many tokens a picture of (width, height) takes in place of its placeholder."""
    if pictures_cross(processor):
        return 1
    width, height = size
    # Transformers has no public name for it.
    counts = processor._get_num_multimodal_tokens(image_sizes=[(height, width)])
    return int(counts["num_image_tokens"][0])


def pictures_cross(processor: Any) -> bool:
    """Whether the text attends across to its pictures, as Mllama's does, and does not hold them."""
    return CROSS_ATTENTION in processor.model_input_names


def text_after_images(ids: Sequence[int], placeholder: int | None) -> int:
    """How many tokens follow the last image, or, where there is none, the first token."""
    places = [place for place, token in enumerate(ids) if token == placeholder]
    return len(ids) - 1 - max(places, default=0)


def require_round_trip(
    examples: Sequence[Example],
    tokenizer: Any,
    processor: Any | None,
    *,
    chat: bool,
    embeddings: int,
    model: str,
) -> None:
    """Raise UserError for the first prompt or target that does not come back from its token ids, or
    holds an id that the model has not.

    Space at the ends, the number of spaces, and what is beyond ASCII but no digit do not count:
    a tokenizer may not know them.

    embeddings: rows of the model's embedding.
    """
    stop = [tokenizer.eos_token_id]

    prompts = encode_examples(tokenizer, processor, examples, chat=chat)
    targets = encode_targets(
        tokenizer, [example.target for example in examples], chat=chat
    )

    # A placeholder's id may lie beyond the embedding: pictures take its place.
    images = set() if processor is None else {processor.image_token_id}
    ids = {token for row in [*prompts, *targets] for token in row} - images

    # Batches are padded, so that the padding token must have a row as well.
    largest = max(ids | {tokenizer.pad_token_id})
    if largest >= embeddings:
        raise UserError(
            f"The tokenizer of {model} gives the id {largest}, and the model's embedding has "
            f"{embeddings} rows: put the model's own tokenizer there, or resize the embedding."
        )

    for rows, kind in ((prompts, "prompt"), (targets, "target")):
        for example, text in zip(
            examples, decode_texts(tokenizer, rows, stop), strict=True
        ):
            # A token for the unknown is no text of the task's.
            readable = text.replace(tokenizer.unk_token or "\0", "")
            expected = _plain(getattr(example, kind))
            decoded = _plain(readable)
            if expected in decoded:
                continue

            pairs = zip(expected, decoded, strict=False)
            equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            # The excerpt has the first difference in its middle.
            start = max(0, equal - _SHOWN // 2)
            excerpt = slice(start, start + _SHOWN)
            raise UserError(
                f"The tokenizer of {model} does not give back the {kind} of example "
                f"{example.uid}: {quoted(expected[excerpt])} becomes {quoted(decoded[excerpt])}: "
                "put the model's own tokenizer there."
            )


def _token_ids(
    tokenizer: Any, texts: Sequence[str], *, special: bool
) -> list[list[int]]:
    # A tokenizer refuses an empty list of texts.
    if not texts:
        return []
    return list(tokenizer([*texts], add_special_tokens=special)["input_ids"])


def _encode(tokenizer: Any, texts: Sequence[str], *, special: bool) -> list[list[int]]:
    rows = _token_ids(tokenizer, texts, special=special)
    for row in rows:
        # A prompt that ends in it would tell the model that all is said.
        while row and row[-1] == tokenizer.eos_token_id:
            row.pop()
    return rows


def _chat(owner: Any, content: Any, **options: Any) -> str:
    """A user's turn in the template of a tokenizer or processor, whose clock stands still."""
    turns = [{"role": "user", "content": content}]
    options |= {
        "tokenize": False,
        "add_generation_prompt": True,
        "strftime_now": TODAY.strftime,
    }
    try:
        text = str(owner.apply_chat_template(turns, **options))
        # A template may hold half a surrogate pair, which no tokenizer takes.
        text.encode()
    # A template is a program, which may raise anything.
    except Exception as error:
        name = getattr(owner, "tokenizer", owner).name_or_path
        raise UserError(
            f"The chat template of {name} cannot write a user's turn ({reason_of(error)}): correct "
            "its chat_template, or leave out chat_template=true."
        ) from error
    return text


def _require_template(template: Any, owner: str) -> None:
    if not template:
        raise UserError(
            f"The {owner} has no chat template: leave out chat_template=true."
        )


def _plain(text: str) -> str:
    # A tokenizer may compose letters and accents, or take them apart.
    characters = unicodedata.normalize("NFC", text)
    kept = (c for c in characters if c.isascii() or unicodedata.category(c)[0] == "N")
    return _SPACES.sub(" ", "".join(kept)).strip()
