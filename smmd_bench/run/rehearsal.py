"""A task's answers and metrics on its own targets: what scoring would refuse after the training."""

from __future__ import annotations

from collections.abc import Sequence

from ..contracts import Completion, Example, Split
from ..errors import UserError
from ..experiment.cell import Cell

_SCORED = 4


def rehearse(cell: Cell, split: Split, examples: Sequence[Example]) -> None:
    """Score the first targets of a split as if they were completions.

    Raises UserError where an attribute of an example has the name of a column, the task cannot
    score its own target, or the metric that selects needs a column that the scores lack.
    """
    from ..decoding.decode import completions_frame
    from ..scoring.score import score_frame

    texts = [Completion(example.target, (), "stop") for example in examples]
    frame = completions_frame(examples, texts, [0] * len(examples))
    try:
        scores = score_frame(cell.task_plugin, frame.head(_SCORED))
        best = cell.task_plugin.metrics()[0]
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{cell.task}, {split}: the target of example {examples[0].uid} or of one after it "
            f"cannot be scored ({type(error).__name__}: {error}): correct the task, for which "
            f"`smmd-bench validate {cell.task_plugin.name}` says more."
        ) from error
    wanted = {*best.columns, *([best.subset] if best.subset else [])}
    if lacking := sorted(wanted - {*scores.columns}):
        raise UserError(
            f"The metric {best.name}, which selects the epoch of {cell.task}, needs the column "
            f"{', '.join(lacking)}, which the scores lack: let annotate() of the task give it."
        )
