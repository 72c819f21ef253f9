"""The cells of a manifest: their order, rows, settings and files in frames, and their models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..plugin_system.parameters import (
    is_tuned,
    parameters_of,
    spell,
    split_spec,
    untuned_label,
)
from ..plugin_system.registry import load_loss
from ..storage.cell import BASE, CellFile, CellRecord, StoredCell
from ..storage.files import read_parquet
from .baselines import WITHOUT_EFFECT

if TYPE_CHECKING:
    import pandas as pd


IDENTITY = ("address", "model", "task", "loss", "seed")
"""The columns that every frame of a run starts with: which cell a row is of."""
CELL_COLUMNS = (
    "address", "model", "model_label", "task", "task_name", "loss", "loss_name", "seed", "params",
    "trained_on", "status", "stage", "error", "recipe", "sizes",
)  # fmt: skip
_VALUES = ("epoch", "value", "low", "high", "n")
TUNING_COLUMNS = (
    "untuned",
    "trial",
    "text",
    "trial_status",
    "metric",
    *_VALUES,
    "chosen",
)
"""Of `RunFrames.tuning`, after those that tell the cell."""


def summarise_cells(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Collect experiment, models, data, generation and plugins for `RunFrames.manifest`."""
    models = {}
    data: dict[str, dict[str, Any]] = {}
    generation: dict[str, dict[str, Any]] = {}
    plugins: dict[str, list[str]] = {}
    for cell in cells:
        if "identity" not in cell:  # completions made elsewhere
            continue
        models[cell["model"]] = cell["identity"]
        _add_data(data, cell)
        _add_generation(generation, cell)
        for name, digest in cell["plugins"].items():
            plugins[name] = distinct([*plugins.get(name, ()), digest])
    return {
        "experiment": _summarise_experiment(cells),
        "models": models,
        "data": data,
        "generation": generation,
        "plugins": plugins,
    }


def _summarise_experiment(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    # The base and tests of transfer go with the cells that were asked for.
    counted = []
    for cell in cells:
        if cell["loss"] != BASE and not cell.get("trained_on"):
            counted.append(cell)
    keys = {"models": "model", "tasks": "task", "losses": "loss", "seeds": "seed"}
    experiment = {}
    for name, key in keys.items():
        experiment[name] = distinct(cell[key] for cell in counted or cells)
    return experiment


def _add_data(data: dict[str, dict[str, Any]], cell: Mapping[str, Any]) -> None:
    """Add the splits of a cell to those of its task; the base, say, has no training data."""
    empty: dict[str, Any] = {"licence": "", "sizes": {}, "there": {}, "identity": {}}
    of_task = data.setdefault(cell["task"], empty)
    of_task["licence"] = cell["data"]["licence"]
    for key in ("sizes", "there", "identity"):
        of_task[key] |= cell["data"][key]


def _add_generation(
    generation: dict[str, dict[str, Any]], cell: Mapping[str, Any]
) -> None:
    """Add how the answers of a cell were generated; what a model decides is told for each."""
    of_task = generation.setdefault(cell["task"], {})
    for key, value in cell["generation"].items():
        if key in ("engine", "dtype", "chat_template", "pixels"):
            of_task[key] = {**of_task.get(key, {}), cell["model"]: value}
        else:
            of_task[key] = value


def distinct(values: Iterable[Any]) -> list[Any]:
    """Drop repetitions; the values keep their order and need not be hashable."""
    different = []
    for value in values:
        if value not in different:
            different.append(value)
    return different


def sort_cells(
    cells: Sequence[dict[str, Any]], manifest: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Sort cells by model, task, loss and seed.

    Models, tasks and losses stand as the manifest lists them, then those that it does not list;
    among the losses the untuned base comes first and `ce` second (but the labels of `smmd-bench
    score` stand as they were given).
    """
    experiment = manifest.get("experiment") or {}
    models = [*experiment.get("models", ())]
    tasks = [*experiment.get("tasks", ())]
    losses = [*experiment.get("losses", ())]
    if "predictions" not in manifest:
        losses = [BASE, "ce", *losses]

    # What the manifest does not list comes in the order of its first cell.
    for cell in cells:
        models.append(cell["model"])
        tasks.append(cell["task"])
        losses.append(cell["loss"])

    def rank(cell: dict[str, Any]) -> tuple[int, int, int, int]:
        model = models.index(cell["model"])
        task = tasks.index(cell["task"])
        return model, task, losses.index(cell["loss"]), int(cell["seed"])

    return sorted(cells, key=rank)


def cell_row(content: CellRecord, cell: StoredCell) -> dict[str, Any]:
    """Make the row of a cell, from what a manifest says of it."""
    # Completions made elsewhere have neither a recipe nor data of ours.
    return {
        **{column: content.get(column) for column in CELL_COLUMNS},
        "model_label": content.get("model_label") or content["model"],
        "recipe": content.get("recipe") or {},
        "sizes": (content.get("data") or {}).get("sizes", {}),
        "status": _describe_status(cell, done=cell.metrics is not None),
        "stage": cell.failure.get("stage"),
        "error": cell.failure.get("error"),
    }


def add_settings(cells: pd.DataFrame) -> pd.DataFrame:
    """Add a column for each parameter that a loss of the run names, such as `lambda`,
    and for each setting of the recipe in which they differ.

    A parameter that a spec leaves out has its default, where the loss can be loaded; of a tuned
    loss it is missing, as its seeds may choose different ones. The base has no recipe.
    """
    import pandas as pd

    columns = {}
    losses_of_cells = cells["loss"].astype("object")
    for parameter, values in _collect_parameters(cells).items():
        column = losses_of_cells.map(values)
        columns[parameter] = column.astype("float64", errors="ignore")

    is_trained = cells["loss"] != BASE
    recipes = pd.DataFrame([*cells["recipe"].where(is_trained, {})], cells.index)
    # A parameter of a loss may be called as a setting; what changes no score splits no rows.
    present = [*cells, *columns, *WITHOUT_EFFECT]
    for setting in recipes.columns.difference(present, sort=False):
        # As text, since a setting may be a list.
        if recipes.loc[is_trained, setting].astype("str").nunique() > 1:
            columns[setting] = recipes[setting]
    return cells.assign(**columns)


def _collect_parameters(cells: pd.DataFrame) -> dict[str, dict[str, str | None]]:
    """Collect, by parameter that a loss of the run names, its value in each spec of that loss."""
    specs = {}
    for spec in cells["loss"].unique():
        if not is_tuned(spec):
            specs[spec] = split_spec(spec)

    columns: dict[str, dict[str, str | None]] = {}
    for loss, named in specs.values():
        for parameter in named:
            if parameter in cells:
                continue
            # Two losses may call a parameter alike: its column has the values of both.
            column = columns.setdefault(parameter, {})
            for spec, (name, values) in specs.items():
                if name == loss and spec not in column:
                    value = values.get(parameter)
                    column[spec] = value or _read_default(loss, parameter)
    return columns


def _read_default(loss: str, parameter: str) -> str | None:
    """Read a default as people write it; None: the plugin of the loss is not here."""
    try:
        parameters = parameters_of(type(load_loss(loss)))
    except UserError:
        return None
    return spell(parameters[parameter].default) if parameter in parameters else None


def tuning_rows(
    content: Mapping[str, Any], now: StoredCell
) -> Iterator[dict[str, Any]]:
    """Yield a row a configuration of a tuned cell, in the order of its grid; none of another cell.

    `untuned` is the loss as it was published, `trial` the address of the trial and `text` what it
    sets. metric, epoch, value, low, high and n say how it validated, at its selected epoch; they
    are missing, and nothing is `chosen`, until all trials of the cell are validated.
    """
    choice = now.choice or {}
    validated = {line["address"]: line for line in choice.get("trials", ())}
    untuned = untuned_label(str(content["loss"]))
    points = zip(content.get("grid") or (), now.trials, strict=False)
    for place, (point, trial) in enumerate(points):
        # Nothing is known of the trials of a cell that has not chosen yet.
        line = validated.get(trial.address, {})
        status = _describe_status(trial, done=trial.tested is not None)
        yield {
            "untuned": untuned,
            "trial": trial.address,
            "text": point["text"],
            "trial_status": status,
            "metric": choice.get("metric"),
            **{name: line.get(name) for name in _VALUES},
            "chosen": place == choice.get("chosen"),
        }


def _describe_status(cell: StoredCell, *, done: bool) -> str:
    if done:
        return "done"
    if cell.failure:
        return "skipped" if cell.failure.get("skipped") else "failed"
    return "pending"


def columns_of(
    cell: StoredCell, file: CellFile, columns: Sequence[str] | None = None
) -> Any:
    """Read those of the columns that the file has (None: all) as an Arrow table, dictionaries as
    plain values, so that tables of any cells concatenate."""
    import pyarrow as pa

    # Callers choose cells that have the file, as `RunFrames.having` does.
    place = cell.place(file)
    assert place is not None
    # A probe's vector has a value a numeric token: it is read where it is asked for by name.
    table = read_parquet(place, columns, without=("vector",))
    fields = []
    for field in table.schema:
        if pa.types.is_dictionary(field.type):
            field = field.with_type(field.type.value_type)
        fields.append(field)
    return table.cast(pa.schema(fields))


def concatenate(cells: pd.DataFrame, tables: Sequence[Any]) -> pd.DataFrame:
    """Join the tables, one a cell, into a frame, led by the identity of each row's cell.

    A column of the tables with the name of an identity column gets the suffix `_value`: the
    training log's `loss` is `loss_value`.
    """
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    identities = cells[[*IDENTITY]]
    if not tables:
        return identities.iloc[:0].reset_index(drop=True)

    data = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    data = data.rename(columns={name: f"{name}_value" for name in IDENTITY})

    # An address as text in each of a million rows would take more memory than the rest.
    addresses = cells["address"]
    identities = identities.assign(
        address=pd.Categorical(addresses, addresses.unique())
    )
    cell_of_row = np.repeat(range(len(tables)), [table.num_rows for table in tables])
    identities = identities.iloc[cell_of_row].reset_index(drop=True)
    joined: pd.DataFrame = pd.concat([identities, data], axis=1)
    return joined
