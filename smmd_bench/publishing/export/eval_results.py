"""`.eval_results/TASK.yaml`: the model hub's evaluation results.

https://huggingface.co/docs/hub/eval-results: one value for a task of a data set that is registered
as a benchmark, under the id that the data set's eval.yaml gives to the task. That of openai/gsm8k
is `gsm8k`; the files of our other data sets could not be opened, and their task id is our task's
name. The hub shows nothing of a data set that is not a benchmark.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from ...storage.addresses import file_word
from ...storage.files import write_text
from .exported_cell import ExportedCell


def write_eval_results(cell: ExportedCell, folder: Path) -> str | None:
    """Write the first metric of a cell; a sentence instead where the hub has no place for it.

    A leaderboard compares whole test splits, so a part of one has no place there.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    source, whole = cell.dataset, int(cell.task.paper_sizes["test"])
    if source is None:
        return (
            f"There is no .eval_results for {cell.row['task']}: it is no data set of the hub, "
            "whose results alone the model hub takes."
        )
    if len(cell.frame) < whole or not cell.metrics:
        return (
            f"There is no .eval_results for {cell.row['task']}: {len(cell.frame):,} of its "
            f"{whole:,} test examples were answered, and the model hub compares whole splits."
        )
    first = cell.metrics[0]
    between = "" if first.low is None else f", 95% interval {first.low:.2f} to {first.high:.2f}"
    entry = EvalResultEntry(
        dataset_id=source.hub.repository,
        task_id=cell.task.name,
        value=round(first.value, 4),
        date=cell.created.isoformat(),
        notes=(
            f"{first.metric.label}{between}, n {first.n}; {cell.row['task']}, trained with "
            f"{cell.row['loss']}, greedy, without shots, by smmd-bench"
        ),
    )
    text = yaml.safe_dump(
        eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True, width=1000
    )
    write_text(folder / ".eval_results" / f"{file_word(cell.task.name)}.yaml", text)
    return None
