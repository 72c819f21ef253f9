"""The rows of a file of completions: of samples of lm-eval, details of lighteval, logs of Inspect,
and of any table."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipFile

from ..errors import UserError, reason_of
from ..storage.text_rows import read_rows

if TYPE_CHECKING:
    import pandas as pd

_WRITTEN = re.compile(r"^(?:samples|details)_(.+)_\d{4}-\d\d-\d\dT[\d.:-]+$")
# The number that the ZIP format gives this compression.
_ZSTANDARD = 93


def name_answers(file: Path) -> str:
    """Name a file by its stem, without what lm-eval and lighteval write around the task in it."""
    return _WRITTEN.sub(r"\1", _stem(file))


def _stem(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).stem


def find_samples(folder: Path, task: str) -> list[Path]:
    """Find the samples of a task in a folder of lm-eval's output: of each model the newest file.

    If the folder has one task, that is meant, whatever its name. Raises UserError for several of
    which none is named `task`, and for none.
    """
    newest: dict[str, dict[Path, Path]] = {}
    # Names end with their date, so that the newest of a model comes last.
    for file in sorted(folder.rglob("samples_*.jsonl*")):
        if written := _WRITTEN.fullmatch(_stem(file)):
            newest.setdefault(written[1], {})[file.parent] = file

    if not newest:
        raise UserError(
            f"{folder} has no samples_TASK_DATE.jsonl: run lm-eval with --log_samples, or give a "
            "file of completions."
        )
    if task not in newest and len(newest) > 1:
        examples = sorted(newest[min(newest)].values())
        flags = " ".join(f"--predictions {file}" for file in examples)
        raise UserError(
            f"{folder} has samples of {', '.join(sorted(newest))}, and none of {task}: give the "
            f"files of one of them, such as {flags}."
        )
    return list(newest.get(task, newest[min(newest)]).values())


def read_frame(path: Path, *, as_table: bool) -> pd.DataFrame:
    """A frame with a row for each completion. `as_table`: columns stay as the file has them, also
    where a known program wrote it. Raises UserError for a file that cannot be read."""
    import pandas as pd

    if path.suffix == ".eval":
        return pd.DataFrame(read_rows(path, parse=_unpack_inspect))
    if ".json" in path.suffixes and (log := _load_inspect_json(path)) is not None:
        return pd.DataFrame(read_rows(path, parse=lambda _: _rows_of_inspect(log)))

    frame = pd.DataFrame(read_rows(path))

    # The user named the columns, so nothing in them is guessed.
    if as_table:
        return frame
    if {"doc_id", "resps"} <= {*frame}:
        return _answers_of_lm_eval(frame)
    if {"doc", "model_response"} <= {*frame}:
        return _answers_of_lighteval(frame, path)
    return frame


def _load_inspect_json(path: Path) -> list[dict[str, Any]] | None:
    """The samples of a log that Inspect wrote as one JSON object; None for another file."""
    try:
        content = path.read_bytes()
        log = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (OSError, EOFError, ValueError, RecursionError):
        return None  # `read_rows` says what is wrong with it
    if not isinstance(log, dict) or not {"eval", "status"} <= {*log}:
        return None
    return log.get("samples") or []


def _unpack_inspect(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a log packed by Zstandard, which zipfile cannot unpack."""
    with ZipFile(path) as log:
        names = (
            entry for entry in log.infolist() if entry.filename.startswith("samples/")
        )
        yield from _rows_of_inspect(_load_entry(log, entry) for entry in names)


def _load_entry(log: ZipFile, entry: Any) -> dict[str, Any]:
    from pyarrow import decompress

    if entry.compress_type != _ZSTANDARD:
        return dict(json.loads(log.read(entry)))
    # Read as if it were stored as it is, the entry gives its packed bytes.
    size = entry.file_size
    entry.compress_type, entry.file_size = ZIP_STORED, entry.compress_size
    del entry.CRC  # that of the unpacked content
    return dict(json.loads(decompress(log.read(entry), size, "zstd", True)))


def _rows_of_inspect(samples: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The samples of the first epoch that did not fail. Inspect counts samples without an id of
    their own from 1, positions count from 0."""
    for sample in samples:
        # Other epochs ask the same questions again: intervals count each once.
        if sample.get("epoch", 1) != 1 or sample.get("error"):
            continue
        answer, identity = sample["output"], sample["id"]
        reasons = [choice.get("stop_reason") for choice in answer.get("choices", [])]
        yield {
            "input": sample["input"],
            "target": sample["target"],
            "id": identity - 1 if isinstance(identity, int) else identity,
            "completion": answer.get("completion", ""),
            "finish_reason": reasons[0] if reasons else None,
        }


def _answers_of_lm_eval(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a document, of which the file has one for each filter of the task."""
    answers = []
    for value in frame["resps"]:
        answers.append(value[0][0] if isinstance(value, list) else value)
    # `arguments` holds the prompt as lm-eval sent it, with its template.
    frame = frame.rename(columns={"arguments": "inputs"}).assign(completion=answers)
    # As texts, because lists cannot be hashed.
    return frame.loc[~frame[["doc_id", "completion"]].astype("str").duplicated()]


def _answers_of_lighteval(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    import pandas as pd

    details = zip(frame["doc"], frame["model_response"], strict=True)
    try:
        return pd.DataFrame([_detail_of_lighteval(*detail) for detail in details])
    except (KeyError, TypeError, IndexError) as error:
        raise UserError(
            f"{path} does not have what lighteval 0.13 writes ({reason_of(error)}): give a "
            "file with the columns uid and completion."
        ) from error


def _detail_of_lighteval(
    doc: Mapping[str, Any], response: Mapping[str, Any]
) -> dict[str, Any]:
    """What lighteval's metrics read: the first answer, without its reasoning where that was cut."""
    gold = doc["gold_index"]
    places = gold if isinstance(gold, list) else [gold]
    # Metrics of lighteval read the processed text where there is one.
    texts = response.get("text_post_processed") or response["text"]
    return {
        "id": doc["id"],
        "prompt": doc["query"],
        "target": [doc["choices"][place] for place in places],
        "completion": texts[0] if texts else None,
    }
