"""The decode stage: every checkpoint of one base, in one engine start.

For each cell: its epochs on the validation split, the best one kept, then the test split and the
digit probes with that one. Completions are on disk before anything scores them. A trial of a tuned
cell ends with the validation split; the tuned cell takes the weights of the best one to the test.

    CELL/validation.parquet   completions of the validation split with every epoch's weights
    CELL/selection.json       address, best epoch, validation metrics of every epoch
    CELL/checkpoint/          the best epoch's weights
    CELL/decode.json          what the canary could not tell the decoded weights from
    CELL/completions.parquet  prompt, target and completion of every test example
    CELL/beams.parquet        likely completions with their probabilities, for other decoders
    CELL/probes.parquet       digit distributions
"""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from ..contracts import (
    Canary,
    Checkpoint,
    CheckpointKind,
    EngineSession,
    EngineSettings,
    Example,
    Progress,
)
from ..encoding.numbers import numeric_vocabulary
from ..encoding.prompts import encode_examples, encode_targets, images_of
from ..errors import UserError
from ..experiment.cell import Cell
from ..experiment.suitability import INSTEAD
from ..models.checkpoints import stop_token_ids
from ..models.circumstances import made_with
from ..models.loading import quiet_libraries
from ..models.processor import load_processor
from ..models.tokenizers import load_tokenizer
from ..plugin_system.registry import load_engine
from ..storage.files import write_json, write_parquet
from .beams import WIDTH, beams_frame, find_beams, require_beams
from .choice import find_trained_cell
from .decode import decode_checkpoint
from .probe import answer_digits, probe, shifted
from .selection import require_whole, settle
from .siblings import Canaries, decode_receipt, session_canaries


@dataclass(frozen=True)
class _Open:
    """A running session, with what encodes its prompts (`processor`: for images)."""

    session: EngineSession
    tokenizer: Any
    processor: Any | None
    progress: Progress
    canaries: Canaries

    def processor_for(self, cell: Cell) -> Any | None:
        """The processor where the cell's task has images."""
        return self.processor if cell.reads_images else None

    def decode(
        self, cell: Cell, checkpoint: Checkpoint, examples: Sequence[Example], report: Progress
    ) -> pd.DataFrame:
        """Completions of the examples of a cell's task."""
        return decode_checkpoint(
            self.session,
            checkpoint,
            examples,
            self.tokenizer,
            cell.task_plugin.max_new_tokens,
            report,
            chat=cell.recipe.chat_template,
            processor=self.processor_for(cell),
        )


def decode_cells(cells: Sequence[tuple[Cell, Path]], progress: Progress) -> dict[Path, Exception]:
    """Decode cells of one base; returns the error of each cell that failed, by its folder.

    One engine start serves all cells with the same limits on the pixels of an image. If it fails,
    all of its cells fail.
    """
    quiet_libraries()
    tokenizer = load_tokenizer(cells[0][0].card.folder)
    several = len({cell.task for cell, _ in cells}) > 1
    ended: dict[Path, Exception | None] = {}
    for group in by_pixels(cells):
        try:
            for folder, failure in _decode_group(group, tokenizer, progress, several=several):
                ended[folder] = failure
        except Exception as error:
            traceback.print_exc()
            for _, folder in group:
                ended.setdefault(folder, error)
    return {folder: error for folder, error in ended.items() if error is not None}


def _decode_group(
    cells: Sequence[tuple[Cell, Path]], tokenizer: Any, progress: Progress, *, several: bool
) -> Iterator[tuple[Path, Exception | None]]:
    """Decode cells in one engine; each one's folder once it has ended, with its error."""
    engine, base = cells[0][0].engine, cells[0][0].card.folder
    together = settings_together([cell for cell, _ in cells], tokenizer)
    limits = together.min_pixels, together.max_pixels
    processor = load_processor(base, *limits) if together.images else None
    progress("start engine", 0, 1)
    with start_engine(engine, base, together) as session:
        progress("start engine", 1, 1)
        running = _Open(session, tokenizer, processor, progress, session_canaries(cells))
        # The base comes first, and a test of transfer after the cell that it tests.
        turns = sorted(cells, key=lambda pair: (not pair[0].is_base, pair[0].source is not None))
        for cell, folder in turns:
            failure = None
            try:
                name = f"{cell.task} {cell.short_label}" if several else cell.short_label
                _decode_cell(cell, folder, running, name)
            except Exception as error:
                traceback.print_exc()
                failure = error
            yield folder, failure


@contextmanager
def start_engine(name: str, base: Path, settings: EngineSettings) -> Iterator[EngineSession]:
    """A session of an engine on a base. Raises RuntimeError, which names the engine to choose
    instead, if it cannot start."""
    with ExitStack() as stack:
        try:
            session = stack.enter_context(load_engine(name).open(base, settings))
        except Exception as error:
            if name == INSTEAD or isinstance(error, UserError):
                raise
            raise RuntimeError(
                f"The engine {name} did not start on {base} ({_brief(error)}): if it cannot run "
                f"this model, choose --engine {INSTEAD}."
            ) from error
        yield session


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__


def by_pixels(cells: Iterable[tuple[Cell, Path]]) -> list[list[tuple[Cell, Path]]]:
    """Cells with the same limits on pixels; those without images go with the first of them."""
    groups: dict[tuple[int | None, int | None], list[tuple[Cell, Path]]] = {}
    without = []
    for cell, folder in cells:
        if not cell.reads_images:
            without.append((cell, folder))
            continue
        settings = cell.engine_settings
        limits = (settings.min_pixels, settings.max_pixels)
        groups.setdefault(limits, []).append((cell, folder))
    first, *others = list(groups.values()) or [[]]
    return [[*without, *first], *others]


def settings_together(cells: Sequence[Cell], tokenizer: Any) -> EngineSettings:
    """The settings of one engine that serves all the cells."""
    settings = [cell.engine_settings for cell in cells]
    vision = [s for s in settings if s.images] or settings[:1]
    return dataclasses.replace(
        vision[0],
        images=max(s.images for s in settings),
        adapters=any(s.adapters for s in settings),
        max_model_length=max(s.max_model_length for s in settings),
        max_lora_rank=max(s.max_lora_rank for s in settings),
        max_log_probabilities=max(
            WIDTH,
            *(len(numeric_vocabulary(tokenizer, cell.recipe.numeric_rule)) for cell in cells),
        ),
    )


def _decode_cell(cell: Cell, folder: Path, running: _Open, name: str) -> None:
    run = folder.parents[1]
    checkpoint = _select(find_trained_cell(cell, run), run, running, name)
    if cell.trial is not None:
        return
    tokenizer, progress = running.tokenizer, running.progress
    processor = running.processor_for(cell)
    examples = cell.task_plugin.examples("test", cell.data_seed, cell.size("test"))
    now, chat, software = cell.files(run), cell.recipe.chat_template, made_with("decode")
    assert now.decode_stamp is not None
    if checkpoint.canary is not None:
        said = decode_receipt(checkpoint.canary, cell.recipe.dtype, now.decode_stamp)
        write_json(folder / "decode.json", said)
    if not now.has("completions"):
        test = partial(_named, progress, f"test {name}")
        frame = running.decode(cell, checkpoint, examples, test)
        write_parquet(folder / "completions.parquet", frame, now.decode_stamp, software)
    if not now.has("probes"):
        count = cell.recipe.probe_examples
        probed = list(examples if count is None else examples[:count])
        targets = encode_targets(tokenizer, [e.target for e in probed], chat=chat)
        frame = probe(
            running.session,
            checkpoint,
            encode_examples(tokenizer, processor, probed, chat=chat),
            targets,
            [e.uid for e in probed],
            numeric_vocabulary(tokenizer, cell.recipe.numeric_rule),
            answer_digits=answer_digits(tokenizer, probed, targets),
            images=images_of(probed),
            full_vectors=cell.recipe.probe_vectors,
            progress=partial(_named, progress, f"probe {name}"),
        )
        write_parquet(folder / "probes.parquet", frame, now.decode_stamp, software)
    if now.beams_stamp is not None and not now.has("beams"):
        require_beams(cell.engine, running.session)
        stop = stop_token_ids(cell.card.folder, tokenizer)
        found = find_beams(
            running.session,
            checkpoint,
            encode_examples(tokenizer, processor, examples, chat=chat),
            stop,
            cell.task_plugin.max_new_tokens,
            never=() if processor is None else (processor.image_token_id,),
            images=images_of(examples),
            progress=partial(_named, progress, f"beams {name}"),
        )
        frame = beams_frame(found, [example.uid for example in examples], tokenizer, stop)
        write_parquet(folder / "beams.parquet", frame, now.beams_stamp, software)


def _select(cell: Cell, run: Path, running: _Open, name: str) -> Checkpoint:
    """The checkpoint to test: the base itself, or the best epoch's on the validation split."""
    folder, now = cell.folder(run), cell.files(run)
    assert now.receipt is not None
    canaries = running.canaries[folder]
    if cell.is_base:
        return Checkpoint("base", "base", cell.card.folder, canaries[0])
    kind = now.receipt["kind"]
    if now.selection is None and not now.has_validation:
        frame = _validate(cell, folder, kind, canaries, running, name)
        write_parquet(folder / "validation.parquet", frame, now.validation_stamp)
    settle(cell, run)
    chosen = cell.files(run)
    assert chosen.tested is not None
    assert chosen.checkpoint is not None
    require_whole(chosen.checkpoint, chosen.tested.digest)
    return Checkpoint(f"{folder.name}-best", kind, chosen.checkpoint, canaries[chosen.tested.epoch])


def _validate(
    cell: Cell,
    folder: Path,
    kind: CheckpointKind,
    canaries: dict[int, Canary],
    running: _Open,
    name: str,
) -> pd.DataFrame:
    """Completions of the validation split with every epoch's weights."""
    examples = cell.task_plugin.examples("validation", cell.data_seed, cell.size("validation"))
    report = partial(_named, running.progress, f"validate {name}")
    total = len(examples) * len(canaries)
    digests, frames = cell.files(folder.parents[1]).weights, []
    for before, (epoch, canary) in enumerate(canaries.items()):
        weights = folder / "epochs" / str(epoch)
        require_whole(weights, digests[epoch])
        checkpoint = Checkpoint(f"{folder.name}-{epoch}", kind, weights, canary)
        part = shifted(report, before * len(examples), total)
        frame = running.decode(cell, checkpoint, examples, part)
        frames.append(frame.assign(epoch=epoch))
    return pd.concat(frames)


def _named(progress: Progress, name: str, _: str, done: int, total: int) -> None:
    progress(name, done, total)
