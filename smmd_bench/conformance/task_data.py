"""The examples of a task that the checks look at, without fetching any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from ..contracts import Example, Modality, Split, Task
from ..plugin_system.parameters import canonical
from .checks import UncheckedError

_MOST = {Modality.TEXT: 2000, Modality.VISION: 24}
"""Generated examples of a split; from a file of texts, as many as `_MOST_OF_A_FILE`."""
_MOST_OF_A_FILE = 20_000
_FEW = {Modality.TEXT: 200, Modality.VISION: 6}
"""Examples that the checks ask for again."""


@dataclass(frozen=True)
class TaskData:
    """A task and the first examples of every split that it has, made once."""

    task: Task

    @property
    def spec(self) -> str:
        """How the task is spelled."""
        return canonical(self.task)

    @property
    def made_here(self) -> bool:
        """Whether the examples come from no file."""
        return not getattr(self.task, "sources", ())

    @property
    def splits(self) -> list[Split]:
        """Those that are not empty by `paper_sizes`."""
        return [split for split in get_args(Split) if self.task.paper_sizes.get(split, 0)]

    @property
    def few(self) -> dict[Split, int]:
        """How many examples the checks ask for again, by split."""
        most = _FEW[self.task.modality]
        return {split: min(most, len(found)) for split, found in self.examples.items()}

    @cached_property
    def examples(self) -> dict[Split, list[Example]]:
        """Raises UncheckedError or UserError if they are not here."""
        for source in getattr(self.task, "sources", ()):
            if hasattr(source, "local_file"):
                absent = [split for split in source.local if source.local_file(split) is None]
                if absent:
                    raise UncheckedError(
                        f"the data are not here ({', '.join(absent)}) and nothing is fetched: run "
                        f"`smmd-bench prepare {self.task.name}`, or give --data-dir"
                    )
        whole = not self.made_here and self.task.modality is Modality.TEXT
        most = _MOST_OF_A_FILE if whole else _MOST[self.task.modality]
        try:
            return {
                split: list(self.task.examples(split, 0, min(most, self.task.paper_sizes[split])))
                for split in self.splits
            }
        except (ConnectionError, ImportError) as error:
            raise UncheckedError(f"the data are not available here: {error}") from error

    def all_examples(self) -> Iterator[Example]:
        """The examples of all splits."""
        for found in self.examples.values():
            yield from found

    def tested(self, most: int) -> list[Example]:
        """The first examples of the test split, or of the last one that there is."""
        return self.examples["test" if "test" in self.examples else self.splits[-1]][:most]

    def counts(self) -> str:
        """`2,000 train, 300 validation, 1,000 test`."""
        return ", ".join(f"{len(found):,} {split}" for split, found in self.examples.items())
