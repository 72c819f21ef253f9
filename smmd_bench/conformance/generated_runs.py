"""The runs that reports are tried on."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .generated_cells import QUESTIONS
from .generated_measurements import write_overhead, write_regression
from .generated_run import GeneratedCell, State, matrix, write_run

_SMALL, _LARGE = "builtin/tiny", "Qwen/Qwen2.5-0.5B"
_LOSSES = ("ce", "ntl", "smmd")
_VARIANTS = (
    *("smmd[term=mmd]", "smmd[term=smooth]"),
    *("smmd[kernel=random,term=mmd]", "smmd[kernel=shuffled,term=mmd]"),
    *("smmd[sigma=1]", "smmd[sigma=4]", "smmd[sigma=1+2+3]"),
    *("smmd[lambda=1]", "smmd[lambda=9]", "ntl[lambda=1]", "ntl[lambda=9]"),
)
_UNFINISHED: dict[str, State] = {"ce": "pending", "ntl": "skipped", "smmd": "failed"}


@dataclass(frozen=True)
class GeneratedRuns:
    """The runs that reports are tried on, each written when a check first needs it."""

    folder: Path
    own: Path | None = None
    """A user's run, to be tried as well."""

    @cached_property
    def empty(self) -> dict[str, Path]:
        """Without a cell; with cells that have no results."""
        cells = [
            GeneratedCell(_SMALL, task, loss, 0, state)
            for task in QUESTIONS
            for loss, state in _UNFINISHED.items()
        ]
        return {
            "without a cell": write_run(self.folder / "empty", []),
            "without results": write_run(self.folder / "pending", cells),
        }

    @cached_property
    def one_cell(self) -> dict[str, Path]:
        """A run of one cell for each task."""
        return {
            f"of one {task} cell": write_run(
                self.folder / f"one-{task}", [GeneratedCell(_SMALL, task, "ce", 0)]
            )
            for task in QUESTIONS
        }

    @cached_property
    def full(self) -> dict[str, Path]:
        """All tasks and several losses, models and seeds, with a failed cell; variants of the
        losses; an overhead run."""
        cells = matrix([_SMALL], list(QUESTIONS), _LOSSES, (0,))
        cells += [GeneratedCell(_SMALL, "arithmetic", loss, 1) for loss in _LOSSES]
        cells += matrix([_LARGE], ["gsm8k"], _LOSSES, (0,))
        failed = GeneratedCell(_SMALL, "arithmetic", "gce", 0, "failed")
        whole = write_run(self.folder / "full", [*cells, failed])
        write_regression(whole, [cell for cell in cells if cell.task == "gsm8k"])
        variants = matrix([_SMALL], ["arithmetic"], (*_LOSSES, *_VARIANTS), (0,))
        failed = GeneratedCell(_SMALL, "arithmetic", "smmd[sigma=8]", 0, "failed")
        varied = write_run(self.folder / "variants", [*variants, failed])
        overhead = write_overhead(self.folder / "overhead", _LOSSES[1:])
        found = {"full": whole, "of variants": varied, "of `smmd-bench overhead`": overhead}
        return {**found, str(self.own): self.own} if self.own else found
