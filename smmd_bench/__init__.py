"""smmd-bench: does this training loss make a language model better with numbers?

The names below are the stable Python API; they resolve lazily, so that `import smmd_bench`
imports neither torch nor pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conformance.losses import integers
    from .conformance.suite import violations
    from .encoding.numbers import numeric_vocabulary
    from .experiment.experiment import Experiment
    from .objective.objective import numeric_objective
    from .objective.supervised import count_units
    from .plugin_system.registry import load, load_loss, load_plugin_file, load_task
    from .publishing.style import (
        figure_style,
        loss_label,
        loss_styles,
        model_label,
        new_figure,
    )
    from .publishing.tables import number
    from .publishing.write_reports import write_reports
    from .results.frames import read_run
    from .run.pipeline import compare, decode, measure, train
    from .run.run_directory import RunDirectory
    from .scoring.score import score
    from .training.trainer_loss import compute_loss_func

__all__ = [
    "Experiment", "RunDirectory", "__version__", "compare", "compute_loss_func", "count_units",
    "decode", "figure_style", "integers", "load", "load_loss", "load_plugin_file", "load_task",
    "loss_label", "loss_styles", "measure", "model_label", "new_figure", "number",
    "numeric_objective", "numeric_vocabulary", "read_run", "score", "train", "violations",
    "write_reports",
]  # fmt: skip
_NAMES = {
    ".encoding.numbers": ("numeric_vocabulary",),
    ".plugin_system.registry": ("load_loss", "load_task", "load", "load_plugin_file"),
    ".objective.objective": ("numeric_objective",),
    ".objective.supervised": ("count_units",),
    ".training.trainer_loss": ("compute_loss_func",),
    ".scoring.score": ("score",),
    ".results.frames": ("read_run",),
    ".experiment.experiment": ("Experiment",),
    ".run.run_directory": ("RunDirectory",),
    ".run.pipeline": ("train", "decode", "measure", "compare"),
    ".publishing.write_reports": ("write_reports",),
    ".conformance.suite": ("violations",),
    ".conformance.losses": ("integers",),
    ".publishing.style": (
        "loss_label",
        "model_label",
        "loss_styles",
        "new_figure",
        "figure_style",
    ),
    ".publishing.tables": ("number",),
}
_API = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("smmd-bench")
    if name in _API:
        return getattr(import_module(_API[name], __name__), name)
    raise AttributeError(f"module 'smmd_bench' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
