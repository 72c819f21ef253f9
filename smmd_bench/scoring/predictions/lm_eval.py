"""Samples of lm-eval 0.4 (`--log_samples`): samples_TASK_DATE.jsonl.

lm-eval writes each document once for every filter of its task, with the same raw answers in
`resps[request][repeat]` and the filtered ones in `filtered_resps`. The first raw answer of each
document is taken; the task's own parser reads it. `doc_id` is the position of the document in the
split, even if only some documents were asked (`--samples`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .rows import Prediction, Predictions, Row, RowError, located, shown, target_of, text_of


def are_samples(first: Mapping[str, Any]) -> bool:
    """Whether the first row is one of lm-eval's samples."""
    return "doc_id" in first and "resps" in first


def sample_predictions(path: Path, rows: Sequence[Row]) -> Predictions:
    """The raw answer of every document, by position.

    Raises UserError for a row that is not a sample, one without a generated text, and a document
    that appears twice with the same filter.
    """
    documents: dict[int, Prediction] = {}
    filters: dict[tuple[int, str], str] = {}
    for row in rows:
        with located(path, row.place):
            document, found = _sample(row)
            key = document, str(row.values.get("filter"))
            if key in filters:
                raise RowError(
                    f"doc_id {document} with the filter {key[1]} is already in {filters[key]}: "
                    "keep the lines of one evaluation."
                )
            filters[key] = row.place
            known = documents.setdefault(document, found)
            if known.completion != found.completion:
                raise RowError(
                    f"doc_id {document} has another answer in {known.place}: keep the lines of "
                    "one evaluation."
                )
    return Predictions(path, "lm-eval samples", list(documents.values()), positions=True)


def _sample(row: Row) -> tuple[int, Prediction]:
    values = row.values
    if not are_samples(values) or type(values["doc_id"]) is not int:
        raise RowError(
            "is not an lm-eval sample like the lines before it (it lacks resps or an integer "
            "doc_id): remove it."
        )
    try:
        answer = values["resps"][0][0]
    except (LookupError, TypeError):
        answer = None
    if not isinstance(answer, str):
        raise RowError(
            f"resps[0][0] is {shown(answer)}, not text: give samples of a task that generates text "
            "(output_type generate_until), not of one that compares likelihoods."
        )
    document = values["doc_id"]
    text = text_of("resps[0][0]", answer)
    return document, Prediction(row.place, document, text, target=target_of(values))
