"""What the arithmetic reports share: which cells they show, and how their level is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smmd_bench.plugin_system.parameters import split_spec

if TYPE_CHECKING:
    import pandas as pd

    from smmd_bench.contracts import Run

TASK = "arithmetic"


def arithmetic_cells(run: Run) -> pd.DataFrame:
    """The cells of the arithmetic task, whatever their level and status."""
    return run.cells[run.cells["task_name"] == TASK]


def level_note(task: str) -> str:
    """What a title adds for a task spec: nothing for the paper's level, else which it is."""
    _, parameters = split_spec(task)
    if not parameters:
        return ""
    most = int(parameters.get("operations", "99").rpartition("..")[2])
    easier = parameters.get("level") == "easy" or most <= 3
    kind = "an easier level than the paper's" if easier else "not the paper's level"
    return f"{task}, {kind}"


def title_with_levels(title: str, cells: pd.DataFrame) -> str:
    """The title of a report, which names every level that is not the paper's."""
    tasks = [str(task) for task in cells["task"].unique()]
    notes = [note for task in tasks if (note := level_note(task))]
    among = ", among them " if len(notes) < len(tasks) else ": "
    return f"{title}{among}{'; '.join(notes)}" if notes else title
