"""The predictions of a file, of lm-eval or in columns, and what its rows say of their examples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UserError
from .rows import Row, read_rows, shown

COLUMNS = {
    "id": ("uid", "id", "doc_id", "custom_id"),
    "completion": ("completion", "prediction", "response", "output", "generated_text"),
}
"""The usual names of each column; the column `finish_reason` is read, too."""
EVIDENCE = {
    "index": (
        "index", "idx", "", "unnamed: 0", "__index_level_0__", "row", "row_id", "position",
        "example_id", "sample_id", "question_id", "problem_id",
    ),
    "prompt": (
        "prompt", "prompts", "question", "input", "inputs", "query", "problem", "instruction",
        "messages", "conversation", "dialogue", "full_prompt", "formatted_prompt", "input_text",
    ),
    "target": (
        "target", "targets", "answer", "answers", "reference", "references", "label", "labels",
        "gold", "gold_answer", "ground_truth", "expected", "expected_answer", "correct_answer",
        "solution",
    ),
}  # fmt: skip
"""Columns, in capitals or not, that say whose completion it is, and are compared."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One completion, and what the file says of it.

    id: a uid or a position in the split; None: the file has no ids. finish_reason: "length" if the
    completion was cut off. index, prompts, targets: what its row says of the example, by column; a
    column can hold several targets.
    """

    row: Row
    id: str | int | None
    completion: str
    finish_reason: str | None
    index: Mapping[str, Any]
    prompts: Mapping[str, str]
    targets: Mapping[str, Sequence[str]]

    @property
    def place(self) -> str:
        """Where it stands in the file: "line 3"."""
        return self.row.place


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file that was read. positions: its ids are positions by its format, and never uids. named:
    the user named the column of the ids."""

    path: Path
    form: str
    rows: Sequence[Prediction]
    positions: bool = False
    named: bool = False


def read_predictions(
    path: Path, *, id_column: str | None = None, completion_column: str | None = None
) -> Predictions:
    """Read a file of completions; columns that are not named are found by their usual names.

    Raises UserError, which names the file, the line and the remedy, for anything that is wrong.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"The file of predictions {path} {what}: check --predictions.")
    form, rows = read_rows(path)
    if not rows:
        raise UserError(f"{path} is empty: give a file with one completion per example.")
    if id_column is None and completion_column is None and _is_sample(rows[0].values):
        return Predictions(path, "lm-eval samples", _lm_eval_samples(rows), positions=True)
    found = _in_columns(rows, id_column, completion_column)
    return Predictions(path, form, found, named=id_column is not None)


def _is_sample(values: Mapping[str, Any]) -> bool:
    return "doc_id" in values and "resps" in values


def _lm_eval_samples(rows: Sequence[Row]) -> list[Prediction]:
    """The raw answer of every document, from samples_TASK_DATE.jsonl of lm-eval's `--log_samples`.

    lm-eval 0.4 writes each document once for every filter of its task, with the same raw answers
    in `resps[request][repeat]`. The first one is taken; the task's own parser reads it. `doc_id` is
    the position in the split, even if only some documents were asked (`--samples`).
    """
    documents: dict[int, Prediction] = {}
    places: dict[tuple[int, str], str] = {}
    for row in rows:
        if not _is_sample(row.values) or type(row.values["doc_id"]) is not int:
            raise row.error(
                "is not an lm-eval sample like the lines before it (it lacks resps or an integer "
                "doc_id): remove it."
            )
        try:
            answer = row.values["resps"][0][0]
        except (LookupError, TypeError):
            answer = None
        if not isinstance(answer, str):
            raise row.error(
                f"resps[0][0] is {shown(answer)}, not text: give samples of a task that generates "
                "text (output_type generate_until), not of one that compares likelihoods."
            )
        document, rule = row.values["doc_id"], str(row.values.get("filter"))
        if (document, rule) in places:
            raise row.error(
                f"doc_id {document} with the filter {rule} is already in "
                f"{places[document, rule]}: keep the lines of one evaluation."
            )
        places[document, rule] = row.place
        cut = row.values.get("truncated")  # `smmd-bench export` adds it
        reason = None if cut is None else "length" if cut else "stop"
        asked = _prompts({**row.values, "inputs": _first(row.values.get("arguments"))})
        targets = _targets({"target": row.values.get("target")})
        text = _text(row, "resps[0][0]", answer)
        found = Prediction(row, document, text, reason, {}, asked, targets)
        known = documents.setdefault(document, found)
        if known.completion != found.completion:
            raise row.error(
                f"doc_id {document} has another answer in {known.place}: keep the lines of one "
                "evaluation."
            )
    return list(documents.values())


def _in_columns(
    rows: Sequence[Row], id_column: str | None, completion_column: str | None
) -> list[Prediction]:
    """The predictions of rows with the named columns, or else those that the first row has."""
    first = rows[0]
    given = {"id": id_column, "completion": completion_column}
    names = {role: _column(first, role, name) for role, name in given.items()}
    usual = {name for role in COLUMNS if given[role] is None for name in COLUMNS[role]}
    wanted = {name for name in names.values() if name is not None}
    if names["completion"] is None:
        raise first.error(
            f"has no completion column (columns: {_listed(first)}; expected one of "
            f"{', '.join(COLUMNS['completion'])}): name it with --completion-column."
        )
    found = []
    for row in rows:
        if not wanted <= row.values.keys() or (usual & row.values.keys()) - wanted:
            raise row.error(
                f"has the columns {_listed(row)}, but {first.place} has {_listed(first)}: give "
                "every row the same columns."
            )
        text = _text(row, f"the {names['completion']}", row.values[names["completion"]])
        name = None if names["id"] is None else _id(row, row.values[names["id"]])
        finish_reason = row.values.get("finish_reason")
        reason = str(finish_reason) if finish_reason else None
        others = {column: value for column, value in row.values.items() if column not in wanted}
        said = _known(others, "index"), _prompts(others), _targets(others)
        found.append(Prediction(row, name, text, reason, *said))
    return found


def _known(values: Mapping[str, Any], role: str) -> dict[str, Any]:
    """The columns with a usual name of this role, also of objects in columns, such as `doc`."""
    found: dict[str, Any] = {}
    for inner in [*(value for value in values.values() if isinstance(value, Mapping)), values]:
        found |= {n: v for n, v in inner.items() if _plain_name(n) in _NAMES[role]}
    return found


def _plain_name(name: object) -> str:
    return re.sub(r"[\s_-]", "", str(name)).casefold()


_NAMES = {role: {*map(_plain_name, names)} for role, names in EVIDENCE.items()}


def _prompts(values: Mapping[str, Any]) -> dict[str, str]:
    found = {name: "\n".join(_texts(value)) for name, value in _known(values, "prompt").items()}
    return {name: text for name, text in found.items() if text}


def _targets(values: Mapping[str, Any]) -> dict[str, list[str]]:
    found = {name: _texts(value) for name, value in _known(values, "target").items()}
    return {name: texts for name, texts in found.items() if texts}


def _texts(value: object, depth: int = 5) -> list[str]:
    """The texts and numbers of a value: itself, or those of a list or of messages."""
    if isinstance(value, Mapping):
        value = value.get("content", value.get("text"))
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _texts(part, depth - 1)] if depth else []
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return [value] if isinstance(value, str) and value.strip() not in ("", "nan") else []


def _first(value: object) -> object:
    """The first leaf of nested lists and objects: the prompt in `arguments` of lm-eval."""
    while isinstance(value, (Mapping, list, tuple)):
        value = next(iter(value.values() if isinstance(value, Mapping) else value), None)
    return value


def _column(first: Row, role: str, given: str | None) -> str | None:
    """The column of a role in the first row; None: there is none."""
    if given is not None and given not in first.values:
        raise UserError(
            f"{first.path} has no column '{given}' (it has {_listed(first)}): check "
            f"--{role}-column."
        )
    known = COLUMNS[role] if given is None else (given,)
    found = [name for name in known if name in first.values]
    if len(found) > 1:
        raise UserError(
            f"{first.path} has several possible {role} columns ({', '.join(found)}): choose one "
            f"with --{role}-column."
        )
    return found[0] if found else None


def _listed(row: Row) -> str:
    names = ", ".join(map(str, row.values)) or "none"
    return names if len(names) <= 200 else f"{names[:200]}…"


def _text(row: Row, name: str, value: object) -> str:
    """A completion as text that every file can hold: half a surrogate pair becomes "?"."""
    if not isinstance(value, str):
        raise row.error(f"{name} is {shown(value)}, not text: write a string, which may be empty.")
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _id(row: Row, value: object) -> str | int:
    """An id, which is a text or an integer."""
    if isinstance(value, float) and value.is_integer():  # pandas turns integers into floats
        value = int(value)
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise row.error(
        f"the id is {shown(value)}: give the uid of an example, or its position in the split."
    )
