"""Completions made elsewhere: the rows of a file, and which row answers which example.

Rows are matched by uid, prompt, position or order. Their prompts and targets are the examples'.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import commonprefix
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipFile

from ..errors import UserError, reason_of
from ..storage.data_files import read_rows
from .score import completions_frame

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Example, Task

COLUMNS = {
    "id": ("uid", "id", "doc_id", "sample_id", "question_id", "index", "idx", "unnamed:_0"),
    "completion": ("completion", "prediction", "response", "output", "generated_text"),
    "prompt": ("prompt", "question", "input", "inputs", "query", "problem", "messages"),
    "target": ("target", "answer", "answers", "reference", "label", "gold", "ground_truth"),
}
"""The usual names of each column, in capitals or not. `finish_reason` is read, too."""
_CHECK = "check --task, --split, --data-seed and --limit"
_ZSTANDARD = 93


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row of a file: a completion, and what the row says of its example, by column.

    place: how errors name it, "FILE, row 3". finish_reason: "length" if the completion was cut.
    """

    place: str
    completion: str
    finish_reason: str | None
    ids: Mapping[str, str]
    prompts: Mapping[str, str]
    targets: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file that was read; `match` says how its rows were matched, and the row of each example."""

    path: Path
    rows: Sequence[Prediction]
    by: str = ""
    found: Mapping[int, Prediction] = field(default_factory=dict)

    def frame(self, examples: Sequence[Example], chosen: Sequence[int]) -> pd.DataFrame:
        """The completions of the chosen examples, without a prompt that each of them repeats."""
        rows, asked = [self.found[at] for at in chosen], [examples[at] for at in chosen]
        texts = [row.completion for row in rows]
        if all(text.startswith(one.prompt) for text, one in zip(texts, asked, strict=True)):
            texts = [text[len(one.prompt) :] for text, one in zip(texts, asked, strict=True)]
        columns: dict[str, list[Any]] = {"completion": texts}
        if any(row.finish_reason is not None for row in rows):
            columns["finish_reason"] = [row.finish_reason for row in rows]
        return completions_frame(asked, columns)


def read_predictions(
    path: Path, *, id_column: str | None = None, completion_column: str | None = None
) -> Predictions:
    """Read a file of completions; columns that are not named are found by their usual names.

    Raises UserError for a file that cannot be read, and for a row without a completion.
    """
    import pandas as pd

    parse = _samples_of_inspect if path.suffix == ".eval" else None
    frame = pd.DataFrame(read_rows(path, parse=parse))
    if completion_column is None and {"doc_id", "resps"} <= {*frame}:  # samples of lm-eval
        # an answer a document, once for each filter of the task
        answers = [value[0][0] if isinstance(value, list) else value for value in frame["resps"]]
        frame = frame.rename(columns={"arguments": "inputs"}).assign(completion=answers)
        frame = frame.loc[~frame[["doc_id", "completion"]].astype("str").duplicated()]
    if completion_column is None and {"doc", "model_response"} <= {*frame}:  # details of lighteval
        details = zip(frame["doc"], frame["model_response"], strict=True)
        try:
            frame = pd.DataFrame([_detail_of_lighteval(*detail) for detail in details])
        except (KeyError, TypeError, IndexError) as error:
            raise UserError(
                f"{path} does not have what lighteval 0.13 writes ({reason_of(error)}): give a "
                "file with the columns uid and completion."
            ) from error
    usual = {str(name).strip().casefold().replace(" ", "_"): str(name) for name in frame}
    columns = {role: [usual[n] for n in names if n in usual] for role, names in COLUMNS.items()}
    for role, given in (("id", id_column), ("completion", completion_column)):
        columns[role] = columns[role] if given is None else [given] if given in frame else []
        if len(columns[role]) != 1 and (given is not None or role == "completion"):
            found = " and ".join(columns[role]) or f"no {'column' if given is None else given}"
            raise UserError(
                f"{path} has {found} for its {role}, of the columns "
                f"{', '.join(map(str, frame))[:200]}: name one with --{role}-column."
            )
    taken = {*columns["id"], *columns["completion"]}
    columns |= {r: [n for n in columns[r] if n not in taken] for r in ("prompt", "target")}
    rows = zip(frame.index, frame.to_dict("records"), strict=True)
    return Predictions(
        path, [_prediction(f"{path}, row {at + 1}", row, columns) for at, row in rows]
    )


def _samples_of_inspect(path: Path) -> Iterator[dict[str, Any]]:
    """The first epoch of an Inspect log, packed by Zstandard, which zipfile cannot unpack. Inspect
    counts samples without an id of their own from 1, positions count from 0."""
    from pyarrow import decompress

    with ZipFile(path) as log:
        for entry in (one for one in log.infolist() if one.filename.startswith("samples/")):
            size, packed = entry.file_size, entry.compress_type == _ZSTANDARD
            if packed:
                entry.compress_type, entry.file_size = ZIP_STORED, entry.compress_size
                del entry.CRC  # that of the unpacked content
            content = log.read(entry)
            sample = json.loads(decompress(content, size, "zstd", True) if packed else content)
            answer, at = sample["output"], sample["id"]
            if sample["epoch"] == 1 and not sample.get("error"):
                reasons = {choice["stop_reason"] for choice in answer["choices"]}
                yield {
                    **{name: sample[name] for name in ("input", "target")},
                    "id": at - 1 if isinstance(at, int) else at,
                    "completion": answer.get("completion", ""),
                    "finish_reason": "length" if "max_tokens" in reasons else "stop",
                }


def _detail_of_lighteval(doc: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """What lighteval's metrics read: the first answer, without its reasoning where that was cut."""
    gold, texts = doc["gold_index"], response.get("text_post_processed") or response["text"]
    return {
        "id": doc["id"],
        "prompt": doc["query"],
        "target": [doc["choices"][at] for at in (gold if isinstance(gold, list) else [gold])],
        "completion": texts[0] if texts else None,
    }


def _prediction(
    place: str, row: Mapping[Any, Any], columns: Mapping[str, Sequence[str]]
) -> Prediction:
    text, reason = row[columns["completion"][0]], row.get("finish_reason")
    if not isinstance(text, str):
        raise UserError(f"{place}: its completion is {text!r:.80}, not text: write a string.")
    return Prediction(
        place,
        text,
        reason if isinstance(reason, str) and reason else None,
        {name: str(row[name]) for name in columns["id"]},
        {name: "\n".join(texts) for name in columns["prompt"] if (texts := _texts(row[name]))},
        {name: texts for name in columns["target"] if (texts := _texts(row[name]))},
    )


def _texts(value: Any) -> list[str]:
    """The texts and numbers of a value, a list, messages, or what is first in an object."""
    if isinstance(value, Mapping):
        return _texts(value.get("content", value.get("text", next(iter(value.values()), None))))
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    known = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return [str(value)] if known and str(value).strip() not in ("", "nan") else []


def match(
    file: Predictions,
    task: Task,
    examples: Sequence[Example],
    scope: str,
    *,
    first: int | None = None,
    partial: bool = False,
) -> Predictions:
    """The file with its rows matched with the examples; `scope` names these in errors.

    first: so many examples are scored; None: all. Raises UserError for the first row that fits no
    example, and, unless `partial`, for an example without a row.
    """
    cores = _cores(examples)
    by, places = _find_places(file, examples, cores, scope)
    found: dict[int, Prediction] = {}
    for at, row in zip(places, file.rows, strict=True):
        uid = examples[at].uid
        if at in found:
            raise UserError(
                f"{row.place}: the example {uid} is already in {found[at].place}: keep one of them."
            )
        if (name := _contradiction(row, examples[at], cores[at], task)) is not None:
            raise UserError(
                f"{row.place}: its {name} is not that of the example {uid}: {_CHECK}, give rows in "
                f"another order their uid, or remove the column {name}."
            )
        found[at] = row
    missing = [at for at in range(len(examples))[:first] if at not in found]
    if missing and not partial:
        raise UserError(
            f"{file.path} has no completion for {len(missing):,} of {scope} (the first: "
            f"{examples[missing[0]].uid}): add them, or score fewer with --partial or --limit."
        )
    found = {at: row for at, row in found.items() if first is None or at < first}
    return replace(file, by=by, found=found)


def _find_places(
    file: Predictions, examples: Sequence[Example], cores: Sequence[str], scope: str
) -> tuple[str, Sequence[int]]:
    """How rows name their examples, and the index of the example of each."""
    rows, uids = file.rows, {example.uid: at for at, example in enumerate(examples)}
    for name in rows[0].ids:
        if all(row.ids[name] in uids for row in rows):
            return "uid", [uids[row.ids[name]] for row in rows]
    if (asked := _find_by_prompt(rows, examples, cores)) is not None:
        return "prompt", asked
    if not rows[0].ids:
        if len(rows) != len(examples):
            raise UserError(
                f"{file.path} has {len(rows):,} rows for {scope}: without ids, rows are matched in "
                f"order, so add a column uid (the first is {examples[0].uid})."
            )
        return "the order of the examples", range(len(rows))
    places = []
    for row in rows:
        name, said = next(iter(row.ids.items()))
        whole = re.fullmatch(r"(\d{1,15})(\.0*)?", said, re.ASCII)  # 7, 7.0, 007
        places.append(uids.get(said, int(whole[1]) if whole else -1))
        if not 0 <= places[-1] < len(examples):
            raise UserError(
                f"{row.place}: its {name} {said!r:.80} is no uid or position (from 0) in {scope}: "
                f"give uids (the first is {examples[0].uid}), or {_CHECK}."
            )
    if len(rows) > 1 and sorted(places) == [*range(1, len(rows) + 1)]:
        raise UserError(f"{file.path} counts its {name} from 1, not 0: subtract 1, or give uids.")
    return "position", places


def _find_by_prompt(
    rows: Sequence[Prediction], examples: Sequence[Example], cores: Sequence[str]
) -> Sequence[int] | None:
    """The example of each row by its prompt; None where prompts do not tell."""
    places: dict[str, list[int]] = {}
    for at, core in enumerate(cores):
        same = places.setdefault(core, [])
        same.append(at)
        places[_plain(examples[at].prompt)] = same
    found = []
    for row in rows:
        known = (places.get(_plain(text)) for text in row.prompts.values())
        same = next(filter(None, known), [])
        if len({(examples[at].target, examples[at].images) for at in same}) != 1:
            return None
        found.append(same.pop(0))
    return found


def _cores(examples: Sequence[Example]) -> list[str]:
    """The prompts in plain letters, each without the words that begin or end all."""
    whole = [_plain(example.prompt) for example in examples]
    ends = whole, [text[::-1] for text in whole]
    before, after = (re.sub(r"\w+$", "", commonprefix(end)) for end in ends)  # noqa: RUF071
    return [text[len(before) : len(text) - len(after)].strip() for text in whole]


def _contradiction(row: Prediction, example: Example, core: str, task: Task) -> str | None:
    """The column with another example's prompt or target, as with another data seed; None: none."""
    whole, asked = _plain(example.prompt), {n: _plain(text) for n, text in row.prompts.items()}
    if asked and not any(core in text or text in whole for text in asked.values()):
        return next(iter(asked))
    ours = task.parse(example.target)
    for name, texts in row.targets.items():
        values = [answer.value for answer in map(task.parse, texts) if answer is not None]
        other = ours is None or (bool(values) and ours.value not in values)
        if other and _plain(example.target) not in map(_plain, texts):
            return name
    return None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
