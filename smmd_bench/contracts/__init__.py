"""Everything that a plugin is written with: the contracts, and what plugins share.

In: nothing. Out: protocols of plugins, the frozen data that they exchange, parameters with their
checks, metrics, and numbers read from text. It may import `errors` and `storage`.

Names that need torch or numpy resolve lazily, so that plugins can be listed quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import CellSkippedError, ReportSkippedError, UserError, did_you_mean
from ..storage.addresses import cache_folder
from ..storage.data_files import DataSource, HubData, data_folder
from .engine import (
    Canary,
    Checkpoint,
    CheckpointKind,
    Completion,
    Engine,
    EngineSession,
    EngineSettings,
    Images,
    Progress,
)
from .executor import Executor, Job, JobQueue, JobResult, Resources
from .loss import Loss
from .numbers import first_number, last_number, parse_number
from .parameters import (
    bandwidth,
    between,
    factor,
    non_negative,
    parameter,
    positive,
    share,
)
from .report import Artefact, Report, Run
from .task import Answer, Example, Metric, Modality, Split, Task
from .texts import plain_text

if TYPE_CHECKING:
    from ..storage.text_rows import read_texts
    from .metrics import (
        ExactMatch,
        MeanAbsoluteError,
        ParseFailureRate,
        Percentage,
        RSquared,
        TextMatch,
        TrimmedAbsoluteError,
        TruncationRate,
        percentage,
    )
    from .numeric import (
        NoAuxiliary,
        NumericLoss,
        NumericPlaces,
        NumericTargets,
        NumericVocabulary,
        gumbel,
        mixed,
        number_spans,
    )

__all__ = [
    "Answer", "Artefact", "Canary", "CellSkippedError", "Checkpoint", "CheckpointKind",
    "Completion", "DataSource", "Engine", "EngineSession", "EngineSettings", "ExactMatch",
    "Example", "Executor", "HubData", "Images", "Job", "JobQueue", "JobResult", "Loss",
    "MeanAbsoluteError", "Metric", "Modality", "NoAuxiliary", "NumericLoss", "NumericPlaces",
    "NumericTargets", "NumericVocabulary", "ParseFailureRate", "Percentage", "Progress",
    "RSquared", "Report", "ReportSkippedError", "Resources", "Run", "Split", "Task", "TextMatch",
    "TrimmedAbsoluteError", "TruncationRate", "UserError", "bandwidth", "between",
    "cache_folder", "data_folder", "did_you_mean", "factor", "first_number", "gumbel",
    "last_number", "mixed", "non_negative", "number_spans", "parameter", "parse_number",
    "percentage", "plain_text", "positive", "read_texts", "share",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Python asks for names of its own, too, such as __path__: they import nothing.
    if name in __all__:
        # Torch comes last: a metric must not wait for its import.
        for module_name in (".metrics", "..storage.text_rows", ".numeric"):
            module = import_module(module_name, __name__)
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'smmd_bench.contracts' has no attribute '{name}'")
