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
from smmd_bench.results.pairing import KEY
from smmd_bench.storage.strict_yaml import read_yaml

from ._results import name_seeds, select_measured, select_rows

SYNTHETIC, UNKNOWN = "synthetic", DASH
_PICTURES = ("clock_time", "chartqa")
"""Tasks of the paper that are made here where no source is named."""
_STATED_SETTINGS = (
    "epochs",
    "learning_rate",
    "weight_decay",
    "warmup_ratio",
    "lora_rank",
)
"""What the paper says of its training, besides that it is LoRA; the rest is chosen here."""
NOT_REPORTED = "not reported"
_DECODING = ("greedy", "max_new_tokens", "stop", "engine", "dtype", "chat_template")
"""What together says how completions were decoded."""
_ROUNDING = 0.01
"""The paper rounds its sizes; so far apart they count as the same."""


def find_paper_model(model: str) -> dict[str, str]:
    """The paper's model that a hub name or a local folder is, by its last part: its key in
    `paper.yaml`, and name and params as the paper's tables have them; empty: another."""
    folder_name = model.rstrip("/").rpartition("/")[2].casefold()
    for key, entry in _content()["models"].items():
        names = [name.casefold() for name in entry["names"]]
        if folder_name in names:
            return {**entry, "key": key}
    return {}


def find_published(table: str, model: str, task: str, loss: str) -> Mapping[str, float]:
    """The published values by metric; empty where the paper's table has no such row."""
    entry = find_paper_model(model)
    if not entry:
        return {}

    # Tables of one model or of one loss leave the name out.
    wanted = (entry["key"], task, loss)
    for row in read_rows(table):
        if (row.get("model"), row["task"], row.get("loss")) == wanted:
            return row
    return {}


def read_rows(table: str) -> list[dict[str, Any]]:
    """The rows of a table of the paper, as printed, one a model, task and loss; of "" none."""
    content = _content()["tables"].get(table, {"rows": []})
    return list(content["rows"])


@cache
def _content() -> dict[str, Any]:
    text = (files("smmd_bench.reports") / "paper.yaml").read_text(encoding="utf-8")
    return dict(read_yaml(text))


def find_published_beside(
    run: Run, cell: Mapping[Any, Any], table: str
) -> Mapping[str, float]:
    """The published values by metric of a cell; none where its setting is another."""
    task, _ = split_spec(str(cell["task"]))
    values = find_published(table, str(cell["model"]), task, str(cell["loss"]))

    # Most cells have no published value; only of the others the setting is worth comparing.
    if values and not describe_other_setting(run, cell):
        return values
    return {}


def describe_other_setting(run: Run, cell: Mapping[Any, Any]) -> str:
    """What of a cell (a row of `run.cells`) is not as in the paper, in a word; empty: all is."""
    return next(list_differences(run, cell), "")


def list_differences(run: Run, cell: Mapping[Any, Any]) -> Iterator[str]:
    """What of a cell is not as in the paper, a word each, the most telling first."""
    task = str(cell["task"])
    if not find_paper_model(str(cell["model"])):
        yield "other model"
    if word := describe_other_data(run, task):
        yield word

    # A metric of readable answers alone has a smaller n; the largest is that of the test set.
    sizes = select_rows(run.metrics, address=cell["address"])["n"]
    if sizes.notna().any() and _is_other_size(task, "test", int(sizes.max())):
        yield "other size"

    # The base is decoded as it is.
    if cell["loss"] != "base" and is_other_training(run, cell):
        yield "other training"


def describe_other_data(run: Run, task: str) -> str:
    """What of a task's data is not as in the paper, in a word; empty: all is."""
    name, parameters = split_spec(task)
    source = find_source(run, task)
    if source == SYNTHETIC:
        return "synthetic data"
    if {*parameters} - {"source"}:
        return "other level"

    # Of other tasks there is one source, which needs no name; pictures are drawn here by default.
    if name in _PICTURES and source == UNKNOWN:
        return "unknown data"
    return ""


def find_source(run: Run, task: str) -> str:
    """Where a task's test data is from, as the manifest says; a dash where it does not."""
    return str(_read_test_identity(run, task).get("source") or UNKNOWN)


def _read_test_identity(run: Run, task: str) -> Mapping[str, Any]:
    identity = read_data_entry(run, task).get("identity") or {}
    return identity.get("test") or {}


def is_other_training(run: Run, cell: Mapping[Any, Any]) -> bool:
    """Whether a cell was trained in another way than in the paper; not where it has no recipe.

    The paper says nothing of validation examples, so their number is free.
    """
    recipe, trained_on = cell["recipe"], cell["trained_on"]

    # A cell that is tested on another task was trained in the setting of the one that it saw.
    task = trained_on if isinstance(trained_on, str) else str(cell["task"])
    name, _ = split_spec(task)
    if not _is_in_paper(name):
        return True

    size = _count_training_examples(run, task, recipe)
    if size is not None and _is_other_size(task, "train", size):
        return True
    if recipe.get("method", "lora") != "lora":
        return True

    # What a recipe does not name is as the paper says.
    paper = paper_recipe(name)
    for setting in _STATED_SETTINGS:
        stated = getattr(paper, setting)
        if recipe.get(setting, stated) != stated:
            return True
    return False


def _is_in_paper(task_name: str) -> bool:
    for table in _content()["tables"]:
        if any(row.get("task") == task_name for row in read_rows(table)):
            return True
    return False


def _count_training_examples(
    run: Run, task: str, recipe: Mapping[str, Any]
) -> int | None:
    """How many examples a recipe trains on; None: nothing says it."""
    if not recipe:
        return None
    sizes = []
    if recipe.get("train_examples") is not None:
        sizes.append(int(recipe["train_examples"]))

    # Of a copy of the data that is larger than the paper's no more is used.
    data = read_data_entry(run, task)
    stored_sizes = data.get("there", data.get("sizes") or {})
    stored, paper_size = stored_sizes.get("train"), _paper_size(task, "train")
    if stored is not None and paper_size is not None:
        sizes.append(min(int(stored), paper_size))
    return min(sizes, default=None)


def read_data_entry(run: Run, task: str) -> Mapping[str, Any]:
    """What the manifest says of a task's data."""
    return (run.manifest.get("data") or {}).get(task) or {}


def _paper_size(task: str, split: Split) -> int | None:
    """How many examples the paper has; None: the task's plugin is not here."""
    try:
        return int(load_task(task).paper_sizes.get(split, 0)) or None
    except UserError:
        return None


def _is_other_size(task: str, split: Split, size: int) -> bool:
    paper_size = _paper_size(task, split)
    # A task without a size in the paper cannot have another one.
    if paper_size is None:
        return False
    return abs(size - paper_size) > _ROUNDING * paper_size


def add_published(
    data: pd.DataFrame, run: Run, cells: pd.DataFrame, table: str
) -> pd.DataFrame:
    """A result frame with other_setting, published and against_published (ours minus that)."""
    words = {}
    values = {}
    for cell in cells.to_dict("records"):
        address = cell["address"]
        words[address] = describe_other_setting(run, cell)
        values[address] = find_published_beside(run, cell, table)

    # A cell has a row a metric, of which the paper prints one or two.
    printed = []
    for address, metric in zip(data["address"], data["metric"], strict=True):
        printed.append(values[address].get(metric))
    published_values = pd.Series(printed, data.index, dtype="float64")

    ours = data["value"].astype("float64")
    return data.assign(
        other_setting=data["address"].map(words).astype("str"),
        published=published_values,
        against_published=ours - published_values,
    )


def describe_manifest(run: Run) -> str:
    """What the manifest reports, in a line: seeds, decoding, the paper's setting or not, data."""
    trained = run.cells[run.cells["loss"] != "base"]
    data = _describe_origins(run, trained)

    # Of completions made elsewhere the manifest knows the files, and not how they came to be.
    seeds = f"seeds {NOT_REPORTED}"
    decoding = NOT_REPORTED
    setting = NOT_REPORTED
    if "predictions" not in run.manifest:
        decoding = _describe_decoding(run)
        setting = _describe_setting(run, trained)
        if len(trained):
            seeds = name_seeds(trained)
    return f"Reported: {seeds}; decoding {decoding}; setting {setting}; data {data}."


def _describe_decoding(run: Run) -> str:
    """Whether the manifest says all of how completions were decoded, and how long they may be."""
    settings = [*(run.manifest.get("generation") or {}).values()]
    if not settings:
        return NOT_REPORTED

    # A manifest of an older version may lack some; then the line names what a reader must ask for.
    lacking = []
    for task in settings:
        lacking += [name for name in _DECODING if name not in task]
    if lacking:
        names = ", ".join(dict.fromkeys(lacking))
        return f"incomplete ({names} {NOT_REPORTED})"

    lengths = sorted({int(task["max_new_tokens"]) for task in settings})
    limit = f"at most {' or '.join(map(str, lengths))} tokens"
    rule = "greedy, " if all(task["greedy"] for task in settings) else ""
    return f"complete ({rule}{limit})"


def _describe_setting(run: Run, trained: pd.DataFrame) -> str:
    """Whether the setting is the paper's, and else in what it differs, each word once."""
    # Seeds differ in nothing else.
    cells = select_measured(trained).drop_duplicates(KEY)
    if cells.empty:
        return NOT_REPORTED

    words: list[str] = []
    for cell in cells.to_dict("records"):
        words += list_differences(run, cell)
    if not words:
        return "the paper's"
    return f"not the paper's ({', '.join(dict.fromkeys(words))})"


def _describe_origins(run: Run, trained: pd.DataFrame) -> str:
    """Whether the data is synthetic, in a word if it is so of all tasks, else task by task."""
    tasks_by_word: dict[str, list[str]] = {}
    for task in map(str, trained["task"].unique()):
        word = _describe_origin(run, task)
        tasks_by_word.setdefault(word, []).append(task)

    if len(tasks_by_word) < 2:
        return "".join(tasks_by_word)
    return " and ".join(
        f"{word} ({', '.join(tasks)})" for word, tasks in tasks_by_word.items()
    )


def _describe_origin(run: Run, task: str) -> str:
    test = _read_test_identity(run, task)
    if not test:
        return NOT_REPORTED

    # Arithmetic problems have no source to choose from: their test set names its generator.
    if test.get("source") == SYNTHETIC or "generator" in test:
        return SYNTHETIC
    return f"not {SYNTHETIC}"
