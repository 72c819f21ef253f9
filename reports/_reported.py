"""The line of the verdict that says what the manifest reports: seeds, decoding, setting, data."""

from __future__ import annotations

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.results.pairing import KEY

from ._cells import name_seeds, select_measured
from ._paper import SYNTHETIC, list_differences, read_data_entry

NOT_REPORTED = "not reported"
_DECODING = ("greedy", "max_new_tokens", "stop", "engine", "dtype", "chat_template")
"""What together says how completions were decoded."""


def describe_manifest(run: Run) -> str:
    """What the manifest reports, in a line: seeds, decoding, the paper's setting or not, data."""
    trained = run.cells[run.cells["loss"] != "base"]
    data = _describe_origins(run, trained)

    # Of completions made elsewhere the manifest knows the files, and not how they came to be.
    seeds = f"seeds {NOT_REPORTED}"
    decoding = setting = NOT_REPORTED
    if "predictions" not in run.manifest:
        decoding = _describe_decoding(run)
        setting = _describe_setting(run, trained)
        if len(trained):
            seeds = name_seeds(trained)
    return f"Reported: {seeds}; decoding {decoding}; setting {setting}; data {data}."


def _describe_decoding(run: Run) -> str:
    """Whether the manifest says all of how completions were decoded, and how long they may be."""
    settings = [*(run.manifest.get("generation") or {}).values()]
    if not settings:
        return NOT_REPORTED

    # A manifest of an older version may lack some; then the line names what a reader must ask for.
    lacking = {name: None for task in settings for name in _DECODING if name not in task}
    if lacking:
        return f"incomplete ({', '.join(lacking)} {NOT_REPORTED})"

    lengths = sorted({int(task["max_new_tokens"]) for task in settings})
    limit = f"at most {' or '.join(map(str, lengths))} tokens"
    if all(task["greedy"] for task in settings):
        return f"complete (greedy, {limit})"
    return f"complete ({limit})"


def _describe_setting(run: Run, trained: pd.DataFrame) -> str:
    """Whether the setting is the paper's, and else in what it differs, each word once."""
    # Seeds differ in nothing else.
    cells = select_measured(trained).drop_duplicates(KEY)
    if cells.empty:
        return NOT_REPORTED

    words: dict[str, None] = {}
    for cell in cells.to_dict("records"):
        words |= dict.fromkeys(list_differences(run, cell))
    return f"not the paper's ({', '.join(words)})" if words else "the paper's"


def _describe_origins(run: Run, trained: pd.DataFrame) -> str:
    """Whether the data is synthetic, in a word if it is so of all tasks, else task by task."""
    tasks_by_word: dict[str, list[str]] = {}
    for task in map(str, trained["task"].unique()):
        word = _describe_origin(run, task)
        tasks_by_word.setdefault(word, []).append(task)

    if len(tasks_by_word) < 2:
        return "".join(tasks_by_word)
    return " and ".join(f"{word} ({', '.join(tasks)})" for word, tasks in tasks_by_word.items())


def _describe_origin(run: Run, task: str) -> str:
    identity = read_data_entry(run, task).get("identity") or {}
    test = identity.get("test")
    if not test:
        return NOT_REPORTED

    # Arithmetic problems have no source to choose from: their test set names its generator.
    if test.get("source") == SYNTHETIC or "generator" in test:
        return SYNTHETIC
    return f"not {SYNTHETIC}"
