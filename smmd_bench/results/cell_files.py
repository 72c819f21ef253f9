"""The Parquet files of cells as one frame: read by column, joined by row, identified by cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..storage.cell import StoredCell
from ..storage.files import read_parquet

if TYPE_CHECKING:
    import pandas as pd

HEAVY = ("vector",)
"""Columns that are read only when they are asked for by name."""


def columns_of(path: Path | None, columns: Sequence[str] | None) -> Any | None:
    """An Arrow table of those of the columns that the file has; None where there is no file."""
    if path is None or not path.is_file():
        return None
    return read_parquet(path, columns, without=HEAVY).replace_schema_metadata(None)


def completions_with_scores(cell: StoredCell) -> Any | None:
    """A cell's completions and, row by row, the columns of its scores that they lack."""
    completions = columns_of(cell.place("completions"), None)
    scores = columns_of(cell.place("scores"), None)
    if completions is None or scores is None:
        return None
    if not completions["uid"].equals(scores["uid"]):
        import pyarrow as pa

        rows = {uid: at for at, uid in enumerate(scores["uid"].to_pylist())}
        uids = completions["uid"].to_pylist()
        completions = completions.filter(pa.array([uid in rows for uid in uids]))
        scores = scores.take(pa.array([rows[uid] for uid in uids if uid in rows], pa.int64()))
    for name in scores.column_names:
        if name not in completions.column_names:
            completions = completions.append_column(name, scores[name])
    return completions


def concatenated(identities: pd.DataFrame, tables: Sequence[Any | None]) -> pd.DataFrame:
    """One frame of the tables (None: the cell has none), led by the identity of each row's cell.

    `identities` has one row a table. A column of the tables with the name of an identity column
    gets the suffix `_value`: the training log's `loss` is `loss_value`.
    """
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    present = [at for at, table in enumerate(tables) if table is not None]
    if not present:
        return identities.iloc[:0].reset_index(drop=True)
    found = [_plain(tables[at]) for at in present]
    data: pd.DataFrame = pa.concat_tables(found, promote_options="permissive").to_pandas()
    repeated = np.repeat(np.array(present), [table.num_rows for table in found])
    lead: dict[str, Any] = {}
    for name in identities.columns:
        values = identities[name]
        if name == "address":
            values = pd.Series(pd.Categorical(values, categories=values.unique()))
        if isinstance(values.dtype, pd.CategoricalDtype):
            codes = values.cat.codes.to_numpy()[repeated]
            lead[name] = pd.Categorical.from_codes(codes, dtype=values.dtype, validate=False)
        else:
            lead[name] = values.to_numpy()[repeated]
    columns = {f"{name}_value" if name in lead else name: data[name] for name in data.columns}
    return pd.DataFrame({**lead, **columns}, copy=False)


def _plain(table: Any) -> Any:
    """The table with dictionary columns as plain ones, so that tables of any cells concatenate."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = table.column(at).cast(field.type.value_type)
            table = table.set_column(at, field.name, plain)
    return table
