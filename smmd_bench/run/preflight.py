"""What is found before anything starts: weights that are missing, tokenizers without numbers, LoRA
targets that are no layer, missing data, broken images, tasks that cannot be scored, examples that
are too long."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..contracts import Checkpoint, Completion, Example, Progress, Split
from ..errors import UserError, quoted
from ..experiment.cell import Cell
from ..plugin_system.checked_task import take_examples
from ..plugin_system.registry import load_engine
from ..scoring.decoding_rules import metrics_under
from ..scoring.score import reads_numbers, value_of
from .room import require_room

if TYPE_CHECKING:
    import pandas as pd

Pixels = tuple[str, int | None, int | None]
"""What a processor follows from: the model, and the limits on a picture's area."""
_SCORED, _READ, _ENCODED = 4, 1000, 100
"""Targets of a split that are scored; training targets that are read; examples that are encoded."""


def preflight(cells: Sequence[Cell], progress: Progress) -> None:
    """Find the user's mistakes, and make every set of examples once, here and not in each worker.

    Raises UserError for the first mistake; of examples of a split that are too long, the longest.
    """
    for name, settings in dict.fromkeys((c.engine, c.engine_settings) for c in cells):
        if hasattr(engine := load_engine(name), "require"):
            engine.require(settings)
    tokenizers, processors = check_models(cells)
    made: dict[Any, Sequence[Example]] = {}
    read: set[Any] = set()
    for cell in cells:
        for split in cell.splits:
            data = (cell.task, split, cell.data_seed, cell.size(split))
            if data not in made:
                made[data] = _examples(cell, split, progress)
            if split == "test" and cell.decoders:
                _require_numbers(cell, made[data])
            reading = (*data, cell.model, cell.engine_settings, cell.recipe.chat_template)
            if reading in read:
                continue
            read.add(reading)
            processor = processors[pixels_of(cell)] if cell.reads_images else None
            tokenizer = tokenizers[cell.model]
            _require_round_trip(cell, made[data], tokenizer, processor)
            if beyond := require_room(cell, split, made[data], tokenizer, processor):
                progress(
                    f"{cell.task}, {split}: {beyond:,} of {len(made[data]):,} targets are longer "
                    f"than {cell.task_plugin.max_new_tokens} tokens of {cell.model}, the most that "
                    "a completion may have: no completion can equal them.",
                    0,
                    0,
                )


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


class Readers(NamedTuple):
    """The tokenizer of each model, and the processor of each that reads pictures."""

    tokenizers: Mapping[str, Any]
    processors: Mapping[Pixels, Any]


def check_models(cells: Sequence[Cell]) -> Readers:
    """Check the models of cells; returns what reads their prompts.

    Raises UserError for the first mistake. The weights of a hub model that a plan does not fetch
    are not looked for.
    """
    from ..models.checkpoints import require_safetensors
    from ..models.loading import require_all_weights, require_lora_targets
    from ..models.processor import load_processor
    from ..models.tokenizers import load_tokenizer

    models = {cell.model: cell.card for cell in cells}
    for card in models.values():
        if card.weights_are_here:
            require_safetensors(Checkpoint(card.name, "base", card.folder))
            require_all_weights(card.folder)
    tokenizers = {model: load_tokenizer(card.folder) for model, card in models.items()}
    processors = {
        pixels: load_processor(models[pixels[0]].folder, *pixels[1:])
        for pixels in dict.fromkeys(pixels_of(cell) for cell in cells if cell.reads_images)
    }
    settings = {(c.model, c.recipe.numeric_rule, c.recipe.chat_template): c for c in cells}
    for cell in settings.values():
        _check_tokenizer(cell, tokenizers[cell.model])
    trained = [cell.owner for cell in cells if not cell.is_base and cell.recipe.method == "lora"]
    for model, targets in dict.fromkeys((c.model, c.recipe.lora_targets) for c in trained):
        require_lora_targets(models[model], targets)
    return Readers(tokenizers, processors)


def pixels_of(cell: Cell) -> Pixels:
    """What a cell's processor follows from."""
    return cell.model, cell.engine_settings.min_pixels, cell.engine_settings.max_pixels


def _check_tokenizer(cell: Cell, tokenizer: Any) -> None:
    from ..encoding.numbers import numeric_vocabulary
    from ..encoding.prompts import encode_prompts, encode_targets

    numeric_vocabulary(tokenizer, cell.recipe.numeric_rule)
    cell.card.require_numeric_tokens(len(numeric_vocabulary(tokenizer, "integer")))
    encode_prompts(tokenizer, ["0"], chat=cell.recipe.chat_template)
    encode_targets(tokenizer, ["0"], chat=cell.recipe.chat_template)
