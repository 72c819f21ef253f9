"""From files of completions to a scored run folder: the layout of a run, with a cell for each file.

The cells have no train stage. The folder of their completions follows from the examples and the
completions, so that a file that changed is scored again, and one that was only moved is not.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ..contracts import Example, Split, Task
from ..errors import UserError
from ..models.circumstances import circumstances
from ..plugin_system.checked_task import require_seed, take_examples, take_identity
from ..plugin_system.parameters import canonical
from ..plugin_system.registry import load_task
from ..results.frames import read_run
from ..scoring.matching import Matched, match
from ..scoring.measure import measure_identity
from ..scoring.predictions import read_predictions
from ..storage.addresses import address, folder_name
from ..storage.cell import StoredCell, failure_file
from ..storage.data_files import require_folder_read
from ..storage.files import making, write_json, write_parquet
from ..storage.manifest import FORMAT
from .comparison import measure_cell, write_comparisons
from .run_directory import Outcome, RunDirectory

_LM_EVAL = re.compile(r"^samples_(.+)_\d{4}-\d\d-\d\dT[\d.:-]+$")
"""The stem of a file of lm-eval's samples: samples_gsm8k_2026-11-20T10-31-09.123456."""

_LONGEST_LABEL = 60


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

    The first file is the reference of the others; `labels` name them in tables (default: see
    `_names`). `partial` scores the examples that every file has. `say` is told, a line each, what
    was read and how it was matched. Nothing is written before every file has been checked.

    Raises UserError for a file that is not right, and for a folder that holds something else.
    """
    plugin = load_task(task)
    read = [
        read_predictions(file, id_column=id_column, completion_column=completion_column)
        for file in files
    ]
    names = _labels(files, labels)
    examples = _examples(plugin, split, data_seed, limit, max(len(file.rows) for file in read))
    require_folder_read()
    require_seed([(plugin, [split])], data_seed)
    asked = len(examples) if limit is None else min(limit, len(examples))
    scope = f"the {asked:,} examples of {canonical(plugin)}, {split}"
    scope += f" with --limit {limit}" if limit is not None else ""
    matched = [match(file, plugin, examples, scope, first=limit, partial=partial) for file in read]
    kept = [at for at in range(asked) if all(at in each.found for each in matched)]
    if not kept:
        raise UserError(f"No example has a completion in every file, of {scope}: check the files.")
    for each in matched:
        say(f"{each}.")
    if len(kept) < asked:
        say(f"Scored are the {len(kept):,} of {scope} that every file has.")
    settings = {
        "task": canonical(plugin),
        "split": split,
        "data_seed": data_seed,
        "limit": limit,
        "model": model,
        "labels": names,
    }
    scored = [
        _ScoredFile(settings, plugin, name, each.frame(examples, kept), _source(each))
        for name, each in zip(names, matched, strict=True)
    ]
    if out is None:
        content = {**settings, "completions": [file.parts["decode"] for file in scored]}
        out = Path("runs") / folder_name(("score", canonical(plugin), *names), content)
    return _score_into(out, scored)


def _examples(
    task: Task, split: Split, data_seed: int, limit: int | None, rows: int
) -> list[Example]:
    """The examples that files of so many rows can answer: those beyond `limit` tell their rows from
    rows of another split, and a limit beyond every row and the paper's split asks for no more."""
    if limit is not None:
        limit = min(max(limit, rows), max(rows, int(task.paper_sizes.get(split, 0))))
    return list(take_examples(task, split, data_seed, limit))


def _labels(files: Sequence[Path], given: Sequence[str]) -> list[str]:
    if given and len(given) != len(files):
        raise UserError(
            f"--label is given {len(given)} times and --predictions {len(files)} times: give one "
            "--label a file, in the same order, or none."
        )
    labels = [label.strip() for label in given] or _names(files)
    plain = [label.casefold() for label in labels]  # tables write ce as CE
    for label in labels:
        if not label or not label.isprintable():
            raise UserError(f"The label {label!r} is not a line of text: name it with --label.")
        if len(label) > _LONGEST_LABEL:
            raise UserError(
                f"The label '{label[:20]}…' has {len(label)} characters, of which tables have room "
                f"for {_LONGEST_LABEL}: give a shorter one with --label."
            )
        if plain.count(label.casefold()) > 1:
            raise UserError(
                f"Two files have the label '{label}', in capitals or not: name each file with a "
                "--label of its own."
            )
    return labels


def _names(files: Sequence[Path]) -> list[str]:
    """The stems of the files, without what lm-eval writes around the task in them; where files of
    several folders have one name, the folders', which lm-eval names by the model."""
    stems = [Path(file.stem).stem if file.suffix == ".gz" else file.stem for file in files]
    names = [_LM_EVAL.sub(r"\1", stem) for stem in stems]
    folders = [file.resolve().parent.name for file in files]
    if len({*names}) == 1 < len(files) == len({*folders}):
        return folders
    return names if len({*names}) == len(names) else stems


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


@dataclass(frozen=True, eq=False)
class _ScoredFile:
    """One file of completions: a cell.

    settings: what is scored, except the completions. source: what the manifest says of the file.
    """

    settings: Mapping[str, Any]
    task: Task
    label: str
    completions: pd.DataFrame
    source: Mapping[str, Any]

    @property
    def address(self) -> str:
        """What tells the file from others, whatever its completions are."""
        return address({"predictions": {**self.settings, "labels": self.label}})

    @cached_property
    def parts(self) -> dict[str, str]:
        """Those of `smmd_bench.storage.cell`: decode follows from the completions."""
        settings = self.settings
        texts = self.completions.to_json(orient="split", index=False)
        decode = {
            "data": take_identity(self.task, settings["split"], settings["data_seed"]),
            "completions": hashlib.blake2b(texts.encode(), digest_size=16).hexdigest(),
        }
        return {"decode": address(decode), "measure": address(measure_identity(self.task))}

    def stored(self, run: Path) -> StoredCell:
        """The file's cell as it is on disk now."""
        return StoredCell(run, self.address, self.parts)

    def to_json(self) -> dict[str, Any]:
        """What the manifest says: the label stands where a run has its loss."""
        settings = self.settings
        return {
            "address": self.address,
            "parts": self.parts,
            "model": settings["model"],
            "model_label": settings["model"],
            "params": None,
            "task": settings["task"],
            "task_name": self.task.name,
            "loss": self.label,
            "reference": settings["labels"][0],
            "loss_name": self.label.partition("[")[0],
            "seed": 0,
            "data_seed": settings["data_seed"],
            "recipe": {},
        }


def _score_into(folder: Path, files: Sequence[_ScoredFile]) -> Outcome:
    """Score the files, the first being the reference of the others, and write what is missing.

    Raises UserError if the folder holds anything else.
    """
    run, outcome = RunDirectory(folder), Outcome(folder)
    with run.locked():
        if run.manifest and run.manifest.get("predictions") != files[0].settings:
            raise UserError(
                f"The output folder {folder} belongs to another command "
                f"({run.manifest.get('command')}): choose another with --out."
            )
        todo = [file for file in files if file.stored(folder).metrics is None]
        if run.manifest.get("cells") != [file.to_json() for file in files]:
            _write_manifest(run, files)
        for file in todo:
            now = file.stored(folder)
            assert now.decoded is not None
            failure_file(folder, now.key).unlink(missing_ok=True)
            if not now.decoded.exists():
                with making(now.decoded) as part:
                    write_parquet(part / "completions.parquet", file.completions)
            error = measure_cell(now, file.task)
            if error is not None:
                outcome.failed[file.label] = f"{type(error).__name__}: {error}"
        outcome.worked = bool(todo) | write_comparisons(read_run(folder))
    return outcome


def _write_manifest(run: RunDirectory, files: Sequence[_ScoredFile]) -> None:
    settings, task = files[0].settings, files[0].task
    now = circumstances()
    licence = getattr(task, "licence", "not stated")
    split = settings["split"]
    sizes = {split: len(files[0].completions)}
    identity = {split: take_identity(task, split, settings["data_seed"])}
    write_json(
        run.path / "manifest.json",
        {
            "format": FORMAT,
            "name": run.path.name,
            "experiment": {
                "models": [settings["model"]],
                "tasks": [settings["task"]],
                "losses": settings["labels"],
                "seeds": [0],
                "data_seed": settings["data_seed"],
            },
            "experiments": [],  # none that `train-eval` could add to
            "predictions": settings,
            "files": {file.label: file.source for file in files},
            **now,
            "created": (run.manifest or now)["created"],
            "data": {settings["task"]: {"licence": licence, "sizes": sizes, "identity": identity}},
            "cells": [file.to_json() for file in files],
        },
    )
