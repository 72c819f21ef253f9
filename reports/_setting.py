"""Whether a cell's setting is the paper's: only then do published values stand beside its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from smmd_bench.contracts import Run, Split, UserError
from smmd_bench.models.recipe import paper_recipe
from smmd_bench.plugin_system.parameters import split_spec
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.publishing.style import model_label
from smmd_bench.publishing.tables import DASH

from ._paper import is_paper_task, paper_model, published

SYNTHETIC, UNKNOWN = "synthetic", DASH
PICTURES = ("clock_time", "chartqa")
"""Tasks of the paper that are made here where no source is named."""
GIVEN = ("epochs", "learning_rate", "weight_decay", "warmup_ratio", "lora_rank")
"""What the paper says of its training, besides that it is LoRA; the rest is chosen here."""
ROUNDING = 0.01
"""The paper rounds its sizes; so far apart they count as the same."""
OWN = "a task that is not in the paper"
SMALL = 1000
"""Fewer test examples than this, and than half of the paper's, are a path check."""


def data_source(run: Run, task: str) -> str:
    """Where a task's test data is from, as the manifest says; a dash where it does not."""
    test = (_data(run, task).get("identity") or {}).get("test") or {}
    return str(test.get("source") or UNKNOWN)


def _data(run: Run, task: str) -> Mapping[str, Any]:
    return (run.manifest.get("data") or {}).get(task) or {}


def papers_task(task: str, source: str) -> str | None:
    """A task as the paper's tables name it; None: another level or format, or not its data.

    `source` is what `data_source` says. A spec that only names its source is the paper's task.
    """
    name, parameters = split_spec(task)
    if source == SYNTHETIC or (name in PICTURES and source == UNKNOWN):
        return None
    return name if set(parameters) <= {"source"} else None


def published_beside(run: Run, cell: Mapping[Any, Any], table: str) -> Mapping[str, float]:
    """The published values by metric of a cell; none where its setting is another."""
    task = papers_task(str(cell["task"]), data_source(run, str(cell["task"])))
    if task is None:
        return {}
    found = published(table, model=str(cell["model"]), task=task, loss=str(cell["loss"]))
    return {} if found and any(other_setting(run, cell)) else found


def setting_note(run: Run, cells: pd.DataFrame) -> str:
    """A sentence on the models and tasks in another setting than the paper's; empty: none is.

    The paper is not named for tasks of one's own.
    """
    cells = cells[cells["task_name"].map(is_paper_task).astype("bool")]
    models = cells.groupby("task", observed=True)["model"].nunique().to_dict()
    named: dict[str, list[str]] = {}
    for (model, task), group in cells.groupby(["model", "task"], observed=True):
        trained = group[group["loss"] != "base"]
        records = (group if trained.empty else trained).to_dict("records")
        found = dict.fromkeys(why for cell in records for why in other_setting(run, cell))
        name = f"{task} with {model_label(str(model))}" if models[task] > 1 else str(task)
        named.setdefault(", ".join(found), []).append(name)
    texts = [f"{' and '.join(names)}: {why}" for why, names in named.items() if why]
    return f"No published values for {'; '.join(texts)}." if texts else ""


def setting_label(run: Run, cell: Mapping[Any, Any]) -> str:
    """The first thing of a cell that is not as in the paper, as a table's cell says it; empty: all
    is."""
    task = str(cell["task"])
    source = data_source(run, task)
    if paper_model(str(cell["model"])) is None:
        return "other model"
    if source == SYNTHETIC:
        return "synthetic data"
    if papers_task(task, source) is None:
        return "other level" if set(split_spec(task)[1]) - {"source"} else "unknown data"
    sizes = run.metrics.loc[run.metrics["address"] == cell["address"], "n"]
    if sizes.notna().any() and any(_other_size(task, "test", int(sizes.max()))):
        return "other size"
    trained = cell["loss"] != "base" and any(other_training(run, cell))
    return "other training" if trained else ""


def other_setting(run: Run, cell: Mapping[Any, Any]) -> Iterator[str]:
    """What of a cell (a row of `run.cells`) is not as in the paper, each in a few words."""
    task = str(cell["task"])
    source = data_source(run, task)
    if paper_model(str(cell["model"])) is None:
        yield "a model that is not in the paper"
    if not is_paper_task(split_spec(task)[0]):
        yield OWN
        return
    if source == SYNTHETIC:
        yield "synthetic data"
    elif papers_task(task, source) is None:
        only_source = set(split_spec(task)[1]) <= {"source"}
        yield "data of unknown source" if only_source else "another level or format of the task"
    sizes = run.metrics.loc[run.metrics["address"] == cell["address"], "n"]
    if sizes.notna().any():
        yield from _other_size(task, "test", int(sizes.max()))
    if cell["loss"] != "base":
        yield from other_training(run, cell)


def other_training(run: Run, cell: Mapping[Any, Any]) -> Iterator[str]:
    """What of a cell's training is not as in the paper; nothing where there is no recipe.

    The paper says nothing of validation examples, so their number is free.
    """
    recipe, trained_on = cell["recipe"], cell["trained_on"]
    task = trained_on if isinstance(trained_on, str) else str(cell["task"])
    if not is_paper_task(split_spec(task)[0]):
        yield OWN
        return
    sizes = (recipe.get("train_examples"), _there(run, task) if recipe else None)
    if known := [int(size) for size in sizes if size is not None]:
        yield from _other_size(task, "train", min(known))
    if recipe.get("method", "lora") != "lora":
        yield "full fine-tuning instead of LoRA"
    paper = paper_recipe(split_spec(task)[0])
    for name in GIVEN:
        theirs = getattr(paper, name)
        if recipe.get(name, theirs) != theirs:
            yield f"{name.replace('_', ' ')} {recipe[name]:g} instead of {theirs:g}"


def _there(run: Run, task: str) -> int | None:
    """How many training examples of a task a cell can have had, by the manifest; None: any number.

    Of a copy larger than the paper's no more is used. An earlier version's manifest says only how
    many examples its last cell used.
    """
    data = _data(run, task)
    size = data.get("there", data.get("sizes") or {}).get("train")
    paper = _paper_size(task, "train")
    return None if size is None or paper is None else min(int(size), paper)


def _paper_size(task: str, split: Split) -> int | None:
    """How many examples the paper has; None: the task's plugin is not here."""
    try:
        return int(load_task(task).paper_sizes.get(split, 0)) or None
    except UserError:
        return None


def _other_size(task: str, split: Split, size: int) -> Iterator[str]:
    """How many examples there were, where that is not what the paper has."""
    paper = _paper_size(task, split)
    if paper is None or abs(size - paper) <= ROUNDING * paper:
        return
    of = "of" if size < paper else "instead of"
    yield (
        f"{size:,} {of} {paper:,} {'training' if split == 'train' else split} examples"
        + " (a path check on a small subset)" * (split == "test" and size < min(SMALL, paper / 2))
    )
