"""How long a cell will roughly take, from its arithmetic and this machine's measured speed; and how
much of the disk a run will.

On a GPU, which need not be here, from the peak of one: an A100 in bfloat16, of which training is
taken to reach a third and decoding a twentieth. Nothing of it was measured.
"""

import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..experiment.cell import Cell
from ..plugin_system.checked_task import take_examples
from ..storage.files import read_given_json
from .run_directory import Stage
from .schedule import ENOUGH

_CHARACTERS_A_TOKEN = 2.5
_EFFICIENCY = 0.4  # of a large matrix product's speed that a training step reaches
_START_SECONDS = 15.0  # imports, loading, one checkpoint an epoch
_BEAMS = 30  # passes over a test example for its beams, beside one for its completion
_PIXELS_A_TOKEN = 28 * 28  # of Qwen2.5-VL
_FLOATS_OF_A_STATE = 3  # weights, and AdamW's two moments
A100 = 312e12  # bfloat16 operations a second
GPU_TRAINING, GPU_DECODING = 0.33, 0.05


class Estimate(NamedTuple):
    """Seconds on this machine's CPU, and hours on one A100."""

    seconds: float
    gpu_hours: float


def estimates(todo: Mapping[Cell, Sequence[Stage]]) -> dict[Cell, Estimate]:
    """A rough estimate for the missing stages of each cell."""
    passes: dict[tuple[Any, ...], float] = {}
    return {cell: _estimate(cell, stages, passes) for cell, stages in todo.items()}


def _estimate(
    cell: Cell, stages: Sequence[Stage], passes: dict[tuple[Any, ...], float]
) -> Estimate:
    if not stages:
        return Estimate(0.0, 0.0)
    key = (cell.task, cell.data_seed, cell.size("test"), cell.model, cell.recipe.max_pixels)
    if key not in passes:
        passes[key] = _passes(cell)
    trained, decoded = _operations(cell, stages, passes[key])
    starts = (_START_SECONDS if trained else 0.0) + (2.0 if decoded else 0.0)
    hours = (trained / GPU_TRAINING + decoded / GPU_DECODING) / A100 / 3600
    return Estimate(starts + (trained + decoded) / _flops(), hours)


def disk_bytes(cells: Sequence[Cell], slots: int) -> tuple[int, int]:
    """Bytes of weights that lie on the disk when these cells are finished, and at most before that,
    where `slots` jobs run at a time; those of `keep_epochs` stay.

    A cell in training has the Trainer's last two states; trained ones keep every epoch until a job
    has decoded them, which starts when enough of a base wait.
    """
    trained = [cell for cell in cells if not (cell.is_base or cell.source or cell.grid)]
    saved = {cell: _saved_bytes(cell) for cell in trained}
    kept = {c: b * (1 + c.recipe.epochs * c.recipe.keep_epochs) for c, b in saved.items()}
    epochs = sorted((b * cell.recipe.epochs for cell, b in saved.items()), reverse=True)
    bases = len({(cell.model, cell.engine, cell.recipe.dtype) for cell in trained})
    waiting = sum(epochs[: slots + 2 * ENOUGH * bases])
    states = sum(sorted(saved.values(), reverse=True)[:slots]) * _FLOATS_OF_A_STATE * 2
    end = sum(kept.values())
    return end, end + waiting + states


def _saved_bytes(cell: Cell) -> int:
    """Of one epoch's weights, in float32: those of full fine-tuning, or of an adapter."""
    if cell.recipe.method == "full":
        return 4 * cell.card.parameter_count()
    config = read_given_json(cell.card.folder / "config.json")
    config = config.get("text_config") or config
    width, heads = config["hidden_size"], config["num_attention_heads"]
    head = config.get("head_dim") or width // heads
    queries, keys = width + heads * head, width + config.get("num_key_value_heads", heads) * head
    around = {"q_proj": queries, "k_proj": keys, "v_proj": keys, "o_proj": queries}
    inner = width + config["intermediate_size"]
    ends = sum(around.get(target, inner) for target in cell.recipe.lora_targets.split())
    return int(4 * cell.recipe.lora_rank * ends * config["num_hidden_layers"])


def _operations(cell: Cell, stages: Sequence[Stage], passes: float) -> tuple[float, float]:
    """Floating-point operations of training and of decoding, with so many `_passes` an example: 2
    of each forward, 4 backward, of which the frozen weights of LoRA need half."""
    trained = decoded = 0.0
    if "train" in stages and not cell.is_base:
        each = 6 if cell.recipe.method == "full" else 4
        trained = each * passes * cell.size("train") * cell.recipe.epochs
    if "decode" in stages:
        examples = 0 if cell.trial is not None else 2 * cell.size("test")  # decoding and probes
        if not (cell.is_base or cell.grid):
            examples += cell.size("validation") * cell.recipe.epochs
        if cell.decoders and cell.trial is None:
            examples += _BEAMS * cell.size("test")
        decoded = 2 * passes * 2 * examples
    return trained, decoded


def _passes(cell: Cell) -> float:
    """Weights times what passes through them, of an example: the tokens of its text and pictures,
    or in the blocks of a vision tower the patches, of which a token has several."""
    from ..encoding.images import image_size

    sample = take_examples(cell.task_plugin, "test", cell.data_seed, min(20, cell.size("test")))
    count = max(1, len(sample))
    characters = sum(len(e.prompt) + len(e.target) for e in sample) / count
    sizes = [image_size(path) for example in sample for path in example.images]
    most = cell.recipe.max_pixels or (_most_pixels(cell.card.folder) if sizes else 0)
    pixels = sum(min(w * h, most) for w, h in sizes) / count
    of_pictures = pixels / _PIXELS_A_TOKEN
    passes = cell.card.parameter_count() * (characters / _CHARACTERS_A_TOKEN + of_pictures)
    config = read_given_json(cell.card.folder / "config.json") if sizes else {}
    if not (vision := config.get("vision_config")):
        return passes
    patches = pixels / float(vision.get("patch_size", 14)) ** 2
    return passes + _block_weights(vision) * (patches - of_pictures)


def _block_weights(vision: Mapping[str, Any]) -> float:
    """Weights of a vision tower's blocks: four matrices of attention, three of a gated layer."""
    width, inner = vision.get("hidden_size", 0), vision.get("intermediate_size", 0)
    blocks = vision.get("depth") or vision.get("num_hidden_layers") or 0
    return float(blocks * width * (4 * width + 3 * inner))


def _most_pixels(checkpoint: Path) -> float:
    """The area that a checkpoint's own processor scales a picture down to; none: any."""
    for name in ("processor_config.json", "preprocessor_config.json"):
        content = read_given_json(checkpoint / name)
        settings = content.get("image_processor", content)
        most = settings.get("max_pixels") or (settings.get("size") or {}).get("longest_edge")
        if most:
            return float(most)
    return float("inf")


def spell_seconds(value: float) -> str:
    """`95` -> "2 min"."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


@cache
def _flops() -> float:
    """Floating-point operations a second of a float32 matrix product here, less the overhead."""
    import numpy as np

    size = 1024
    matrix = np.ones((size, size), dtype=np.float32)
    matrix @ matrix
    start = time.perf_counter()
    for _ in range(3):
        matrix @ matrix
    return _EFFICIENCY * 3 * 2 * size**3 / (time.perf_counter() - start)
