"""The decode stage: every checkpoint of one base, in one engine start.

For each cell: its epochs on the validation split, the best one kept, then the test split and the
digit probes with that one. Completions are on disk before anything scores them. A trial of a tuned
cell ends with the validation split; the tuned cell takes the weights of the best one to the test.

    validate/KEY/validation.parquet   completions of the validation split with every epoch's weights
    decode/KEY/decode.json            what the canary could not tell the decoded weights from
               completions.parquet    prompt, target and completion of every test example
               probes.parquet         digit distributions
    beams/KEY/beams.parquet           likely completions with their probabilities, for decoders
"""

import dataclasses
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from ..contracts import (
    Canary,
    Checkpoint,
    EngineSession,
    EngineSettings,
    Example,
    Progress,
)
from ..contracts.engine import CheckpointKind
from ..encoding.numbers import numeric_vocabulary
from ..encoding.prompts import encode_examples, encode_targets, images_of
from ..errors import UserError
from ..experiment.cell import Cell
from ..experiment.compatibility import INSTEAD
from ..experiment.provenance import describe_stage
from ..models.checkpoints import stop_token_ids
from ..models.loading import quiet_libraries
from ..models.tokenizers import load_processor, load_tokenizer
from ..plugin_system.registry import load_engine
from ..storage.cell import StoredCell
from ..storage.files import write_folder, write_json, write_parquet
from .beams import WIDTH, beams_frame, find_beams, require_beams
from .decode import decode_checkpoint
from .probe import answer_digits, probe, shifted
from .selection import find_trained_cell, require_whole, select_weights
from .session_canaries import Canaries, decode_receipt, session_canaries


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
        self,
        cell: Cell,
        checkpoint: Checkpoint,
        examples: Sequence[Example],
        report: Progress,
    ) -> pd.DataFrame:
        """Completions of the examples of a cell's task."""
        return decode_checkpoint(
            self.session, checkpoint, examples, self.tokenizer, cell.task_plugin.max_new_tokens,
            report, chat=cell.recipe.chat_template, processor=self.processor_for(cell),
        )  # fmt: skip


def decode_cells(
    cells: Sequence[Cell],
    run: Path,
    progress: Progress,
    prepare: Callable[[EngineSession], None] = lambda _: None,
) -> dict[Cell, Exception]:
    """Decode cells of one base; returns the error of each cell that failed. One engine start serves
    all cells with the same limits on the pixels of an image. If it fails, all of its cells fail.
    prepare: what else is done with an engine, before its cells; an error counts as one of a start.
    """
    quiet_libraries()
    tokenizer = load_tokenizer(cells[0].card.folder)
    several = len({cell.task for cell in cells}) > 1
    failures: dict[Cell, Exception] = {}
    for group in by_pixels(cells):
        ended: set[Cell] = set()
        # Cells that ended before the engine failed keep their completions.
        try:
            for cell, failure in _decode_group(
                group, run, tokenizer, progress, prepare, several=several
            ):
                ended.add(cell)
                if failure is not None:
                    failures[cell] = failure
        except Exception as error:
            traceback.print_exc()
            failures |= {cell: error for cell in group if cell not in ended}
    return failures


def _decode_group(
    cells: Sequence[Cell],
    run: Path,
    tokenizer: Any,
    progress: Progress,
    prepare: Callable[[EngineSession], None],
    *,
    several: bool,
) -> Iterator[tuple[Cell, Exception | None]]:
    """Decode cells in one engine; each one once it has ended, with its error."""
    engine, base = cells[0].engine, cells[0].card.folder
    together = settings_together(cells, tokenizer)
    limits = together.min_pixels, together.max_pixels
    processor = load_processor(base, *limits) if together.images else None

    progress("start engine", 0, 1)
    with start_engine(engine, base, together) as session:
        progress("start engine", 1, 1)
        prepare(session)
        canaries = session_canaries(cells, run)
        running = _Open(session, tokenizer, processor, progress, canaries)
        # The base comes first, and a test of transfer after the cell that it tests.
        in_order = sorted(
            cells, key=lambda cell: (not cell.is_base, cell.source is not None)
        )
        for cell in in_order:
            failure = None
            name = cell.short_label
            if several:
                name = f"{cell.task_label} {name}"
            try:
                _decode_cell(cell, run, running, name)
            except Exception as error:
                traceback.print_exc()
                failure = error
            yield cell, failure


@contextmanager
def start_engine(
    name: str, base: Path, settings: EngineSettings
) -> Iterator[EngineSession]:
    """A session of an engine on a base. Raises RuntimeError, which names the engine to choose
    instead, if it cannot start."""
    with ExitStack() as stack:
        # Only the start is tried here: what fails while it runs is the failure of one cell.
        try:
            session = stack.enter_context(load_engine(name).open(base, settings))
        except Exception as error:
            if name == INSTEAD or isinstance(error, UserError):
                raise
            why = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
            raise RuntimeError(
                f"The engine {name} did not start on {base} ({why}): if it cannot run this model, "
                f"choose --engine {INSTEAD}."
            ) from error
        yield session


def by_pixels(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells with the same limits on pixels; those without images go with the first of them."""
    groups: dict[tuple[int | None, int | None], list[Cell]] = {}
    of_text = []
    for cell in cells:
        if not cell.reads_images:
            of_text.append(cell)
            continue
        settings = cell.engine_settings
        groups.setdefault((settings.min_pixels, settings.max_pixels), []).append(cell)
    # Each group costs an engine start, and cells of text can share any.
    first, *other_groups = list(groups.values()) or [[]]
    return [[*of_text, *first], *other_groups]


def settings_together(cells: Sequence[Cell], tokenizer: Any) -> EngineSettings:
    """The settings of one engine that serves all the cells."""
    settings = [cell.engine_settings for cell in cells]
    # The limits on pixels are those of the cells with images, and all of these have the same.
    vision = [s for s in settings if s.images] or settings[:1]

    vocabularies = [
        numeric_vocabulary(tokenizer, cell.recipe.numeric_rule) for cell in cells
    ]
    return dataclasses.replace(
        vision[0],
        images=max(s.images for s in settings),
        adapters=any(s.adapters for s in settings),
        max_model_length=max(s.max_model_length for s in settings),
        max_lora_rank=max(s.max_lora_rank for s in settings),
        max_log_probabilities=max(WIDTH, *map(len, vocabularies)),
    )


def _decode_cell(cell: Cell, run: Path, running: _Open, name: str) -> None:
    checkpoint = _select(find_trained_cell(cell, run), run, running, name)
    if cell.trial is not None:
        return

    examples = cell.task_plugin.examples("test", cell.data_seed, cell.size("test"))
    stored = cell.stored(run)
    assert stored.decoded is not None
    if not stored.decoded.exists():
        with write_folder(stored.decoded) as folder:
            _test(cell, checkpoint, examples, folder, running, name)

    if stored.beamed is not None and not stored.beamed.exists():
        with write_folder(stored.beamed) as folder:
            frame = _beams(cell, checkpoint, examples, running, name)
            write_parquet(folder / "beams.parquet", frame)


def _test(
    cell: Cell,
    checkpoint: Checkpoint,
    examples: Sequence[Example],
    folder: Path,
    running: _Open,
    name: str,
) -> None:
    """Write completions and probes of the test split; completions that a killed call left there
    are of the same name, and stay."""
    recipe = cell.recipe
    completions = folder / "completions.parquet"
    if not completions.exists():
        report = partial(_named, running.progress, f"test {name}")
        write_parquet(completions, running.decode(cell, checkpoint, examples, report))

    tokenizer = running.tokenizer
    chat = recipe.chat_template
    probed = list(examples[: recipe.probe_examples])
    targets = encode_targets(tokenizer, [e.target for e in probed], chat=chat)

    frame = probe(
        running.session,
        checkpoint,
        encode_examples(tokenizer, running.processor_for(cell), probed, chat=chat),
        targets,
        [e.uid for e in probed],
        numeric_vocabulary(tokenizer, recipe.numeric_rule),
        answer_digits=answer_digits(tokenizer, probed, targets),
        images=images_of(probed),
        full_vectors=recipe.probe_vectors,
        progress=partial(_named, running.progress, f"probe {name}"),
    )
    write_parquet(folder / "probes.parquet", frame)

    receipt: dict[str, Any] = {"notes": []}
    if checkpoint.canary is not None:
        receipt = decode_receipt(checkpoint.canary, recipe.dtype)
    write_json(
        folder / "decode.json", {**receipt, "made_with": describe_stage("decode")}
    )


def _beams(
    cell: Cell,
    checkpoint: Checkpoint,
    examples: Sequence[Example],
    running: _Open,
    name: str,
) -> pd.DataFrame:
    require_beams(cell.engine, running.session)
    tokenizer, processor = running.tokenizer, running.processor_for(cell)

    stop = stop_token_ids(cell.card.folder, tokenizer)
    beams = find_beams(
        running.session,
        checkpoint,
        encode_examples(tokenizer, processor, examples, chat=cell.recipe.chat_template),
        stop,
        cell.task_plugin.max_new_tokens,
        never=() if processor is None else (processor.image_token_id,),
        images=images_of(examples),
        progress=partial(_named, running.progress, f"beams {name}"),
    )
    return beams_frame(beams, [example.uid for example in examples], tokenizer, stop)


def _select(cell: Cell, run: Path, running: _Open, name: str) -> Checkpoint:
    """The checkpoint to test: the base itself, or the best epoch's on the validation split."""
    stored = cell.stored(run)
    assert stored.receipt is not None

    canaries = running.canaries[cell.parts["train"]]
    if cell.is_base:
        return Checkpoint("base", "base", cell.card.folder, canaries[0])
    kind = stored.receipt["kind"]
    assert stored.validated is not None
    if not stored.has_validation:
        with write_folder(stored.validated) as folder:
            frame = _validate(cell, stored, canaries, running, name)
            write_parquet(folder / "validation.parquet", frame)

    # The selection follows from the completions, and what is stored from the selection.
    select_weights(cell, run)
    stored = cell.stored(run)
    assert stored.tested is not None
    if stored.checkpoint is None:
        raise RuntimeError(
            f"The weights of {cell.label} are gone: run the same command again."
        )
    require_whole(stored.checkpoint, stored.tested.digest)
    epoch = stored.tested.epoch
    return Checkpoint(f"{cell.address}-best", kind, stored.checkpoint, canaries[epoch])


def _validate(
    cell: Cell,
    stored: StoredCell,
    canaries: dict[int, Canary],
    running: _Open,
    name: str,
) -> pd.DataFrame:
    examples = cell.task_plugin.examples(
        "validation", cell.data_seed, cell.size("validation")
    )

    report = partial(_named, running.progress, f"validate {name}")
    total = len(examples) * len(canaries)
    frames = []
    kind: CheckpointKind = (stored.receipt or {})["kind"]
    for number, (epoch, canary) in enumerate(canaries.items()):
        weights = stored.epoch(epoch)
        require_whole(weights, stored.weights[epoch])
        checkpoint = Checkpoint(f"{cell.address}-{epoch}", kind, weights, canary)
        report_epoch = shifted(report, number * len(examples), total)
        frame = running.decode(cell, checkpoint, examples, report_epoch)
        frames.append(frame.assign(epoch=epoch))
    return pd.concat(frames)


def _named(progress: Progress, name: str, _: str, done: int, total: int) -> None:
    progress(name, done, total)
