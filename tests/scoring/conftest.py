"""Five examples of easy arithmetic, and files of their completions."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from smmd_bench.maintenance.foreign_completions import score_predictions
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import RunFrames, read_run

TASK = "arithmetic[level=easy]"
COUNT = 5


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """A cache folder for the generated examples."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMMD_BENCH_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def examples(cache):
    return list(load_task(TASK).examples("test", 0, COUNT))


@pytest.fixture(scope="session")
def right(examples):
    """A row with uid and completion for each example, all of them right."""
    return [{"uid": example.uid, "completion": example.target} for example in examples]


def json_lines(path: Path, rows: Sequence[Any]) -> Path:
    """Write rows as JSON lines; a row that is text stands as it is."""
    texts = [
        row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
        for row in rows
    ]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def score_files(
    folder: Path, *files: Path, task: str = TASK, **options: Any
) -> tuple[RunFrames, list[str]]:
    """Score files of the examples into a run in that folder; returned with what was said."""
    sentences = []
    options = {"limit": COUNT, **options}
    outcome = score_predictions(
        task, files, out=folder, say=sentences.append, **options
    )
    return read_run(outcome.path), sentences
