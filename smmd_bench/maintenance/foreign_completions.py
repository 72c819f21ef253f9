"""From files of completions to a scored run folder: the layout of a run, with a cell for each file.

The cells have no train stage. The folder of their completions follows from the examples and the
completions, so that a file that changed is scored again, and one that was only moved is not.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..contracts import Example, Split, Task
from ..errors import UserError
from ..experiment.provenance import describe_run
from ..plugin_system.checked_task import (
    label_of,
    notes_of,
    require_seed,
    take_examples,
    take_identity,
)
from ..plugin_system.registry import load_task
from ..results.frames import read_run
from ..run.cell_json import name_folders
from ..run.comparison import measure_cell, write_comparisons
from ..run.pipeline import Outcome
from ..run.run_directory import RunDirectory
from ..scoring.foreign_logs import find_samples, name_answers
from ..scoring.matching import follows_user_file, match
from ..scoring.measure import measure_identity
from ..scoring.predictions import Predictions, read_predictions
from ..storage.addresses import address, folder_name
from ..storage.cell import CellRecord, failure_file, stored_cell
from ..storage.files import FORMAT, write_folder, write_json, write_parquet

"""Stems as of lm-eval's samples_gsm8k_2026-11-20T10-31-09.123456, and lighteval's details."""


def score_predictions(
    task: str,
    files: Sequence[Path],
    labels: Sequence[str] = (),
    *,
    split: Split = "test",
    data_seed: int = 0,
    limit: int | None = None,
    partial: bool = False,
    id_column: str | None = None,
    completion_column: str | None = None,
    keep_reasoning: bool = False,
    model: str = "predictions",
    out: Path | None = None,
    say: Callable[[str], Any] = lambda sentence: None,
) -> Outcome:
    """Score files of completions of a task's examples into a run folder, and compare the files.

    A folder stands for what `find_samples` finds in it. The first file is the reference of the
    others; `labels` name them in tables. `partial` scores the examples that every file has.
    `keep_reasoning`: reasoning in tags, such as <think>, is a part of the answers, in place of
    none. Nothing is written before every file has been checked.

    Raises UserError for a file that is not right, and for a folder that holds something else.
    """
    plugin = load_task(task)
    files = _find_files(files, plugin.name)
    names = _choose_labels(files, labels)
    columns = {"id_column": id_column, "completion_column": completion_column}
    predictions = [read_predictions(file, **columns) for file in files]
    examples = _take_examples(plugin, split, data_seed, limit, predictions)
    for note in notes_of(plugin):
        say(note)

    number_asked = len(examples) if limit is None else min(limit, len(examples))
    scope = f"the {number_asked:,} examples of {label_of(plugin)}, {split}"
    sample = f"smmd-bench sample {shlex.quote(task)} --split {split} --json -n {number_asked}"
    rule: dict[str, Any] = {"first": limit, "partial": partial, "sample": sample}
    matched = [match(file, plugin, examples, scope, **rule) for file in predictions]
    scored = _find_shared(matched, number_asked, scope)
    for file in matched:
        _say_match(file, label_of(plugin), say)
    if len(scored) < number_asked:
        say(f"Scored are the {len(scored):,} of {scope} that every file has.")

    settings: dict[str, Any] = {
        "task": label_of(plugin),
        "split": split,
        "data_seed": data_seed,
        "limit": limit,
        "model": model,
        "labels": names,
    }
    # Left out otherwise: addresses of before there was the option stay as they are.
    if keep_reasoning:
        settings["keep_reasoning"] = True
    frames = [
        file.frame(examples, scored, keep_reasoning=keep_reasoning) for file in matched
    ]
    return _score_into(out, plugin, settings, matched, frames)


def _find_files(places: Sequence[Path], task: str) -> list[Path]:
    files: list[Path] = []
    for place in places:
        files += find_samples(place, task) if place.is_dir() else [place]
    return files


def _find_shared(matched: Sequence[Predictions], number: int, scope: str) -> list[int]:
    """Find which of the first examples have a completion in every file; UserError for none."""
    shared = {*range(number)}.intersection(*[file.found for file in matched])
    if not shared:
        raise UserError(
            f"No example has a completion in every file, of {scope}: check the files."
        )
    return sorted(shared)


def _take_examples(
    task: Task,
    split: Split,
    data_seed: int,
    limit: int | None,
    files: Sequence[Predictions],
) -> Sequence[Example]:
    """Take the examples that files may answer, of which at most `limit` are scored."""
    # Those beyond `limit` tell a file of the whole split from one of another split.
    # Positions count in the whole of a user's file.
    number = None
    if limit is not None and not follows_user_file(task):
        number = max(limit, *(len(file.rows) for file in files))
    examples = take_examples(task, split, data_seed, number)
    require_seed([(task, [split])], data_seed)
    return examples


def _say_match(file: Predictions, label: str, say: Callable[[str], Any]) -> None:
    unproven = ""
    row = file.rows[0]
    # Two levels of a task, or two files of rows, have the same uids and positions.
    if not (row.prompts or row.targets or file.by == "prompt"):
        unproven = (
            f" Nothing else in it says that its rows answer {label}: a column prompt or target "
            "would prove it."
        )
    say(f"{file.path}: {len(file.found):,} completions by {file.by}.{unproven}")
    reason = file.unknown_reason()
    if reason is not None:
        say(
            f"{file.path}: no truncation rate, because nothing says whether the finish reason "
            f"{reason!r} means cut off: write length or stop."
        )


def _score_into(
    out: Path | None,
    task: Task,
    settings: Mapping[str, Any],
    files: Sequence[Predictions],
    frames: Sequence[pd.DataFrame],
) -> Outcome:
    """Score the files, the first being the reference of the others, and write what is missing."""
    files_with_frames = zip(settings["labels"], files, frames, strict=True)
    cells = [
        _describe_cell(task, settings, *labelled) for labelled in files_with_frames
    ]
    if out is None:
        content = {
            **settings,
            "completions": [cell["parts"]["decode"] for cell in cells],
        }
        # Another file of the same name is another run, in a folder of its own.
        words = ("score", settings["task"], *settings["labels"])
        out = Path("runs") / folder_name(words, content)

    run = RunDirectory(out)
    outcome = Outcome(out)
    with run.locked():
        manifest = run.manifest
        if manifest and manifest.get("predictions") != settings:
            raise UserError(
                f"The output folder {out} belongs to another command "
                f"({manifest.get('command')}): choose another with --out."
            )

        # The command and its time stay those of the call that made the cells.
        if manifest.get("cells") != cells:
            _write_manifest(run, task, settings, cells, len(frames[0]))

        for cell, frame in zip(cells, frames, strict=True):
            stored = stored_cell(out, cell)
            if stored.metrics is not None:
                continue
            outcome.worked = True
            # An error of before must not outlive the attempt that follows.
            failure_file(out, stored.key).unlink(missing_ok=True)
            assert stored.decoded is not None
            # A new version of a metric scores what an earlier call has written.
            if not stored.decoded.exists():
                with write_folder(stored.decoded) as part:
                    write_parquet(part / "completions.parquet", frame)
            error = measure_cell(stored, task)
            if error is not None:
                outcome.failed[cell["loss"]] = f"{type(error).__name__}: {error}"

        outcome.worked |= write_comparisons(read_run(out))

    return outcome


def _write_manifest(
    run: RunDirectory,
    task: Task,
    settings: Mapping[str, Any],
    cells: Sequence[CellRecord],
    number_of_examples: int,
) -> None:
    split = settings["split"]
    data = {
        "licence": getattr(task, "licence", "not stated"),
        "sizes": {split: number_of_examples},
        "identity": {split: take_identity(task, split, settings["data_seed"])},
    }
    provenance = describe_run()
    content = {
        "format": FORMAT,
        "name": run.path.name,
        "experiment": {"losses": settings["labels"]},
        "experiments": [],  # none that `train-eval` could add to
        "predictions": settings,
        **provenance,
        "created": run.manifest.get("created", provenance["created"]),
        "data": {settings["task"]: data},
        "cells": cells,
    }
    write_json(run.path / "manifest.json", content)


def _choose_labels(files: Sequence[Path], given: Sequence[str]) -> list[str]:
    """Choose what tables call the files: by default their stems, without what lm-eval and lighteval
    write around the task in them; where files of several folders have one name, the models of
    these."""
    number = len(files)
    if given and len(given) != number:
        raise UserError(
            f"--label is given {len(given)} times and --predictions {number} times: give one "
            "--label a file, in the same order, or none."
        )

    labels = [label.strip() for label in given]
    if not labels:
        labels = [name_answers(file) for file in files]
        # lm-eval writes the same name into a folder for each model.
        if len({*labels}) == 1 < number:
            folders = [file.resolve().parent.name for file in files]
            # Of org__model, as lm-eval spells it, the model alone where that names one.
            models = [folder.rpartition("__")[2] for folder in folders]
            labels = models if len({*models}) == number else folders

    # Tables write ce as CE.
    spellings = {label.casefold() for label in labels}
    if len(spellings) < number:
        raise UserError(
            f"Two files have one label, in capitals or not, of {', '.join(labels)}: name each file "
            "with a --label of its own."
        )

    return labels


def _describe_cell(
    task: Task,
    settings: Mapping[str, Any],
    label: str,
    file: Predictions,
    frame: pd.DataFrame,
) -> CellRecord:
    """Describe a file as a cell: its label stands where a run has its loss."""
    data = take_identity(task, settings["split"], settings["data_seed"])
    decode = {"data": data, "completions": frame.to_json(orient="split", index=False)}
    record: CellRecord = {
        "address": address({"predictions": {**settings, "labels": label}}),
        "parts": {
            "decode": address(decode),
            "measure": address(measure_identity(task)),
        },
        "model": settings["model"],
        "task": settings["task"],
        "task_name": task.name,
        "loss": label,
        "reference": settings["labels"][0],
        "loss_name": label.partition("[")[0],
        "seed": 0,
        "data_seed": settings["data_seed"],
        "file": {"path": str(file.path), "matched_by": file.by},
    }
    # Nothing of a folder's name follows from the run that it is in.
    record["folders"] = name_folders(stored_cell(Path(), record))
    return record
