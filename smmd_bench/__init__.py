"""smmd-bench: does this training loss make a language model better with numbers?

The names below are the stable Python API; they resolve lazily, so that `import smmd_bench`
imports neither torch nor pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conformance.losses import integers as integers
    from .conformance.suite import violations as violations
    from .encoding.numbers import numeric_vocabulary as numeric_vocabulary
    from .experiment.experiment import Experiment as Experiment
    from .objective.objective import numeric_objective as numeric_objective
    from .objective.supervised import count_units as count_units
    from .plugin_system.registry import load as load
    from .plugin_system.registry import load_loss as load_loss
    from .plugin_system.registry import load_plugin_file as load_plugin_file
    from .plugin_system.registry import load_task as load_task
    from .publishing.style import figure_style as figure_style
    from .publishing.style import loss_label as loss_label
    from .publishing.style import loss_styles as loss_styles
    from .publishing.style import model_label as model_label
    from .publishing.style import new_figure as new_figure
    from .publishing.tables import number as number
    from .publishing.write_reports import write_reports as write_reports
    from .results.frames import read_run as read_run
    from .run.pipeline import compare as compare
    from .run.pipeline import decode as decode
    from .run.pipeline import measure as measure
    from .run.pipeline import train as train
    from .run.run_directory import RunDirectory as RunDirectory
    from .scoring.score import score as score
    from .training.trainer_loss import compute_loss_func as compute_loss_func

_API = {
    "numeric_vocabulary": ".encoding.numbers",
    "load_loss": ".plugin_system.registry",
    "load_task": ".plugin_system.registry",
    "numeric_objective": ".objective.objective",
    "count_units": ".objective.supervised",
    "compute_loss_func": ".training.trainer_loss",
    "score": ".scoring.score",
    "read_run": ".results.frames",
    "Experiment": ".experiment.experiment",
    "RunDirectory": ".run.run_directory",
    "train": ".run.pipeline",
    "decode": ".run.pipeline",
    "measure": ".run.pipeline",
    "compare": ".run.pipeline",
    "write_reports": ".publishing.write_reports",
    "load": ".plugin_system.registry",
    "load_plugin_file": ".plugin_system.registry",
    "violations": ".conformance.suite",
    "integers": ".conformance.losses",
    "loss_label": ".publishing.style",
    "model_label": ".publishing.style",
    "loss_styles": ".publishing.style",
    "new_figure": ".publishing.style",
    "figure_style": ".publishing.style",
    "number": ".publishing.tables",
}
__all__ = ["__version__", *_API]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("smmd-bench")
    if name in _API:
        return getattr(import_module(_API[name], __name__), name)
    raise AttributeError(f"module 'smmd_bench' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
