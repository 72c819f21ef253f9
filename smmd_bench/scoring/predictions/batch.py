"""Output of OpenAI's batch interface, which `vllm run-batch` writes, too.

A line holds custom_id and response.body.choices[0], with message.content (chat) or text
(completions) and finish_reason. A request that failed has an `error`, or a status that is not 200.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .rows import Prediction, Row, RowError, id_of, shown, text_of


def is_batch_output(values: Mapping[str, Any]) -> bool:
    """Whether a row is a line of batch output."""
    has_response = isinstance(values.get("response"), Mapping) or "error" in values
    return "custom_id" in values and "response" in values and has_response


def batch_prediction(row: Row) -> Prediction:
    """The first choice of a request.

    Raises RowError for a request that failed, and for a row that holds no completion.
    """
    values = row.values
    if not is_batch_output(values):
        raise RowError(
            "is not a line of batch output like those before it (custom_id, response): remove it."
        )
    name = id_of(values["custom_id"])
    response = values["response"] if isinstance(values["response"], Mapping) else {}
    body, failure = response.get("body"), values.get("error")
    if failure is None and response.get("status_code", 200) != 200:
        failure = body or f"status {response['status_code']}"
    if failure is not None:
        raise RowError(
            f"the request {shown(name)} failed ({_reason(failure)}): send it again, or delete the "
            "line and give --partial."
        )
    try:
        choice = body["choices"][0]  # type: ignore[index]
        content = choice["message"]["content"] if "message" in choice else choice["text"]
        finish_reason = choice.get("finish_reason")
    except (LookupError, TypeError, AttributeError) as error:
        raise RowError(
            f"the request {shown(name)} has no response.body.choices[0] with message.content or "
            "text: give the output of chat or text completions."
        ) from error
    if content is None and finish_reason == "length":  # cut off while the model was reasoning
        content = ""
    text = text_of(f"the completion of {shown(name)}", content)
    return Prediction(row.place, name, text, str(finish_reason) if finish_reason else None)


def _reason(failure: Any) -> str:
    """The message within an error of OpenAI or vLLM, in one line."""
    while isinstance(failure, Mapping) and ("message" in failure or "error" in failure):
        failure = failure.get("message") or failure.get("error")
    return " ".join(str(failure).split())[:200].rstrip(".")
