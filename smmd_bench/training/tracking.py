"""Experiment trackers, through the Trainer's own integrations (`--track`).

A tracker hears what a training logs and changes no address and no result. It writes to
RUN/tracking/tensorboard/CELL, or RUN/tracking/wandb or trackio unless WANDB_DIR or TRACKIO_DIR name
another place. A cell's run is called by its label.
"""

import importlib.util
import os
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..storage.addresses import folder_name

TRACKERS = ("tensorboard", "wandb", "trackio")


def require_tracker(name: str | None) -> None:
    """Raise UserError if a tracker is unknown, or not installed."""
    if name is None:
        return
    if name not in TRACKERS:
        raise UserError(f"Unknown tracker '{name}': known: {', '.join(TRACKERS)}.")
    if importlib.util.find_spec(name) is None:
        raise UserError(
            f"--track {name}: {name} is not installed here: pip install {name}."
        )


def tracking(name: str | None, label: str, cell_folder: Path) -> dict[str, Any]:
    """The Trainer's settings that make a tracker follow a cell; sets its environment variables."""
    if name is None:
        return {"report_to": []}
    run = cell_folder.parent.parent
    folder = run / "tracking"
    folder.mkdir(parents=True, exist_ok=True)
    folder_of_cell = folder_name([label], {"cell": cell_folder.name})
    # TensorBoard has no names of runs: it shows those of folders.
    os.environ["TENSORBOARD_LOGGING_DIR"] = str(folder / "tensorboard" / folder_of_cell)
    os.environ.setdefault("WANDB_DIR", str(folder))
    os.environ.setdefault("WANDB_PROJECT", run.name)
    os.environ.setdefault("TRACKIO_DIR", str(folder / "trackio"))
    return {"report_to": [name], "run_name": label, "project": run.name}
