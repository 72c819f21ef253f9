"""Completions made elsewhere: the rows of a file, and what each row says of its example."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from ..errors import UserError, reason_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "id": ("uid", "id", "doc_id", "sample_id", "question_id", "example_id", "index", "idx", ""),
    "completion": ("completion", "prediction", "response", "output", "generated_text"),
    "prompt": ("prompt", "prompts", "question", "input", "inputs", "query", "problem",
               "instruction", "messages", "conversation", "full_prompt", "dialogue"),
    "target": ("target", "targets", "answer", "answers", "reference", "references", "label",
               "labels", "gold", "ground_truth", "expected", "correct_answer", "solution"),
}  # fmt: skip
"""The usual names of each column, in capitals or not. `finish_reason` is read, too."""
_ZSTANDARD = 93


@dataclass(frozen=True, slots=True)
class Prediction:
    """One completion, and what the file says of it.

    place: how errors name it: "FILE, row 3". ids, prompts, targets: what its row says of the
    example, by column; a column can hold several targets. finish_reason: "length" if it was cut.
    """

    place: str
    ids: Mapping[str, Any]
    completion: str
    finish_reason: str | None
    prompts: Mapping[str, str]
    targets: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file that was read. decisive: its ids name examples whatever its prompts say."""

    path: Path
    form: str
    rows: Sequence[Prediction]
    decisive: bool = False


def read_predictions(
    path: Path, *, id_column: str | None = None, completion_column: str | None = None
) -> Predictions:
    """Read a file of completions; columns that are not named are found by their usual names.

    Raises UserError for a file that cannot be read, and for a row without a completion.
    """
    if not path.is_file():
        raise UserError(f"The file of predictions {path} does not exist: check --predictions.")
    try:
        form, frame = _read_frame(path)
    except (ValueError, OSError, EOFError, KeyError, BadZipFile, NotImplementedError,
            RecursionError, zlib.error) as error:  # fmt: skip
        raise UserError(
            f"{path} cannot be read ({reason_of(error)}): give JSON lines, a JSON list (also with "
            ".gz), CSV, Parquet, samples of lm-eval or a log of Inspect (.eval)."
        ) from error
    if frame.empty:
        raise UserError(f"{path} is empty: give a file with one completion per example.")
    names = [str(name) for name in frame.columns]
    of_lm_eval = completion_column is None and {"doc_id", "resps"} <= {*names}
    frame = _answers_of_lm_eval(path, frame) if of_lm_eval else frame
    completion = "completion" if of_lm_eval else _column(path, names, completion_column)
    if id_column is not None and id_column not in names:
        raise UserError(f"{path} has no column '{id_column}': check --id-column.")
    ids = ["doc_id"] if of_lm_eval else [id_column] if id_column else None
    places = (f"{path}, row {number}" for number in range(1, len(frame) + 1))
    records = frame.to_dict("records")
    rows = [_prediction(*row, completion, ids) for row in zip(places, records, strict=True)]
    return Predictions(path, "lm-eval samples" if of_lm_eval else form, rows, ids is not None)


def _read_frame(path: Path) -> tuple[str, pd.DataFrame]:
    """The format of a file, and its rows, by its extension; JSON by its content."""
    import pandas as pd

    raw = path.read_bytes()
    raw = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix == ".eval":
        return "Inspect log", pd.DataFrame(_samples_of_inspect(raw))
    if raw.startswith(b"PAR1"):
        return "Parquet", pd.read_parquet(BytesIO(raw))
    if suffix in (".csv", ".tsv"):
        comma = "," if suffix == ".csv" else "\t"
        frame = pd.read_csv(BytesIO(raw), sep=comma, dtype=str, keep_default_na=False)
        return "CSV", frame.rename(columns=lambda name: re.sub(r"^Unnamed: \d+$", "", name.strip()))
    listed = raw.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    options: dict[str, Any] = {"lines": not listed, "dtype": False, "encoding": "utf-8-sig"}
    return "JSON list" if listed else "JSON lines", pd.read_json(BytesIO(raw), **options)


def _samples_of_inspect(raw: bytes) -> Iterator[dict[str, Any]]:
    """The first epoch of an Inspect log. Inspect counts samples without an id of their own from 1,
    positions count from 0."""
    with ZipFile(BytesIO(raw)) as log:
        for name in sorted(name for name in log.namelist() if name.startswith("samples/")):
            sample = json.loads(_unzipped(log, log.getinfo(name)))
            answer, at = sample["output"], sample["id"]
            if sample["epoch"] == 1 and not sample.get("error"):
                reasons = {choice["stop_reason"] for choice in answer["choices"]}
                yield {
                    **{name: sample[name] for name in ("input", "target")},
                    "id": at - 1 if isinstance(at, int) else at,
                    "completion": answer.get("completion", ""),
                    "finish_reason": "length" if "max_tokens" in reasons else "stop",
                }


def _unzipped(log: ZipFile, entry: ZipInfo) -> bytes:
    """The content of a file in a log. Inspect packs by Zstandard, which zipfile cannot unpack."""
    if entry.compress_type != _ZSTANDARD:
        return log.read(entry)
    from pyarrow import decompress

    size, stored = entry.file_size, copy(entry)
    stored.compress_type, stored.file_size = ZIP_STORED, entry.compress_size
    del stored.CRC  # that of the unpacked content
    return bytes(decompress(log.read(stored), size, "zstd", asbytes=True))


def _answers_of_lm_eval(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """The raw answer of every document, which lm-eval writes once for each filter of its task."""
    answers = [value[0][0] if isinstance(value, list) else value for value in frame["resps"]]
    if not all(isinstance(answer, str) for answer in answers):
        raise UserError(
            f"{path} has answers that are not text: give samples of a task that generates text "
            "(output_type generate_until)."
        )
    frame = frame.rename(columns={"arguments": "inputs"}).assign(completion=answers)
    if "truncated" in frame:  # `smmd-bench export` adds it
        frame["finish_reason"] = frame["truncated"].map({True: "length", False: "stop"})
    once = frame.drop_duplicates(["doc_id", "completion"])
    twice = frame.duplicated(["doc_id", *({"filter"} & {*frame.columns})])
    if twice.any() or once["doc_id"].duplicated().any():
        raise UserError(f"{path} has two answers to one doc_id: keep the lines of one evaluation.")
    return once


def _column(path: Path, names: Sequence[str], given: str | None) -> str:
    """The column of the completions."""
    known = COLUMNS["completion"] if given is None else (given,)
    found = [name for name in names if name in known]
    if len(found) != 1:
        raise UserError(
            f"{path} has {' and '.join(found) or 'no column'} for its completions, of the columns "
            f"{', '.join(names)[:200]}: name one with --completion-column."
        )
    return found[0]


def _prediction(
    place: str, row: Mapping[Any, Any], completion: str, ids: Sequence[str] | None
) -> Prediction:
    text, reason = row[completion], row.get("finish_reason")
    if not isinstance(text, str):
        raise UserError(f"{place}: {completion} is {text!r:.80}, not text: write a string.")
    prompts = {name: "\n".join(_texts(v)) for name, v in _known(row, "prompt", completion).items()}
    targets = {name: _texts(v) for name, v in _known(row, "target", completion).items()}
    return Prediction(
        place,
        {name: row[name] for name in ids} if ids else _known(row, "id", completion),
        text.encode("utf-8", "replace").decode("utf-8"),  # half a surrogate pair becomes "?"
        reason if isinstance(reason, str) and reason else None,
        {name: text for name, text in prompts.items() if text},
        {name: texts for name, texts in targets.items() if texts},
    )


def _known(row: Mapping[Any, Any], role: str, completion: str) -> dict[str, Any]:
    """The columns with a usual name of this role, also of objects in columns, such as `doc`."""
    found: dict[str, Any] = {}
    for inner in [*(value for value in row.values() if isinstance(value, Mapping)), row]:
        plain = {re.sub(r"[\s_-]", "", str(name)).casefold(): name for name in inner}
        usual = [plain.get(name.replace("_", "")) for name in COLUMNS[role]]
        found |= {name: inner[name] for name in usual if name not in (None, completion)}
    return found


def _texts(value: Any) -> list[str]:
    """The texts and numbers of a value, a list, messages, or what is first in an object."""
    if isinstance(value, Mapping):
        value = value.get("content", value.get("text", next(iter(value.values()), None)))
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):  # pandas has arrays
        return [text for part in list(value) for text in _texts(part)]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return [value] if isinstance(value, str) and value.strip() not in ("", "nan") else []
