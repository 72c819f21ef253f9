"""A trial of an engine before anything is trained: the untuned model answers a prompt of each task.

Where the untuned model is a cell of its own, decoding it first says as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..contracts import Checkpoint, Progress
from ..experiment.cell import Cell
from ..models.loading import quiet_libraries
from ..models.processor import load_processor
from ..models.tokenizers import load_tokenizer
from .beams import require_beams
from .decode import decode_checkpoint
from .stage import by_pixels, settings_together, start_engine

TOKENS = 2
"""That are decoded of each task."""


def try_engine(cells: Sequence[Cell], progress: Progress) -> None:
    """Start the engine of cells of one base as decoding them will, and let the base answer.

    Raises what the engine raises where it cannot run the model.
    """
    quiet_libraries()
    card, engine = cells[0].card, cells[0].engine
    tokenizer, base = load_tokenizer(card.folder), Checkpoint("base", "base", card.folder)
    for group in by_pixels([(cell, Path()) for cell in cells]):
        tried = [cell for cell, _ in group]
        together = settings_together(tried, tokenizer)
        limits = together.min_pixels, together.max_pixels
        processor = load_processor(card.folder, *limits) if together.images else None
        progress("try engine", 0, 1)
        with start_engine(engine, card.folder, together) as session:
            for cell in {cell.task: cell for cell in tried}.values():
                if cell.decoders:
                    require_beams(engine, session)
                examples = cell.task_plugin.examples("test", cell.data_seed, cell.size("test"))
                decode_checkpoint(
                    session,
                    base,
                    examples[:1],
                    tokenizer,
                    TOKENS,
                    progress,
                    chat=cell.recipe.chat_template,
                    processor=processor if cell.reads_images else None,
                )
        progress("try engine", 1, 1)
