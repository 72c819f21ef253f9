"""Completions made elsewhere: the rows of a file, and what each says of its example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contracts.texts import remove_reasoning_tags
from ..errors import UserError
from .foreign_logs import read_frame
from .repeated_prompts import remove_repeated_prompts
from .score import completions_frame

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Example

COLUMNS = {
    "id": (
        "uid",
        "id",
        "doc_id",
        "sample_id",
        "question_id",
        "index",
        "idx",
        "unnamed:_0",
    ),
    "completion": ("completion", "prediction", "response", "output", "generated_text"),
    "prompt": ("prompt", "question", "input", "inputs", "query", "problem", "messages"),
    "target": (
        "target",
        "answer",
        "answers",
        "reference",
        "label",
        "gold",
        "ground_truth",
    ),
    "finish": (
        "finish_reason",
        "finishreason",
        "stop_reason",
        "stopreason",
        "done_reason",
    ),
    "reasoning": ("reasoning_content", "reasoning", "thinking", "reasoning_text"),
}
"""The usual names of each column, in capitals or not."""
_CUT = frozenset(
    {
        "length",
        "max_tokens",
        "max_length",
        "max_new_tokens",
        "max_output_tokens",
        "max_completion_tokens",
        "model_length",
        "token_limit",
        "model_context_window_exceeded",
        "context_length_exceeded",
        "finish_length",
    }
)
_ENDED = frozenset(
    {
        "stop",
        "end_turn",
        "stop_sequence",
        "eos",
        "eos_token",
        "end_of_text",
        "complete",
        "completed",
        "finish",
        "finished",
        "finish_stop",
        "stop_token",
        "tool_calls",
        "tool_use",
        "function_call",
        "content_filter",
        "content_filtered",
        "safety",
        "recitation",
        "refusal",
    }
)
"""What programs write where a completion was cut off, and where it ended by itself."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row of a file: a completion, and what the row says of its example, by column.

    place: how errors name it, "FILE, row 3". finish_reason: as the file has it. cells: the texts
    and numbers of every column besides the completion.
    """

    place: str
    completion: str
    finish_reason: str | None
    ids: Mapping[str, str]
    prompts: Mapping[str, str]
    targets: Mapping[str, Sequence[str]]
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file that was read; `match` says how its rows were matched, and the row of each example.

    fixed_id: the user named the column of ids.
    """

    path: Path
    rows: Sequence[Prediction]
    fixed_id: bool = False
    by: str = ""
    found: Mapping[int, Prediction] = field(default_factory=dict)

    def frame(
        self,
        examples: Sequence[Example],
        chosen: Sequence[int],
        *,
        keep_reasoning: bool = False,
    ) -> pd.DataFrame:
        """The completions of the chosen examples, without a prompt that most of them repeat.

        keep_reasoning: reasoning counts as a part of the answer, so only its tags are taken off.
        """
        rows = [self.found[place] for place in chosen]
        answered = [examples[place] for place in chosen]
        texts = [row.completion for row in rows]
        texts = remove_repeated_prompts(texts, answered, str(self.path))
        if keep_reasoning:
            texts = [remove_reasoning_tags(text) for text in texts]

        columns: dict[str, list[Any]] = {"completion": texts}
        reasons = [read_finish_reason(row.finish_reason) for row in rows]

        # One unknown reason would make a rate of the known ones alone.
        if None not in reasons:
            columns["finish_reason"] = reasons
        return completions_frame(answered, columns)

    def unknown_reason(self) -> str | None:
        """A finish reason of which nothing says whether it means cut off; None: there is none."""
        reasons = [row.finish_reason for row in self.found.values()]
        if not any(reasons):
            return None
        unknown = (reason for reason in reasons if read_finish_reason(reason) is None)
        return next((reason or "" for reason in unknown), None)


def read_finish_reason(reason: str | None) -> str | None:
    """`length` where a completion was cut off, `stop` where it ended; None: nothing says it."""
    word = (reason or "").rpartition(".")[2]  # FinishReason.MAX_TOKENS
    word = word.strip().casefold().replace("-", "_").replace(" ", "_")
    word = word.removeprefix("finish_reason_").replace("maxtokens", "max_tokens")
    if word in _CUT:
        return "length"
    return "stop" if word in _ENDED else None


def read_predictions(
    path: Path, *, id_column: str | None = None, completion_column: str | None = None
) -> Predictions:
    """Read a file of completions; columns that are not named are found by their usual names.

    Raises UserError for a file that cannot be read, and for a row without a completion.
    """
    frame = read_frame(path, as_table=completion_column is not None)
    columns = _find_columns(path, frame, id_column, completion_column)
    rows = zip(frame.index, frame.to_dict("records"), strict=True)
    predictions = [
        _prediction(f"{path}, row {at + 1}", row, columns) for at, row in rows
    ]
    return Predictions(path, predictions, fixed_id=id_column is not None)


def _find_columns(
    path: Path,
    frame: pd.DataFrame,
    id_column: str | None,
    completion_column: str | None,
) -> dict[str, list[str]]:
    """The columns of each role. Raises UserError where the file does not have one completion."""
    by_spelling = {
        str(name).strip().casefold().replace(" ", "_"): str(name) for name in frame
    }
    columns = {
        role: [by_spelling[name] for name in names if name in by_spelling]
        for role, names in COLUMNS.items()
    }
    for role, named in (("id", id_column), ("completion", completion_column)):
        # A name that the user gives is taken as it is spelled, and no other counts.
        if named is not None:
            columns[role] = [named] if named in frame else []
        if len(columns[role]) != 1 and (named is not None or role == "completion"):
            listed = " and ".join(columns[role]) or f"no {named or 'column'}"
            raise UserError(
                f"{path} has {listed} for its {role}, of the columns "
                f"{', '.join(map(str, frame))[:200]}: name one with --{role}-column."
            )

    # A column that the user named for one role has no other.
    named_columns = {*columns["id"], *columns["completion"]}
    for role in ("prompt", "target", "finish", "reasoning"):
        columns[role] = [name for name in columns[role] if name not in named_columns]
    return columns


def _prediction(
    place: str, row: Mapping[Any, Any], columns: Mapping[str, Sequence[str]]
) -> Prediction:
    completion = columns["completion"][0]
    text = row[completion]
    if not isinstance(text, str):
        # Cut off while it reasoned, a completion has no answer; others are a mistake.
        if not any(_texts(row[name]) for name in columns["reasoning"]):
            raise UserError(
                f"{place}: its completion is {text!r:.80}, not text: write a string."
            )
        text = ""

    # A uid may stand in a column of any name.
    cells = {
        str(name): str(value).strip()
        for name, value in row.items()
        if name != completion and isinstance(value, (str, int, float))
    }
    reasons = (row[name] for name in columns["finish"])
    written_reasons = (
        reason for reason in reasons if isinstance(reason, str) and reason
    )
    prompts = {name: "\n".join(_texts(row[name])) for name in columns["prompt"]}
    targets = {name: _texts(row[name]) for name in columns["target"]}
    return Prediction(
        place,
        text,
        next(written_reasons, None),
        ids={name: str(row[name]).strip() for name in columns["id"]},
        prompts={name: prompt for name, prompt in prompts.items() if prompt},
        targets={name: texts for name, texts in targets.items() if texts},
        cells=cells,
    )


def _texts(value: Any) -> list[str]:
    """The texts and numbers of a value, a list, messages, or what is first in an object."""
    if isinstance(value, Mapping):
        return _texts(
            value.get("content", value.get("text", next(iter(value.values()), None)))
        )
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    # A flag beside a prompt says nothing of the example.
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return []
    # An empty cell of a CSV file is read as nan.
    return [str(value)] if str(value).strip() not in ("", "nan") else []
