"""Tiny random checkpoints of the architectures of the paper's vision backbones.

Tokens are bytes, so that N = 10 and every class of transformers reads them alike. Weights are drawn
wide, so that answers hang on the picture.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from .tiny_lms import special_tokens

ARCHITECTURES = ("qwen2_5_vl", "mistral3", "mllama")
"""By model_type of transformers; Mistral3 is Ministral-3's."""
each = pytest.mark.parametrize("architecture", ARCHITECTURES)
POSITIONS = 512
_WIDTH = 64
_TEXT: dict[str, Any] = {  # vLLM has no CPU kernel for heads of less than 32
    "hidden_size": _WIDTH, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": POSITIONS,
}  # fmt: skip
_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
_EYE = {"hidden_size": 32, "intermediate_size": 64}
_CHAT = """\
{% for message in messages %}<{{ message.role }}>{% if message.content is string %}\
{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'image' %}IMAGE\
{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}
{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"""


def build_vlm(architecture: str, folder: Path) -> Path:
    """Save a random checkpoint with its processor, in about a second; float32."""
    import torch
    from transformers import AutoModelForImageTextToText, GenerationConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    makers = {"qwen2_5_vl": _qwen2_5_vl, "mistral3": _mistral3, "mllama": _mllama}
    processor, config = makers[architecture]()
    tokenizer = processor.tokenizer

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForImageTextToText.from_config(config)
        _widen(model, tokenizer)

    model.generation_config = GenerationConfig(
        **special_tokens(tokenizer), do_sample=False
    )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def draw_picture(path: Path, seed: int, size: tuple[int, int] = (84, 84)) -> Path:
    """Save a random picture of a few coloured boxes."""
    import numpy as np
    from PIL import Image, ImageDraw

    random = np.random.default_rng(seed)
    colours = [tuple(int(x) for x in random.integers(0, 256, 3)) for _ in range(7)]
    image = Image.new("RGB", size, colours[0])
    draw = ImageDraw.Draw(image)
    for colour in colours[1:]:
        (x0, right), (top, bottom) = (
            sorted(random.integers(0, s, 2).tolist()) for s in size
        )
        draw.rectangle((x0, top, right, bottom), fill=colour)
    image.save(path)
    return path


def _tokenizer(specials: Sequence[str], names: Mapping[str, str]) -> Any:
    """A token a byte after the special ones; one that begins, if named, before every text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*specials, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(specials))
    if first := names.get("bos_token"):
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{first} $A", special_tokens=[(first, vocabulary[first])]
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _qwen2_5_vl() -> tuple[Any, Any]:
    import transformers as hf

    end, start, stop = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
    vision = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    names = {"eos_token": end, "pad_token": end}
    tokenizer = _tokenizer((end, start, stop, *vision), names)
    processor = hf.Qwen2_5_VLProcessor(
        hf.Qwen2VLImageProcessor(min_pixels=56 * 56, max_pixels=112 * 112),
        tokenizer,
        hf.Qwen2VLVideoProcessor(),
        chat_template=_CHAT.replace("IMAGE", f"{vision[0]}{vision[2]}{vision[1]}"),
    )
    ids = tokenizer.convert_tokens_to_ids(list(vision))
    config = hf.Qwen2_5_VLConfig(
        text_config={
            **_TEXT,
            "vocab_size": len(tokenizer) + 27,  # rows beyond the tokenizer, as the real one has
            "rope_parameters": {**_ROPE, "mrope_section": [4, 6, 6]},  # of half a head's width
            **special_tokens(tokenizer),
        },
        vision_config={
            **_EYE, "depth": 2, "num_heads": 2, "window_size": 56, "fullatt_block_indexes": [1],
            "out_hidden_size": _WIDTH,
        },
        vision_start_token_id=ids[0],
        vision_end_token_id=ids[1],
        image_token_id=ids[2],
        video_token_id=ids[3],
        tie_word_embeddings=True,
    )  # fmt: skip
    return processor, config


def _mistral3() -> tuple[Any, Any]:
    from transformers import Mistral3Config, PixtralImageProcessor, PixtralProcessor

    images = ("[IMG]", "[IMG_BREAK]", "[IMG_END]")
    names = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
    }
    specials = ("<unk>", "<s>", "</s>", "[INST]", "[/INST]", *images, "<pad>")
    tokenizer = _tokenizer(specials, names)
    processor = PixtralProcessor(
        PixtralImageProcessor(size={"longest_edge": 112}, patch_size=14),
        tokenizer,
        patch_size=14,
        spatial_merge_size=2,
        chat_template="{{ bos_token }}" + _CHAT.replace("IMAGE", "[IMG]"),
    )
    config = Mistral3Config(
        text_config={
            **_TEXT,
            "model_type": "ministral3",
            "vocab_size": len(tokenizer),
            "head_dim": 32,
            "max_position_embeddings": 16 * POSITIONS,
            "rope_parameters": {
                "rope_type": "yarn", "rope_theta": 10000.0, "factor": 16.0,
                "original_max_position_embeddings": POSITIONS,
                "max_position_embeddings": 16 * POSITIONS, "beta_fast": 32.0, "beta_slow": 1.0,
                "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1,
            },
            **special_tokens(tokenizer),
            "tie_word_embeddings": True,
        },
        vision_config={
            **_EYE, "model_type": "pixtral", "num_hidden_layers": 2, "num_attention_heads": 2,
            "head_dim": 16, "image_size": 112, "patch_size": 14,
        },
        image_token_index=tokenizer.convert_tokens_to_ids("[IMG]"),
        spatial_merge_size=2,
        tie_word_embeddings=True,
    )  # fmt: skip
    return processor, config


def _mllama() -> tuple[Any, Any]:
    from transformers import MllamaConfig, MllamaImageProcessor, MllamaProcessor

    begin, end, image = "<|begin_of_text|>", "<|end_of_text|>", "<|image|>"
    names = {
        "bos_token": begin,
        "eos_token": end,
        "pad_token": "<|finetune_right_pad_id|>",
    }
    headers = (
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
        "<|python_tag|>",
    )
    tokenizer = _tokenizer((begin, end, *headers, names["pad_token"]), names)
    # the last id, as there
    tokenizer.add_special_tokens({"additional_special_tokens": [image]})
    size = {"height": 56, "width": 56}
    processor = MllamaProcessor(
        MllamaImageProcessor(size=size, max_image_tiles=4),
        tokenizer,
        chat_template="{{ bos_token }}" + _CHAT.replace("IMAGE", image),
    )
    config = MllamaConfig(
        text_config={
            **_TEXT,
            "vocab_size": len(tokenizer) - 1,  # the head cannot write the image token
            "num_hidden_layers": 3,
            "cross_attention_layers": [1],
            "rope_parameters": dict(_ROPE),
            **special_tokens(tokenizer),
        },
        vision_config={
            **_EYE, "num_hidden_layers": 2, "num_global_layers": 1, "attention_heads": 2,
            "image_size": 56, "patch_size": 14, "intermediate_layers_indices": [0, 1],
            "vision_output_dim": 96,
        },
        image_token_index=tokenizer.convert_tokens_to_ids(image),
    )  # fmt: skip
    return processor, config


def _widen(model: Any, tokenizer: Any) -> None:
    """Draw matrices wider than a fresh model's, open gates that begin shut, and keep special
    tokens, but for the end of a sequence, out of answers."""
    import torch

    head = model.get_output_embeddings().weight
    special = {*tokenizer.all_special_ids, *range(len(tokenizer), len(head))}
    special = {
        token for token in special - {tokenizer.eos_token_id} if token < len(head)
    }

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gate"):
                parameter.fill_(1.0)
            elif parameter.dim() > 1:
                wide = "embed" in name or "lm_head" in name
                parameter.normal_(
                    std=1.0 if wide else 2.0 * parameter[0].numel() ** -0.5
                )
        head[sorted(special)] = 0.0
