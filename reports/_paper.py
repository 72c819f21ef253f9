"""The published values of `paper.yaml`, and whether a cell's setting is the paper's.

Only then does a published value stand beside a cell's own; else its place says what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

from smmd_bench.contracts import Run, Split, UserError
from smmd_bench.models.recipe import paper_recipe
from smmd_bench.plugin_system.parameters import split_spec
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.publishing.tables import DASH
from smmd_bench.storage.strict_yaml import read_yaml

from ._cells import named_seeds

SYNTHETIC, UNKNOWN = "synthetic", DASH
NOT_REPORTED = "not reported"
_DECODING = ("greedy", "max_new_tokens", "stop", "engine", "dtype", "chat_template")
_PICTURES = ("clock_time", "chartqa")
"""Tasks of the paper that are made here where no source is named."""
_GIVEN = ("epochs", "learning_rate", "weight_decay", "warmup_ratio", "lora_rank")
"""What the paper says of its training, besides that it is LoRA; the rest is chosen here."""
_ROUNDING = 0.01
"""The paper rounds its sizes; so far apart they count as the same."""
_KEYS = ("model", "task", "loss")


def paper_model(model: str) -> dict[str, str]:
    """The paper's model that a hub name or a local folder is, by its last part: its key in
    `paper.yaml`, and name and params as the paper's tables have them; empty: another."""
    last = model.rstrip("/").rpartition("/")[2].casefold()
    for key, entry in _content()["models"].items():
        if last in (name.casefold() for name in entry["names"]):
            return {**entry, "key": key}
    return {}


def published(table: str, *, model: str, task: str, loss: str) -> Mapping[str, float]:
    """The published values by metric; empty where the paper's table has no such row."""
    known = paper_model(model)
    for row in rows(table) if known else ():
        if (row.get("model"), row["task"], row.get("loss")) == (known["key"], task, loss):
            return {key: value for key, value in row.items() if key not in _KEYS}
    return {}


@cache
def rows(table: str) -> list[dict[str, Any]]:
    """The rows of a table of the paper, as printed, one a model, task and loss; of "" none."""
    found: dict[Any, dict[str, Any]] = {}
    for row in _content()["tables"].get(table, {"rows": ()})["rows"]:
        losses = next(({**v} for v in row.values() if isinstance(v, dict)), {row.get("loss"): 0})
        for loss in losses:
            own = {name: v[loss] if isinstance(v, dict) else v for name, v in row.items()}
            own |= {} if loss is None else {"loss": loss}
            found.setdefault((row.get("model"), row["task"], loss), {}).update(own)
    return [*found.values()]


@cache
def _content() -> dict[str, Any]:
    text = (files("smmd_bench.reports") / "paper.yaml").read_text(encoding="utf-8")
    return dict(read_yaml(text))


def published_beside(run: Run, cell: Mapping[Any, Any], table: str) -> Mapping[str, float]:
    """The published values by metric of a cell; none where its setting is another."""
    task = split_spec(str(cell["task"]))[0]
    found = published(table, model=str(cell["model"]), task=task, loss=str(cell["loss"]))
    return {} if found and other_setting(run, cell) else found


def other_setting(run: Run, cell: Mapping[Any, Any]) -> str:
    """What of a cell (a row of `run.cells`) is not as in the paper, in a word; empty: all is."""
    return next(_differences(run, cell), "")


def _differences(run: Run, cell: Mapping[Any, Any]) -> Iterator[str]:
    task = str(cell["task"])
    if not paper_model(str(cell["model"])):
        yield "other model"
    if word := other_data(run, task):
        yield word
    sizes = run.metrics.loc[run.metrics["address"] == cell["address"], "n"]
    if sizes.notna().any() and _is_other_size(task, "test", int(sizes.max())):
        yield "other size"
    if cell["loss"] != "base" and is_other_training(run, cell):
        yield "other training"


def other_data(run: Run, task: str) -> str:
    """What of a task's data is not as in the paper, in a word; empty: all is."""
    name, parameters = split_spec(task)
    source = data_source(run, task)
    if source == SYNTHETIC:
        return "synthetic data"
    if {*parameters} - {"source"}:
        return "other level"
    return "unknown data" if name in _PICTURES and source == UNKNOWN else ""


def data_source(run: Run, task: str) -> str:
    """Where a task's test data is from, as the manifest says; a dash where it does not."""
    test = (_data(run, task).get("identity") or {}).get("test") or {}
    return str(test.get("source") or UNKNOWN)


def is_other_training(run: Run, cell: Mapping[Any, Any]) -> bool:
    """Whether a cell was trained in another way than in the paper; not where it has no recipe.

    The paper says nothing of validation examples, so their number is free.
    """
    recipe, trained_on = cell["recipe"], cell["trained_on"]
    task = trained_on if isinstance(trained_on, str) else str(cell["task"])
    name, _ = split_spec(task)
    if not any(row.get("task") == name for table in _content()["tables"] for row in rows(table)):
        return True
    data = _data(run, task)
    there = data.get("there", data.get("sizes") or {}).get("train") if recipe else None
    most = _paper_size(task, "train")  # of a larger copy no more is used
    sizes = [recipe.get("train_examples"), None if None in (there, most) else min(there, most)]  # type: ignore[type-var]
    known = [int(size) for size in sizes if size is not None]
    if known and _is_other_size(task, "train", min(known)):
        return True
    paper = paper_recipe(name)
    ours = [recipe.get(setting, getattr(paper, setting)) for setting in _GIVEN]
    theirs = [getattr(paper, setting) for setting in _GIVEN]
    return recipe.get("method", "lora") != "lora" or ours != theirs


def reported(run: Run) -> str:
    """What the manifest reports, in a line: seeds, decoding, the paper's setting or not, data."""
    trained = run.cells[run.cells["loss"] != "base"]
    made_here = "predictions" not in run.manifest
    seeds, setting = f"seeds {NOT_REPORTED}", NOT_REPORTED
    if made_here and len(trained):
        seeds = named_seeds(trained)
        cells = trained[trained["status"] == "done"].drop_duplicates(["model", "task", "loss"])
        records = cells.to_dict("records")
        differs = dict.fromkeys(word for cell in records for word in _differences(run, cell))
        if records:
            setting = f"not the paper's ({', '.join(differs)})" if differs else "the paper's"
    data: dict[str, list[str]] = {}
    for task in map(str, trained["task"].unique()):
        data.setdefault(_origin(run, task), []).append(task)
    several = [f"{word} ({', '.join(tasks)})" for word, tasks in data.items()]
    origin = " and ".join(several if len(data) > 1 else data)
    decoding = _decoding(run, made_here)
    return f"Reported: {seeds}; decoding {decoding}; setting {setting}; data {origin}."


def _decoding(run: Run, made_here: bool) -> str:
    """Whether the manifest says all of how completions were decoded, and how long they may be."""
    hows = (run.manifest.get("generation") or {}).values() if made_here else ()
    lacking = {name: None for how in hows for name in _DECODING if name not in how}
    if not hows or lacking:
        return f"incomplete ({', '.join(lacking)} {NOT_REPORTED})" if lacking else NOT_REPORTED
    lengths = sorted({int(how["max_new_tokens"]) for how in hows})
    greedy = "greedy, " * all(how["greedy"] for how in hows)
    return f"complete ({greedy}at most {' or '.join(map(str, lengths))} tokens)"


def _origin(run: Run, task: str) -> str:
    test = (_data(run, task).get("identity") or {}).get("test")
    if not test:
        return NOT_REPORTED
    made = test.get("source") == SYNTHETIC or "generator" in test
    return SYNTHETIC if made else f"not {SYNTHETIC}"


def _data(run: Run, task: str) -> Mapping[str, Any]:
    return (run.manifest.get("data") or {}).get(task) or {}


def _paper_size(task: str, split: Split) -> int | None:
    """How many examples the paper has; None: the task's plugin is not here."""
    try:
        return int(load_task(task).paper_sizes.get(split, 0)) or None
    except UserError:
        return None


def _is_other_size(task: str, split: Split, size: int) -> bool:
    paper = _paper_size(task, split)
    return paper is not None and abs(size - paper) > _ROUNDING * paper


def with_published(data: pd.DataFrame, run: Run, cells: pd.DataFrame, table: str) -> pd.DataFrame:
    """A result frame with other_setting, published and against_published (ours minus that)."""
    records = {cell["address"]: cell for cell in cells.to_dict("records")}
    words = {address: other_setting(run, cell) for address, cell in records.items()}
    values = {address: published_beside(run, cell, table) for address, cell in records.items()}
    pairs = zip(data["address"], data["metric"], strict=True)
    theirs = pd.Series([values[a].get(m) for a, m in pairs], data.index, dtype="float64")
    ours = data["value"].astype("float64")
    return data.assign(
        other_setting=data["address"].map(words).astype("str"),
        published=theirs,
        against_published=ours - theirs,
    )
