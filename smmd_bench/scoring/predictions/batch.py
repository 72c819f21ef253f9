"""Output of OpenAI's batch interface, as `vllm run-batch` writes it, too.

A line holds custom_id and response.body.choices[0], with message.content (chat) or text
(completions) and finish_reason. A request that failed has an `error`, or a status that is not 200.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .plain import checked_id
from .rows import Prediction, Predictions, Row, fault, shown, text_of

FORM = "OpenAI batch output"


def is_batch_output(first: Mapping[str, Any]) -> bool:
    """Whether the first row is a line of batch output."""
    return (
        "custom_id" in first
        and "response" in first
        and (isinstance(first["response"], Mapping) or "error" in first)
    )


def batch_predictions(path: Path, rows: Sequence[Row]) -> Predictions:
    """The first choice of every request.

    Raises UserError for a request that failed, and for a row that holds no completion.
    """
    return Predictions(path, FORM, [_prediction(path, row) for row in rows])


def _prediction(path: Path, row: Row) -> Prediction:
    values = row.values
    if not is_batch_output(values):
        raise fault(
            path,
            row.place,
            "is no line of batch output, as those before it are (custom_id, response): leave it "
            "out.",
        )
    name = checked_id(path, row.place, values["custom_id"])
    response = values["response"] if isinstance(values["response"], Mapping) else {}
    body = response.get("body")
    failure = values.get("error")
    if failure is None and response.get("status_code", 200) != 200:
        failure = body or f"status {response['status_code']}"
    if failure is not None:
        raise fault(
            path,
            row.place,
            f"the request {shown(name)} failed ({_reason(failure)}): send it again, or delete the "
            "line and give --partial.",
        )
    try:
        choice = body["choices"][0]  # type: ignore[index]
        content = choice["message"]["content"] if "message" in choice else choice["text"]
        finish_reason = choice.get("finish_reason")
    except (LookupError, TypeError, AttributeError) as error:
        raise fault(
            path,
            row.place,
            f"the request {shown(name)} has no response.body.choices[0] with message.content or "
            "text: give the output of chat or text completions.",
        ) from error
    if content is None and finish_reason == "length":  # cut off before the reasoning ended
        content = ""
    text = text_of(path, row.place, f"the completion of {shown(name)}", content)
    return Prediction(row.place, name, text, str(finish_reason) if finish_reason else None)


def _reason(failure: Any) -> str:
    """The message within an error of OpenAI or vLLM, in one line."""
    while isinstance(failure, Mapping) and ("message" in failure or "error" in failure):
        failure = failure.get("message") or failure.get("error")
    return " ".join(str(failure).split())[:200].rstrip(".")
