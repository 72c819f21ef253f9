"""What the best constant answer gets on the test answers of each cell, from its scores alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..contracts import Run
from ..errors import UserError
from ..plugin_system.registry import load_task
from ..scoring.constant import constant_value
from .baselines import cell_key

if TYPE_CHECKING:
    import pandas as pd


def constants_of(run: Run, cells: pd.DataFrame) -> pd.DataFrame:
    """One row a measured cell and metric, the first of its task or an error: address, metric,
    constant.

    Cells that answer the same examples share their values. Metrics that a constant answer has no
    value of, such as those of text, have no row.
    """
    import pandas as pd

    records = {record["address"]: record for record in run.manifest["cells"]}
    by_test = {}
    rows = []
    measured = cells[cells["status"] == "done"]
    for address in measured["address"]:
        key = cell_key(records[address])
        test = (key.task, key.test)
        # The answers of a test are read once.
        if test not in by_test:
            by_test[test] = _constants_of_test(run, key.task, address)
        for metric, value in by_test[test].items():
            rows.append((address, metric, value))
    return pd.DataFrame(rows, columns=["address", "metric", "constant"])


def _constants_of_test(run: Run, task: str, address: str) -> dict[str, float]:
    """The values by metric of a task, on the test answers of one cell."""
    scores = run.read("scores", ["answer"], [address])
    # Answers that are texts have scores without such a column.
    if "answer" not in scores:
        return {}
    answers = scores["answer"].to_numpy(np.float64)
    try:
        metrics = load_task(task).metrics()
    except UserError:  # its plugin is not here
        return {}

    values = {}
    for metric in metrics:
        value = constant_value(metric, answers)
        is_judged = metric is metrics[0] or metric.better == "lower"
        if is_judged and value is not None:
            values[metric.name] = value
    return values
