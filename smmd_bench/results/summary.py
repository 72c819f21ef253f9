"""The cells of a manifest: their order, rows, settings and files in frames, and their models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..models.cards import ModelCard, card_at, model_card
from ..plugin_system.parameters import is_tuned, parameters_of, spell, split_spec, untuned_label
from ..plugin_system.plugin_source import source_digest
from ..plugin_system.registry import Group, entry, load_loss, names, own_points, singular
from ..storage.cell import BASE, CellFile, StoredCell
from ..storage.files import read_parquet
from .opponents import WITHOUT_EFFECT

if TYPE_CHECKING:
    import pandas as pd

    from ..contracts import Run

IDENTITY = ("address", "model", "task", "loss", "seed")
"""The columns that every frame of a run starts with: which cell a row is of."""
CELL_COLUMNS = (
    "address", "model", "model_label", "task", "task_name", "loss", "loss_name", "seed", "params",
    "trained_on", "status", "stage", "error", "recipe", "sizes",
)  # fmt: skip
_VALUES = ("epoch", "value", "low", "high", "n")
TUNING_COLUMNS = ("untuned", "trial", "text", "trial_status", "metric", *_VALUES, "chosen")
"""Of `RunFrames.tuning`, after those that tell the cell."""


def summarise_cells(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The keys experiment, models, data, generation and plugins of `RunFrames.manifest`."""
    models: dict[str, Any] = {}
    data: dict[str, dict[str, Any]] = {}
    generation: dict[str, dict[str, Any]] = {}
    plugins: dict[str, list[str]] = {}
    for cell in cells:
        model, task = cell["model"], cell["task"]
        if "identity" not in cell:  # completions made elsewhere
            continue
        models[model] = cell["identity"]
        known = data.setdefault(task, {"licence": "", "sizes": {}, "there": {}, "identity": {}})
        known["licence"] = cell["data"]["licence"]
        for part in ("sizes", "there", "identity"):
            known[part] |= cell["data"][part]
        how = generation.setdefault(task, {})
        for key, value in cell["generation"].items():
            by_model = key in ("engine", "dtype", "chat_template", "pixels")
            how[key] = {**how.get(key, {}), model: value} if by_model else value
        for name, digest in cell["plugins"].items():
            plugins[name] = distinct([*plugins.get(name, ()), digest])
    own = [cell for cell in cells if cell["loss"] != BASE and not cell.get("trained_on")] or cells
    keys = {"models": "model", "tasks": "task", "losses": "loss", "seeds": "seed"}
    return {
        "experiment": {name: distinct(cell[key] for cell in own) for name, key in keys.items()},
        "models": models,
        "data": data,
        "generation": generation,
        "plugins": plugins,
    }


def distinct(values: Iterable[Any]) -> list[Any]:
    """The values without repetitions, in order; they need not be hashable."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def in_run_order(
    cells: Sequence[dict[str, Any]], manifest: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The cells by model, task, loss and seed.

    Models, tasks and losses stand as the manifest lists them, then those that it does not list;
    among the losses the untuned base comes first and `ce` second (but the labels of `smmd-bench
    score` stand as they were given).
    """
    asked = manifest.get("experiment") or {}
    first = [] if "predictions" in manifest else [BASE, "ce"]
    groups = {"model": "models", "task": "tasks", "loss": "losses"}
    ranks = {
        key: distinct(
            [*first * (key == "loss"), *asked.get(group, ()), *(cell[key] for cell in cells)]
        )
        for key, group in groups.items()
    }
    return sorted(
        cells, key=lambda c: (*(ranks[key].index(c[key]) for key in ranks), int(c["seed"]))
    )


def cell_row(content: Mapping[str, Any], cell: StoredCell) -> dict[str, Any]:
    """The row of a cell, from what a manifest says of it."""
    return {
        **{column: content.get(column) for column in CELL_COLUMNS},
        "model_label": content.get("model_label") or content["model"],
        "recipe": content.get("recipe") or {},
        "sizes": (content.get("data") or {}).get("sizes", {}),
        "status": _status(cell, done=cell.metrics is not None),
        "stage": cell.failure.get("stage"),
        "error": cell.failure.get("error"),
    }


def with_settings(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with a column for each parameter that a loss of the run names, such as `lambda`,
    and for each setting of the recipe in which they differ.

    A parameter that a spec leaves out has its default, where the loss can be loaded; of a tuned
    loss it is missing, as its seeds may choose different ones. The base has no recipe.
    """
    import pandas as pd

    losses = {loss: split_spec(loss) for loss in cells["loss"].unique() if not is_tuned(loss)}
    columns: dict[str, dict[str, str | None]] = {}
    for name, key in distinct((n, k) for n, own in losses.values() for k in own if k not in cells):
        values = {spec: own.get(key) for spec, (known, own) in losses.items() if known == name}
        default = _default(name, key) if None in values.values() else None
        columns.setdefault(key, {}).update({s: v or default for s, v in values.items()})
    losses_of_cells, found = cells["loss"].astype("object"), {}
    for name, known in columns.items():
        found[name] = losses_of_cells.map(known).astype("float64", errors="ignore")
    trained = cells["loss"] != BASE
    recipes = pd.DataFrame([*cells["recipe"].where(trained, {})], cells.index)
    for name in recipes.columns.difference([*cells, *found, *WITHOUT_EFFECT], sort=False):
        if recipes.loc[trained, name].astype("str").nunique() > 1:
            found[name] = recipes[name]
    return cells.assign(**found)


def _default(loss: str, parameter: str) -> str | None:
    """As people write it; None: the plugin of the loss is not here."""
    try:
        known = parameters_of(type(load_loss(loss)))
    except UserError:
        return None
    return spell(known[parameter].default) if parameter in known else None


def tuning_rows(content: Mapping[str, Any], now: StoredCell) -> Iterator[dict[str, Any]]:
    """One row a configuration of a tuned cell, in the order of its grid; none of another cell.

    `untuned` is the loss as it was published, `trial` the address of the trial and `text` what it
    sets. metric, epoch, value, low, high and n say how it validated, at its selected epoch; they
    are missing, and nothing is `chosen`, until all trials of the cell are validated.
    """
    choice = now.choice or {}
    validated = {line["address"]: line for line in choice.get("trials", ())}
    for at, (point, trial) in enumerate(zip(content.get("grid") or (), now.trials, strict=False)):
        line = validated.get(trial.address, {})
        yield {
            "untuned": untuned_label(str(content["loss"])),
            "trial": trial.address,
            "text": point["text"],
            "trial_status": _status(trial, done=trial.tested is not None),
            "metric": choice.get("metric"),
            **{name: line.get(name) for name in _VALUES},
            "chosen": at == choice.get("chosen"),
        }


def _status(cell: StoredCell, *, done: bool) -> str:
    if done:
        return "done"
    if cell.failure:
        return "skipped" if cell.failure.get("skipped") else "failed"
    return "pending"


def again(run: Path) -> str:
    """How to have the weights of a measured cell back."""
    return f"the command of {run} with --restore-weights trains them again"


def card_of_run(name: str, run: Run) -> ModelCard:
    """The model of the run. Raises UserError if its weights have changed since."""
    then = (run.manifest.get("models") or {}).get(name)
    if then is None:
        return model_card(name)
    cells = [cell for cell in run.manifest.get("cells") or () if cell["model"] == name]
    own = next((cell["model_path"] for cell in cells if cell.get("model_path")), None)
    card = model_card(f"{then['hub']}@{then['commit']}") if "hub" in then else card_at(name, own)
    if dict(card.identity) == then:
        return replace(card, name=name)
    raise UserError(
        f"The model {name} in {card.folder} has changed since {run.path} was made: put the old "
        "files back there, or train again into another run."
    )


def columns_of(cell: StoredCell, file: CellFile, columns: Sequence[str] | None = None) -> Any:
    """An Arrow table of those of the columns that the file has (None: all), dictionaries as plain
    values, so that tables of any cells concatenate."""
    import pyarrow as pa

    place = cell.place(file)
    assert place is not None
    table = read_parquet(place, columns, without=("vector",))  # asked for by name alone
    plain = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(plain))


def concatenated(cells: pd.DataFrame, tables: Sequence[Any]) -> pd.DataFrame:
    """One frame of the tables, one a cell, led by the identity of each row's cell.

    A column of the tables with the name of an identity column gets the suffix `_value`: the
    training log's `loss` is `loss_value`.
    """
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    identities, addresses = cells[[*IDENTITY]], cells["address"]
    if not tables:
        return identities.iloc[:0].reset_index(drop=True)
    data = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    lead = identities.assign(address=pd.Categorical(addresses, addresses.unique()))
    rows = np.repeat(range(len(tables)), [table.num_rows for table in tables])
    data = data.rename(columns={name: f"{name}_value" for name in IDENTITY})
    joined: pd.DataFrame = pd.concat([lead.iloc[rows].reset_index(drop=True), data], axis=1)
    return joined


def require_plugins(run: Run) -> None:
    """Raise UserError where the run was made with a task or loss that is not here."""
    cells = run.manifest.get("cells") or ()
    lacking = {cell["task_name"] for cell in cells} - {*names("tasks")}
    if "predictions" not in run.manifest:
        lacking |= {cell["loss_name"] for cell in cells} - {BASE, *names("losses")}
    if lacking:
        raise UserError(
            f"{run.path} was made with plugins that are not here ({', '.join(sorted(lacking))}): "
            f"name their files with --plugin; {run.path / 'plugins'} has copies."
        )


def describe_old_code(run: Run) -> list[str]:
    """A note for each plugin whose code has changed since cells of the run were made with it."""
    digests_then: dict[tuple[Group, str], set[str | None]] = {}
    for cell in run.manifest.get("cells") or ():
        if "plugins" not in cell:  # completions made elsewhere
            continue
        engine, _ = split_spec(cell["engine"])
        used: dict[Group, str] = {"tasks": cell["task_name"], "losses": cell["loss_name"]}
        used["engines"] = engine
        for group, name in used.items():
            digest = cell["plugins"].get(f"{singular(group)} {name}")
            digests_then.setdefault((group, name), set()).add(digest)

    return [
        f"The code of the {singular(group)} {name} is another one than that of the run: its "
        "numbers are of the old code until the run's command makes them again."
        for (group, name), digests in digests_then.items()
        if name in names(group) and digests != {_digest_here(group, name)}
    ]


def _digest_here(group: Group, name: str) -> str | None:
    if name in own_points(group):  # not imported: torch takes seconds
        return None
    plugin = entry(group, name).plugin
    return None if plugin is None else source_digest(plugin)
