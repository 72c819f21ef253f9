"""The functions that `samsum.yaml` names: the documents and the scores of the task plugin.

lm-eval loads this file by its path: its imports are absolute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smmd_bench.plugin_system.registry import load_task

TASK = "samsum"


def dataset(**_: Any) -> Mapping[str, Any]:
    """The test split for lm-eval: documents with `uid`, `prompt` and `target`."""
    from datasets import Dataset

    rows = [
        {"uid": example.uid, "prompt": example.prompt, "target": example.target}
        for example in load_task(TASK).examples("test", 0)
    ]
    return {"test": Dataset.from_list(rows)}


def rouge(document: Mapping[str, str], results: Sequence[str]) -> Mapping[str, float]:
    """ROUGE-1, ROUGE-2 and ROUGE-L of a completion, F1 from 0 to 1."""
    task: Any = load_task(TASK)
    found: Mapping[str, float] = task.annotate(results[0], document["target"])
    return found
