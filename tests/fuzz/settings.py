"""YAML: experiment files and model cards."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from smmd_bench.errors import UserError
from smmd_bench.experiment.file import experiment_file
from smmd_bench.models.card_content import card_content
from smmd_bench.models.cards import ModelCard
from smmd_bench.plugin_system.registry import names

from .texts import brief_errors, text_of

LONGEST_ERROR = 2_000
"""Characters of an error: what it quotes is bounded by the input."""


@cache
def folder() -> Path:
    """A folder of this process for the files that readers are given."""
    return Path(mkdtemp(prefix="fuzz-"))


def experiment(data: bytes) -> None:
    """An experiment file; what it says can be written as YAML, and means the same."""
    with brief_errors(LONGEST_ERROR + 10 * len(data)):
        found = experiment_file(text_of(data), "theirs.yaml")
    assert "/" not in found.folder_name
    assert found.to_flags()
    for part in found.experiments:
        again = experiment_file(part.to_yaml(), "ours.yaml").experiments
        assert [one.to_dict() for one in again] == [part.to_dict()]
    assert all(cell.label for cell in found.cells)


def card(data: bytes) -> None:
    """A model card: settings of every task, and tasks with the card's parameters."""
    file = folder() / "card.yaml"
    file.write_bytes(data)
    with brief_errors(LONGEST_ERROR + 10 * len(data), str(file)):
        content = card_content(file)
    model = ModelCard("theirs", content.label or "theirs", file.parent, {}, content)
    for task in names("tasks"):
        assert model.recipe(task) == content.recipe_of(task)
        with suppress(UserError), brief_errors(LONGEST_ERROR + 10 * len(data), str(file)):
            assert model.task_spec(task).startswith(task)
