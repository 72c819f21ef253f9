"""What is found before anything starts: weights that are missing, tokenizers without numbers, LoRA
targets that are no layer, missing data, broken images, tasks that cannot be scored, examples that
do not fit the context, targets in which decoding would stop.

Training reads prompt and target, which `max_length` bounds together. Decoding reads the prompt,
which it bounds too, and writes up to `max_new_tokens`; probes of the test split read the target.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from ..contracts import Checkpoint, Completion, Example, Progress, Split
from ..decoding.decode import completions_frame
from ..encoding.images import check_images
from ..encoding.prompts import (
    encode_examples,
    encode_prompts,
    encode_targets,
    expanded_lengths,
    images_of,
    require_round_trip,
)
from ..errors import UserError, quoted
from ..experiment.cell import Cell
from ..models.checkpoints import (
    at_most_positions,
    embedding_rows,
    require_safetensors,
    stop_token_ids,
)
from ..models.tokenizers import load_processor, load_tokenizer
from ..plugin_system.checked_task import take_examples
from ..plugin_system.registry import load_engine
from ..scoring.deciding import selecting_metrics
from ..scoring.decoding_rules import metrics_under
from ..scoring.measure import measure
from ..scoring.score import reads_numbers, value_of

_SCORED, _READ, _ENCODED = 4, 1000, 100
"""Targets of a split that are scored; training targets that are read; examples that are encoded."""


def preflight(
    cells: Sequence[Cell], progress: Progress, gpus: int = 1
) -> dict[tuple[str, str, Split], float]:
    """Find the user's mistakes, and make every set of examples once, here and not in each worker.

    gpus: of an engine. Returns the mean tokens of an example by model, task and split: `Lengths`.
    Raises UserError for the first mistake; of examples of a split that are too long, the longest.
    """
    # What takes no examples comes first: these may take minutes to make.
    _require_engines(cells, gpus)
    tokenizers = _check_models(cells)
    load_processor_once = cache(load_processor)
    examples_of: dict[Any, Sequence[Example]] = {}
    checked: set[Any] = set()
    lengths: dict[tuple[str, str, Split], float] = {}
    # A task without training data says so before its test split is made.
    for cell in sorted(cells, key=lambda cell: cell.is_base):
        for split in cell.splits:
            data = (cell.task, split, cell.data_seed, cell.size(split))
            if data not in examples_of:
                examples_of[data] = _take_examples(cell, split, progress)
            examples = examples_of[data]
            if split == "test" and cell.decoders:
                _require_numbers(cell, examples)

            settings = cell.engine_settings
            reading = (*data, cell.model, settings, cell.recipe.chat_template)
            # Losses and seeds of a task read the same examples.
            if reading in checked:
                continue
            checked.add(reading)

            processor = None
            if cell.reads_images:
                pixels = (settings.min_pixels, settings.max_pixels)
                processor = load_processor_once(cell.card.folder, *pixels)

            # A tokenizer of another model, say, gives texts back that nobody wrote.
            tokenizer = tokenizers[cell.model]
            require_round_trip(
                examples[:_ENCODED],
                tokenizer,
                processor,
                chat=cell.recipe.chat_template,
                embeddings=embedding_rows(cell.card.folder),
                model=cell.model,
            )
            mean, too_long = _require_room(cell, split, examples, tokenizer, processor)
            lengths[cell.model, cell.task, split] = mean
            if too_long:
                sentence = (
                    f"{cell.task}, {split}: {too_long:,} of {len(examples):,} targets need more "
                    f"than {cell.task_plugin.max_new_tokens} new tokens of {cell.model}, so these "
                    "examples cannot be answered right."
                )
                progress(sentence, 0, 0)
    return lengths


def _require_engines(cells: Sequence[Cell], gpus: int) -> None:
    """Let each engine say why it cannot start as the cells need it."""
    starts = ((cell.engine, cell.card.folder, cell.engine_settings) for cell in cells)
    for name, base, settings in dict.fromkeys(starts):
        engine = load_engine(name)
        # The method is optional in the contract of engines.
        if hasattr(engine, "require"):
            engine.require(base, settings, gpus)


def _check_models(cells: Sequence[Cell]) -> Mapping[str, Any]:
    """Check the models of cells, and their weights where these are here; returns the tokenizers.
    Raises UserError for the first mistake."""
    # These import torch, which a finished run need not have.
    from ..encoding.numbers import numeric_vocabulary
    from ..models.loading import require_all_weights, require_lora_targets

    models = {cell.model: cell.card for cell in cells}
    for model, attention in _pair_models(cells, "attn_implementation"):
        card = models[model]
        # A plan of a hub model has no weights yet, and a run has just fetched them.
        if card.weights_are_here:
            require_safetensors(Checkpoint(card.name, "base", card.folder))
            require_all_weights(card.folder, attention)

    tokenizers = {model: load_tokenizer(card.folder) for model, card in models.items()}
    for model, rule in _pair_models(cells, "numeric_rule"):
        # Where there is no numeric token, no loss but cross-entropy has anything to do.
        numeric_vocabulary(tokenizers[model], rule)
        integers = numeric_vocabulary(tokenizers[model], "integer")
        models[model].require_numeric_tokens(len(integers))

    # A template that fails is named before examples are made or fetched.
    for model, chat in _pair_models(cells, "chat_template"):
        encode_prompts(tokenizers[model], ["0"], chat=chat)
        encode_targets(tokenizers[model], ["0"], chat=chat)

    # Only what is trained has adapters.
    trained = [cell for cell in cells if not cell.is_base]
    adapted = [cell for cell in trained if cell.recipe.method == "lora"]
    for model, targets in _pair_models(adapted, "lora_targets"):
        require_lora_targets(models[model], targets)
    return tokenizers


def _pair_models(cells: Iterable[Cell], setting: str) -> Iterable[tuple[str, Any]]:
    """Pair each model with the values that a recipe setting has for it, each pair once."""
    return dict.fromkeys((cell.model, getattr(cell.recipe, setting)) for cell in cells)


def _take_examples(cell: Cell, split: Split, progress: Progress) -> Sequence[Example]:
    """Take the examples of a split; its images can be read, and its targets scored."""
    label = f"examples of {cell.task}, {split}"
    progress(label, 0, 1)
    examples = take_examples(cell.task_plugin, split, cell.data_seed, cell.size(split))
    progress(label, 1, 1)

    if not len(examples):
        raise UserError(
            f"{cell.task} has no example of the {split} split: ask for at least one with "
            f"--{split}-examples, or copy its data again."
        )

    if cell.reads_images:
        files = (file for example in examples for file in example.images)
        label = f"images of {cell.task}, {split}"
        check_images(files, lambda _, done, total: progress(label, done, total))

    # To read every target of a large training split would take minutes.
    read = examples[:_READ] if split == "train" else examples
    rehearse(cell, split, read)
    return examples


def rehearse(cell: Cell, split: Split, examples: Sequence[Example]) -> None:
    """Read the targets of a split, and score the first, as if they were completions. Raises
    UserError where the task cannot score its own target or reads another answer than the example's,
    or where a file cannot hold what it says of an example."""
    texts = [Completion(example.target, (), "stop") for example in examples]
    frame = completions_frame(examples, texts, [0] * len(examples))
    try:
        # A few rows show whether the task's code runs; intervals are not looked at.
        scores, _ = measure(cell.task_plugin, frame.head(_SCORED), resamples=2)
        # A column of mixed types is noticed by Parquet alone, after hours of decoding.
        for table in (frame, scores):
            pa.Table.from_pandas(table)
        for metric in selecting_metrics(cell.task_plugin, cell.recipe.select_by):
            # The epoch could not be selected without these.
            _ = scores[[*metric.columns]]
        if reads_numbers(cell.task_plugin):
            _require_readable(cell, split, examples)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{cell.task}, {split}: the target of example {examples[0].uid} or of one after it "
            f"cannot be scored ({type(error).__name__}: {' '.join(map(str, error.args))}): correct "
            f"the task, for which `smmd-bench validate {cell.task_plugin.name}` says more."
        ) from error


def _require_readable(cell: Cell, split: Split, examples: Sequence[Example]) -> None:
    """Raise UserError for the first target in which the task reads another answer."""
    for example in examples:
        value = value_of(cell.task_plugin, example.target)
        answer = None
        if example.answer is not None:
            answer = example.answer.value
        if value is None or value != answer:
            raise UserError(
                f"{cell.task}, {split}: the task reads {value} in the target of example "
                f"{example.uid}, {quoted(example.target[-60:])}, whose answer is {answer}: let "
                "parse() of the task read it, or correct the answer; `smmd-bench validate "
                f"{cell.task_plugin.name}` says more."
            )


def _require_numbers(cell: Cell, examples: Sequence[Example]) -> None:
    """Raise UserError where the targets are not one number each, which decoding rules need."""
    option = f"--decoders {','.join(cell.decoders)}"
    # A rule decodes numbers alone: an explanation before them would be no answer.
    if any(e.answer_start for e in examples) or all(e.answer is None for e in examples):
        raise UserError(
            f"{cell.task} has targets that are not one number: {option} needs a task whose "
            "completion is the answer alone, such as arithmetic."
        )

    if not metrics_under(cell.task_plugin, cell.decoders[0]):
        raise UserError(
            f"{cell.task} has no metric of the error, such as MAE: {option} would change nothing."
        )


def _require_room(
    cell: Cell,
    split: Split,
    examples: Sequence[Example],
    tokenizer: Any,
    processor: Any | None,
) -> tuple[float, int]:
    """Raise UserError for the example that needs the most room, where there is less; and for a
    prompt to decode that has no token. Returns the mean tokens, of a training with the prompt and
    else of the target alone, and how many targets are longer than a completion may be."""
    # Training has room for prompt and target together, an engine for prompt and answer.
    is_training = split == "train"
    wanted = cell.engine_settings.max_model_length
    if is_training:
        wanted = cell.recipe.max_length
    room = at_most_positions(cell.card.folder, wanted)

    chat = cell.recipe.chat_template
    encoded = encode_examples(tokenizer, processor, examples, chat=chat)
    # A picture is one token in the text, and hundreds in the model.
    prompts = expanded_lengths(processor, encoded, images_of(examples))
    texts = [example.target for example in examples]
    targets = encode_targets(tokenizer, texts, chat=chat)
    _require_unstopped(cell, split, examples, targets, tokenizer)

    needs = []
    least = 0 if is_training else cell.task_plugin.max_new_tokens
    for example, prompt, target in zip(examples, prompts, targets, strict=True):
        if not prompt and not is_training:
            raise UserError(
                f"{cell.task}, {split}: the prompt of example {example.uid} has no token with the "
                f"tokenizer of {cell.model}: give it a text, or take the example out of the data."
            )
        # Targets of the validation split are never read by the model.
        length = 0 if split == "validation" else len(target)
        needs.append((prompt + max(least, length), prompt, example.uid))

    needed, prompt, uid = max(needs)
    if needed > room:
        remedy = _find_remedy_for_room(cell, needed, least)
        raise UserError(
            f"{cell.task}, {split}: example {uid} needs the most room, {needed} tokens (a prompt "
            f"of {prompt} and {needed - prompt} after it), but {cell.model} has room for {room}, "
            f"and nothing is ever cut: {remedy}."
        )

    # The last token closes a target: a completion need not have it.
    longest = cell.task_plugin.max_new_tokens + 1
    tokens = sum(map(len, targets))
    if is_training:
        return (tokens + sum(prompts)) / len(examples), 0
    too_long = sum(len(target) > longest for target in targets)
    return tokens / len(examples), too_long


def _find_remedy_for_room(cell: Cell, needed: int, new_tokens: int) -> str:
    """Say what makes room for the longest example, and so for all."""
    if at_most_positions(cell.card.folder, needed) < needed:
        return f"take a model with {needed} positions or more"

    # An engine has room for `max_length` and the new tokens, so that these are taken off.
    length = needed - new_tokens
    remedy = f"raise max_length to {length} with --set max_length={length}"
    if cell.reads_images:
        remedy += ", or give fewer pixels of an image with --set max_pixels=N"
    return remedy


def _require_unstopped(
    cell: Cell,
    split: Split,
    examples: Sequence[Example],
    targets: Sequence[Sequence[int]],
    tokenizer: Any,
) -> None:
    """Raise UserError for the first target with a token at which decoding stops, other than the one
    that closes it: no completion could be that target.

    targets: token ids of the examples' targets.
    """
    # As the engine has them: of the tokenizer and of generation_config.json.
    stop_ids = {*stop_token_ids(cell.card.folder, tokenizer)}

    for example, target in zip(examples, targets, strict=True):
        # The last token closes the target.
        inside = [token for token in target[:-1] if token in stop_ids]
        if inside:
            raise UserError(
                f"{cell.task}, {split}: the target of example {example.uid} holds "
                f"{quoted(tokenizer.decode(inside[:1]))} (token {inside[0]}), at which "
                f"{cell.model} stops, so it could never be answered right: take it out of "
                "eos_token_id in generation_config.json, or write targets without it."
            )
