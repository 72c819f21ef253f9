"""What a manifest, and the request of a job, say of a cell."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..experiment.cell import Cell
from ..experiment.tuning import Configuration
from ..models.recipe import Recipe, recipe_content
from ..plugin_system.checked_task import take_identity
from ..plugin_system.plugin_source import source_digest
from ..plugin_system.registry import Group, engine_identity, load_engine, package_of, singular


def cell_to_json(cell: Cell) -> dict[str, Any]:
    """What a worker needs to make the cell again, and a reader to find its folders."""
    grid = [{**point._asdict(), "settings": dict(point.settings)} for point in cell.grid]
    return {
        **_folders(cell),
        "model": cell.model,
        "model_label": cell.card.label,
        **({} if cell.card.place is None else {"model_path": cell.card.place}),
        "params": cell.card.parameter_count(),
        "task": cell.task_label,
        **({} if cell.task == cell.task_label else {"task_spec": cell.task}),
        "task_name": cell.task_plugin.name,
        "trained_on": cell.trained_on,
        "loss": cell.loss,
        "loss_name": cell.loss.partition("[")[0],
        "seed": cell.seed,
        "data_seed": cell.data_seed,
        "engine": cell.engine,
        **({} if cell.engine_note is None else {"engine_note": cell.engine_note}),
        "recipe": recipe_content(cell.recipe),
        **({"grid": grid} if grid else {}),
        **({} if cell.trial is None else {"trial": cell.trial}),
        **({"decoders": list(cell.decoders)} if cell.decoders else {}),
    }


def _folders(cell: Cell) -> dict[str, Any]:
    """What `storage.cell.stored_cell` reads."""
    said: dict[str, Any] = {"address": cell.address, "parts": cell.parts}
    if cell.source is not None:
        said["source"] = _folders(cell.source)
    if cell.trials:
        said["trials"] = [_folders(trial) for trial in cell.trials]
    return said


def cell_from_json(content: Mapping[str, Any]) -> Cell:
    """The cell that a request or a manifest describes."""
    same = ("model", "loss", "seed", "data_seed", "engine", "trained_on")
    points = content.get("grid") or ()
    grid = (Configuration(p["text"], p["loss"], (*p["settings"].items(),)) for p in points)
    return Cell(
        task=content.get("task_spec", content["task"]),
        recipe=Recipe().changed(content["recipe"]),
        grid=tuple(grid),
        trial=content.get("trial"),
        model_path=content.get("model_path"),
        decoders=tuple(content.get("decoders") or ()),
        **{key: content[key] for key in same},
    )


def describe_cells(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """What a manifest says of each cell; data is looked at once a task and size."""
    data: dict[tuple[Any, ...], dict[str, Any]] = {}
    found = []
    for cell in cells:
        key = (cell.task, cell.data_seed, *((split, cell.size(split)) for split in cell.splits))
        if key not in data:
            data[key] = _data(cell)
        found.append(
            {
                **cell_to_json(cell),
                "identity": dict(cell.card.identity),
                "data": data[key],
                "generation": _generation(cell),
                **_outside_plugins(cell),
            }
        )
    return found


def _data(cell: Cell) -> dict[str, Any]:
    """Licence and identity of the splits, what a cell uses of them, and what the copy has."""
    there = {split: cell.rows_there(split) for split in cell.splits}
    return {
        "licence": getattr(cell.task_plugin, "licence", "not stated"),
        "sizes": {split: cell.examples_there(split) for split in cell.splits},
        "there": {split: size for split, size in there.items() if size is not None},
        "identity": {s: take_identity(cell.task_plugin, s, cell.data_seed) for s in cell.splits},
    }


def _generation(cell: Cell) -> dict[str, Any]:
    """How a cell's completions are decoded."""
    pixels = {"pixels": [cell.recipe.min_pixels, cell.recipe.max_pixels]}
    return {
        "greedy": True,
        "max_new_tokens": cell.task_plugin.max_new_tokens,
        "stop": "end-of-sequence tokens of the tokenizer and of generation_config.json",
        "engine": dict(engine_identity(cell.engine)),
        "dtype": cell.recipe.dtype,
        "chat_template": cell.recipe.chat_template,
        **(pixels if cell.reads_images else {}),
    }


def _outside_plugins(cell: Cell) -> dict[str, dict[str, str]]:
    """The plugins that are not first-party, such as `loss huber`: the digest of the source, and the
    version of the package that an installed one comes from."""
    used: dict[Group, Any] = {"tasks": cell.task_plugin, "engines": load_engine(cell.engine)}
    if not cell.is_base:
        used["losses"] = cell.loss_plugin

    digests: dict[str, str] = {}
    packages: dict[str, str] = {}
    for group, plugin in used.items():
        label = f"{singular(group)} {plugin.name}"
        if (digest := source_digest(type(plugin))) is not None:
            digests[label] = digest
        if (package := package_of(group, plugin.name)) is not None:
            packages[label] = package
    return {"plugins": digests, **({"packages": packages} if packages else {})}
