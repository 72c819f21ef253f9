"""From a cell to its record, which manifests and requests of jobs hold, and back."""

from collections.abc import Sequence
from typing import Any

from ..experiment.cell import Cell
from ..experiment.tuning import Configuration
from ..models.recipe import Recipe, recipe_content
from ..plugin_system.checked_task import take_identity
from ..plugin_system.plugin_source import source_digest
from ..plugin_system.registry import (
    Group,
    engine_identity,
    load_engine,
    package_of,
    singular,
)
from ..storage.cell import CellRecord, FolderRecord, StoredCell


def cell_to_json(cell: Cell) -> CellRecord:
    """Describe what a worker needs to make the cell again, and a reader to find its folders."""
    record: CellRecord = {
        "address": cell.address,
        "parts": cell.parts,
        "model": cell.model,
        "model_label": cell.card.label,
        "params": cell.card.parameter_count(),
        "task": cell.task_label,
        "task_name": cell.task_plugin.name,
        "trained_on": cell.trained_on,
        "loss": cell.loss,
        "loss_name": cell.loss.partition("[")[0],
        "seed": cell.seed,
        "data_seed": cell.data_seed,
        "engine": cell.engine,
        # Whole, so that a default that changes later changes no cell of this manifest.
        "recipe": recipe_content(cell.recipe),
    }
    _add_family(record, cell)

    # What is as usual is left out, so that manifests of then and now are the same.
    if cell.card.place is not None:
        record["model_path"] = cell.card.place
    if cell.task != cell.task_label:
        record["task_spec"] = cell.task
    if cell.engine_note is not None:
        record["engine_note"] = cell.engine_note
    if cell.grid:
        record["grid"] = [
            {**point._asdict(), "settings": dict(point.settings)} for point in cell.grid
        ]

    if cell.trial is not None:
        record["trial"] = cell.trial
    if cell.decoders:
        record["decoders"] = list(cell.decoders)
    return record


def _add_family(record: FolderRecord, cell: Cell) -> None:
    """Add the folders of the source and the trials, whose weights the cell may test."""
    if cell.source is not None:
        record["source"] = _describe_folders(cell.source)
    if cell.trials:
        record["trials"] = [_describe_folders(trial) for trial in cell.trials]


def _describe_folders(cell: Cell) -> FolderRecord:
    record: FolderRecord = {"address": cell.address, "parts": cell.parts}
    _add_family(record, cell)
    return record


def cell_from_json(content: CellRecord) -> Cell:
    """Make the cell that a record describes."""
    grid = []
    for point in content.get("grid") or ():
        settings = (*point["settings"].items(),)
        grid.append(Configuration(point["text"], point["loss"], settings))

    return Cell(
        model=content["model"],
        task=content.get("task_spec", content["task"]),
        loss=content["loss"],
        seed=content["seed"],
        data_seed=content["data_seed"],
        recipe=Recipe().changed(content["recipe"]),
        engine=content["engine"],
        trained_on=content["trained_on"],
        grid=tuple(grid),
        trial=content.get("trial"),
        model_path=content.get("model_path"),
        decoders=tuple(content.get("decoders") or ()),
    )


def describe_cells(cells: Sequence[Cell]) -> list[CellRecord]:
    """Describe cells for a manifest, with what they were made from."""
    data_of: dict[tuple[Any, ...], dict[str, Any]] = {}
    records = []
    for cell in cells:
        # Data is looked at once a task and size: it may have to be generated.
        sizes = [(split, cell.size(split)) for split in cell.splits]
        key = (cell.task, cell.data_seed, *sizes)
        if key not in data_of:
            data_of[key] = _describe_data(cell)

        record = cell_to_json(cell)
        record["identity"] = dict(cell.card.identity)
        record["data"] = data_of[key]
        record["generation"] = _describe_generation(cell)
        _add_outside_plugins(record, cell)
        records.append(record)

    return records


def _describe_data(cell: Cell) -> dict[str, Any]:
    """Describe licence and splits, what a cell uses of them, and what the copy has."""
    # Generated examples have no end, and so no number of rows.
    rows = {split: cell.rows_there(split) for split in cell.splits}
    return {
        "licence": getattr(cell.task_plugin, "licence", "not stated"),
        "sizes": {split: cell.examples_there(split) for split in cell.splits},
        "there": {split: size for split, size in rows.items() if size is not None},
        "identity": {
            s: take_identity(cell.task_plugin, s, cell.data_seed) for s in cell.splits
        },
    }


def _describe_generation(cell: Cell) -> dict[str, Any]:
    """Describe how a cell's completions are decoded."""
    generation = {
        "greedy": True,
        "max_new_tokens": cell.task_plugin.max_new_tokens,
        "stop": "end-of-sequence tokens of the tokenizer and of generation_config.json",
        "engine": dict(engine_identity(cell.engine)),
        "dtype": cell.recipe.dtype,
        "chat_template": cell.recipe.chat_template,
    }
    # Limits on pixels change what the model sees of a picture, and so its answers.
    if cell.reads_images:
        generation["pixels"] = [cell.recipe.min_pixels, cell.recipe.max_pixels]
    return generation


def _add_outside_plugins(record: CellRecord, cell: Cell) -> None:
    """Add the plugins that are not first-party, such as `loss huber`: the digest of the source, and
    the version of the package that an installed one comes from."""
    plugins: dict[Group, Any] = {
        "tasks": cell.task_plugin,
        "engines": load_engine(cell.engine),
    }
    # The base is trained with no loss.
    if not cell.is_base:
        plugins["losses"] = cell.loss_plugin

    record["plugins"] = {}
    packages = {}
    for group, plugin in plugins.items():
        label = f"{singular(group)} {plugin.name}"
        digest = source_digest(type(plugin))
        if digest is not None:
            record["plugins"][label] = digest
        package = package_of(group, plugin.name)
        if package is not None:
            packages[label] = package

    if packages:
        record["packages"] = packages


def name_folders(cell: StoredCell) -> dict[str, str]:
    """Name the folders of a cell within its run by stage, such as {"measure": "measure/3f2a"}, as
    far as they are known; of a cell that trains nothing also those that its weights come from."""
    cells = [cell] if cell.home is None else [cell.home, cell]
    named = {}
    for one in cells:
        for folder in one.folders:
            named[folder.parent.name] = folder.relative_to(cell.run).as_posix()
    return named
