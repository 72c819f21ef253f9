"""What is found before anything starts: mistakes of models (`model_checks`), missing data, broken
images, tasks that cannot be scored, examples that are too long."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..contracts import Completion, Example, Progress, Split
from ..errors import UserError, quoted
from ..experiment.cell import Cell
from ..plugin_system.checked_task import take_examples
from ..scoring.decoding_rules import metrics_under
from ..scoring.score import reads_numbers, value_of
from .model_checks import check_models, pixels_of
from .room import Need, largest_need, require_room

if TYPE_CHECKING:
    import pandas as pd

_SCORED, _READ, _ENCODED = 4, 1000, 100
"""Targets of a split that are scored; training targets that are read; examples that are encoded."""


def preflight(cells: Sequence[Cell], progress: Progress) -> None:
    """Find the user's mistakes, and make every set of examples once, here and not in each worker.

    Raises UserError for the first mistake; of examples that are too long, for the longest.
    """
    from ..models.processor import takes_pixel_limits

    tokenizers, processors = check_models(cells)
    made: dict[Any, Sequence[Example]] = {}
    needs: dict[Any, Need | None] = {}
    for cell in cells:
        for split in cell.splits:
            data = (cell.task, split, cell.data_seed, cell.size(split))
            if data not in made:
                made[data] = _examples(cell, split, progress)
            if split == "test" and cell.decoders:
                _require_numbers(cell, made[data])
            reading = (*data, cell.model, cell.engine_settings, cell.recipe.chat_template)
            if reading in needs:
                continue
            processor = processors[pixels_of(cell)] if cell.reads_images else None
            tokenizer = tokenizers[cell.model]
            _require_round_trip(cell, made[data], tokenizer, processor)
            needs[reading], beyond = largest_need(cell, split, made[data], tokenizer, processor)
            if beyond:
                progress(
                    f"{cell.task}, {split}: {beyond:,} of {len(made[data]):,} targets are longer "
                    f"than {cell.task_plugin.max_new_tokens} tokens of {cell.model}, the most that "
                    "a completion may have: no completion can equal them.",
                    0,
                    0,
                )
    limited = any(takes_pixel_limits(processor) for processor in processors.values())
    require_room([need for need in needs.values() if need is not None], pixels=limited)


def _require_round_trip(
    cell: Cell, examples: Sequence[Example], tokenizer: Any, processor: Any | None
) -> None:
    """Raise UserError where the tokenizer changes the text of one of the first examples."""
    from ..encoding.round_trip import require_round_trip
    from ..models.checkpoints import embedding_rows

    require_round_trip(
        examples[:_ENCODED],
        tokenizer,
        processor,
        chat=cell.recipe.chat_template,
        embeddings=embedding_rows(cell.card.folder),
        model=cell.model,
    )


def rehearse(cell: Cell, split: Split, examples: Sequence[Example]) -> None:
    """Read the targets of a split, and score the first, as if they were completions.

    Raises UserError where an attribute of an example has the name of a column or no file can hold
    it, the task cannot score its own target or reads another answer than the example's, or the
    metric that selects needs a column that the scores lack.
    """
    from ..decoding.decode import completions_frame
    from ..scoring.score import score_frame
    from ..scoring.statistics import metric_values

    texts = [Completion(example.target, (), "stop") for example in examples]
    frame = completions_frame(examples, texts, [0] * len(examples))
    try:
        scores = score_frame(cell.task_plugin, frame.head(_SCORED))
        for table in (frame, scores):
            _require_columns(cell, split, table)
        if reads_numbers(cell.task_plugin):
            _require_answers(cell, split, examples)
        best = cell.task_plugin.metrics()[0]
        metric_values(cell.task_plugin, scores, resamples=2)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{cell.task}, {split}: the target of example {examples[0].uid} or of one after it "
            f"cannot be scored ({type(error).__name__}: {error}): correct the task, for which "
            f"`smmd-bench validate {cell.task_plugin.name}` says more."
        ) from error
    wanted = {*best.columns, *([best.subset] if best.subset else [])}
    if lacking := sorted(wanted - {*scores.columns}):
        raise UserError(
            f"The metric {best.name}, which selects the epoch of {cell.task}, needs the column "
            f"{', '.join(lacking)}, which the scores lack: let annotate() of the task give it."
        )


def _require_columns(cell: Cell, split: Split, frame: "pd.DataFrame") -> None:
    """Raise UserError where Parquet cannot hold a column, such as integers beyond 64 bits."""
    import pyarrow as pa

    for name in frame.columns:
        try:
            pa.array(frame[name], from_pandas=True)
        except (pa.ArrowException, OverflowError) as error:
            raise UserError(
                f"{cell.task}, {split}: '{name}' of the examples cannot be kept in a file "
                f"({error}): let the task give texts, floats or integers of up to 64 bits, of one "
                "kind for all examples."
            ) from error


def _require_answers(cell: Cell, split: Split, examples: Sequence[Example]) -> None:
    """Raise UserError where an answer is not the number that the task reads in the target."""
    for example in examples:
        found = value_of(cell.task_plugin, example.target)
        answer = None if example.answer is None else example.answer.value
        if found is None or found != answer:
            raise UserError(
                f"{cell.task}, {split}: the task reads {found} in the target of example "
                f"{example.uid}, {quoted(example.target[-60:])}, whose answer is {answer}: "
                f"let parse() of the task read it, or correct the answer; `smmd-bench validate "
                f"{cell.task_plugin.name}` says more."
            )


def _require_numbers(cell: Cell, examples: Sequence[Example]) -> None:
    """Raise UserError where the targets are not one number each, which decoding rules need."""
    asked = f"--decoders {','.join(cell.decoders)}"
    if any(e.answer_start for e in examples) or all(e.answer is None for e in examples):
        raise UserError(
            f"{cell.task} has targets that are not one number: {asked} needs a task whose "
            "completion is the answer alone, such as arithmetic."
        )
    if not metrics_under(cell.task_plugin, cell.decoders[0]):
        raise UserError(
            f"{cell.task} has no metric of the error, such as MAE: {asked} would change nothing."
        )


def _examples(cell: Cell, split: Split, progress: Progress) -> Sequence[Example]:
    """The examples of a split, with images that can be read and names that scoring can take."""
    progress(f"examples of {cell.task}, {split}", 0, 1)
    examples = take_examples(cell.task_plugin, split, cell.data_seed, cell.size(split))
    there = len(examples)
    progress(f"examples of {cell.task}, {split}", 1, 1)
    shortage = cell.shortage(split, there)
    if shortage is not None and there < cell.examples_there(split):  # planning could not know it
        progress(shortage, 0, 0)
    if not there:
        raise UserError(
            f"{cell.task} has no example of the {split} split: ask for at least one with "
            f"--{split}-examples, or copy its data again."
        )
    if cell.reads_images:
        from ..encoding.images import check_images

        files = (file for example in examples for file in example.images)
        what = f"images of {cell.task}, {split}"
        check_images(files, lambda _, done, total: progress(what, done, total))
    rehearse(cell, split, [*islice(examples, _READ)] if split == "train" else examples)
    return examples
