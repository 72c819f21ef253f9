"""Samples of lm-eval 0.4 (`--log_samples`): samples_TASK_DATE.jsonl.

lm-eval writes each document once for every filter of its task, with the same raw answers in
`resps[request][repeat]` and the filtered ones in `filtered_resps`. The first raw answer is taken,
once a document; the task's own parser reads it. `doc_id` is the position of the document in the
split, also where only some documents were asked (`--samples`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .rows import Prediction, Predictions, Row, fault, shown

FORM = "lm-eval samples"
_KEYS = ("doc_id", "resps")


def are_samples(first: Mapping[str, Any]) -> bool:
    """Whether the first row is one of lm-eval's samples."""
    return all(key in first for key in _KEYS)


def sample_predictions(path: Path, rows: Sequence[Row]) -> Predictions:
    """The raw answer of every document, by position.

    Raises UserError for a row that is no sample, one without a generated text, and a document that
    stands there twice by the same filter.
    """
    documents: dict[int, Prediction] = {}
    filters: dict[tuple[int, str], str] = {}
    for row in rows:
        if not are_samples(row.values) or type(row.values["doc_id"]) is not int:
            raise fault(
                path,
                row.place,
                "is no sample of lm-eval, as those before it are (it lacks an integer doc_id, or "
                "resps): leave it out.",
            )
        document, name = row.values["doc_id"], str(row.values.get("filter"))
        found = _prediction(path, row)
        if (document, name) in filters:
            raise fault(
                path,
                row.place,
                f"doc_id {document} with the filter {name} stands in {filters[document, name]} "
                "already: keep the lines of one evaluation only.",
            )
        filters[document, name] = row.place
        known = documents.setdefault(document, found)
        if known.completion != found.completion:
            raise fault(
                path,
                row.place,
                f"doc_id {document} has another answer in {known.place}: keep the lines of one "
                "evaluation only.",
            )
    return Predictions(path, FORM, list(documents.values()), positions=True)


def _prediction(path: Path, row: Row) -> Prediction:
    try:
        answer = row.values["resps"][0][0]
    except (LookupError, TypeError):
        answer = None
    if not isinstance(answer, str):
        raise fault(
            path,
            row.place,
            f"resps[0][0] is {shown(answer)} and no text: give samples of a task that generates "
            "text (output_type generate_until), not one that compares likelihoods.",
        )
    target = row.values.get("target")
    return Prediction(
        place=row.place,
        id=row.values["doc_id"],
        completion=answer.encode("utf-8", "replace").decode("utf-8"),
        target=str(target) if isinstance(target, (str, int, float)) else None,
    )
