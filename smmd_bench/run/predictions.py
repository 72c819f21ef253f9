"""From files of completions to a scored run folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..contracts import Split
from ..errors import UserError
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import load_task
from ..scoring.predictions.match import Matched, match
from ..scoring.predictions.read import read_predictions
from .predictions_folder import ScoredFile, Settings, default_folder, score_into
from .run_directory import Outcome


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
    model: str = "predictions",
    out: Path | None = None,
    say: Callable[[str], Any] = lambda sentence: None,
) -> Outcome:
    """Score files of completions of a task's examples into a run folder, and compare the files.

    The first file is the reference of the others; `labels` name them in tables (default: the stems
    of the files). `partial` scores the examples that every file has. `say` is told, a line each,
    what was read and how it was matched. Nothing is written before every file has been checked.

    Raises UserError for a file that is not right, and for a folder that holds something else.
    """
    plugin = load_task(task)
    names = _labels(files, labels)
    read = [
        read_predictions(file, id_column=id_column, completion_column=completion_column)
        for file in files
    ]
    examples = list(plugin.examples(split, data_seed, limit))
    scope = f"the {len(examples):,} examples of {canonical(plugin)}, {split}"
    scope += f" with --limit {limit}" if limit is not None else ""
    matched = [match(file, plugin, examples, scope, partial=partial) for file in read]
    kept = [at for at in range(len(examples)) if all(at in each.found for each in matched)]
    if not kept:
        raise UserError(f"No example has a completion in every file, of {scope}: check the files.")
    for each in matched:
        say(f"{each}.")
    if len(kept) < len(examples):
        say(f"Scored are the {len(kept):,} of {scope} that every file has.")
    settings = Settings(canonical(plugin), split, data_seed, limit, model, tuple(names))
    scored = [
        ScoredFile(
            settings,
            name,
            each.frame(examples, kept),
            _source(each),
        )
        for name, each in zip(names, matched, strict=True)
    ]
    folder = out or default_folder(scored)
    worked, failed = score_into(folder, scored)
    return Outcome(folder, worked, failed)


def _labels(files: Sequence[Path], given: Sequence[str]) -> list[str]:
    if given and len(given) != len(files):
        raise UserError(
            f"{len(given)} labels and {len(files)} files of predictions were given: give one "
            "--label a file, in the same order, or none."
        )
    labels = [label.strip() for label in given] or [file.stem for file in files]
    for label in labels:
        if not label or not label.isprintable():
            raise UserError(f"The label {label!r} is no name: give one line of text with --label.")
        if labels.count(label) > 1:
            raise UserError(
                f"Two files have the label '{label}': name each file with a --label of its own."
            )
    return labels


def _source(matched: Matched) -> dict[str, Any]:
    with matched.file.path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {
        "path": str(matched.file.path),
        "sha256": digest,
        "format": matched.file.form,
        "matched_by": matched.by,
        "completions": len(matched.found),
    }
