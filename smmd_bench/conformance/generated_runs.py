"""The runs that reports are tried on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_MODELS, _LOSSES = ("builtin/tiny", "Qwen/Qwen2.5-0.5B"), ("ce", "ntl", "smmd")
_VARIANTS = (
    *("smmd[term=mmd]", "smmd[term=smooth]"),
    *("smmd[kernel=random,term=mmd]", "smmd[kernel=shuffled,term=mmd]"),
    *("smmd[sigma=1]", "smmd[sigma=4]", "smmd[sigma=1+2+3]"),
    *("smmd[lambda=1]", "smmd[lambda=9]", "ntl[lambda=1]", "ntl[lambda=9]"),
)


@dataclass(frozen=True)
class GeneratedRuns:
    """The runs that reports are tried on, each made when it is first asked for."""

    folder: Path
    own: Path | None = None
    """A run of the user's, to be tried besides."""

    @cached_property
    def empty(self) -> dict[str, Path]:
        """Without a cell; with cells that have no results."""
        from .generated_run import GeneratedCell, State, known_tasks, write_run

        without: dict[str, State] = {"ce": "pending", "ntl": "skipped", "smmd": "failed"}
        states = [
            GeneratedCell("builtin/tiny", task, loss, 0, state)
            for task in known_tasks()
            for loss, state in without.items()
        ]
        return {
            "without a cell": write_run(self.folder / "empty", []),
            "without results": write_run(self.folder / "pending", states),
        }

    @cached_property
    def one_cell(self) -> dict[str, Path]:
        """A run of one cell for each task."""
        from .generated_run import GeneratedCell, known_tasks, write_run

        return {
            f"of one {task} cell": write_run(
                self.folder / f"one-{task}", [GeneratedCell("builtin/tiny", task, "ce", 0)]
            )
            for task in known_tasks()
        }

    @cached_property
    def full(self) -> dict[str, Path]:
        """All tasks and several losses, models and seeds, with a failed cell; variants of the
        losses; an overhead run."""
        from .generated_measurements import write_overhead, write_regression
        from .generated_run import GeneratedCell, known_tasks, matrix, write_run

        cells = matrix(_MODELS[:1], known_tasks(), _LOSSES, (0,))
        cells += [GeneratedCell(_MODELS[0], "arithmetic", loss, 1) for loss in _LOSSES]
        cells += matrix(_MODELS[1:], ["gsm8k"], _LOSSES, (0,))
        failed = GeneratedCell("builtin/tiny", "arithmetic", "gce", 0, "failed")
        whole = write_run(self.folder / "full", [*cells, failed])
        write_regression(whole, [cell for cell in cells if cell.task == "gsm8k"])
        variants = matrix(_MODELS[:1], ["arithmetic"], (*_LOSSES, *_VARIANTS), (0,))
        lost = GeneratedCell(_MODELS[0], "arithmetic", "smmd[sigma=8]", 0, "failed")
        varied = write_run(self.folder / "variants", [*variants, lost])
        overhead = write_overhead(self.folder / "overhead", _LOSSES[1:])
        found = {"full": whole, "of variants": varied, "of `smmd-bench overhead`": overhead}
        return {**found, str(self.own): self.own} if self.own else found
