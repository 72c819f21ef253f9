"""Figure 2 of the paper: the mean predicted distribution where a clock's hour begins with 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Artefact, Run, parameter

from ._probes import first_digits
from .digit_distribution import CLOCK, digit_artefact, is_digit


@dataclass(frozen=True)
class DigitProbe:
    """Where each loss puts its probability when the hour starts with one given digit."""

    name: ClassVar[str] = "digit_probe"
    title: ClassVar[str] = "Clock-Time: digit distribution at the first digit of the hour"
    paper: ClassVar[str] = "Figure 2"

    digit: int = parameter(5, "the true first digit", check=is_digit)

    def skip(self, run: Run) -> str | None:
        """Probed clocks with such an hour are needed."""
        clocks = _of_clocks(run)
        if clocks.cells.empty:
            return f"the run has no {CLOCK} cell"
        if self.digit in first_digits(clocks):
            return None
        return f"no probed clock shows an hour that begins with {self.digit}"

    def build(self, run: Run) -> Artefact:
        """One block of panels a model."""
        return digit_artefact(_of_clocks(run), self.title, self.digit)


def _of_clocks(run: Run) -> Run:
    return run.only(run.cells[run.cells["task_name"] == CLOCK])
