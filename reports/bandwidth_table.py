"""Table 9 of the paper: SMMD with one or several bandwidths in its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from smmd_bench.contracts import Artefact, Run
from smmd_bench.plugin_system.parameters import spell

from ._ablation import Ablation
from ._cells import REFERENCE
from ._variants import unreadable, values_of

SMMD, SIGMA = "smmd", "sigma"
TABLE = Ablation(
    table="sigma",
    heading="Bandwidth",
    meaning=(
        "The kernel of SMMD is the mean of Gaussian kernels of these bandwidths: {1, 2, 3} is "
        "smmd[sigma=1+2+3], and {2} the default."
    ),
    usual=(REFERENCE, SMMD),
)


@dataclass(frozen=True)
class BandwidthTable:
    """Accuracy by the set of bandwidths of SMMD, with the difference to CE."""

    name: ClassVar[str] = "bandwidth_table"
    title: ClassVar[str] = "Bandwidths of the kernel"
    paper: ClassVar[str] = "Table 9"

    def skip(self, run: Run) -> str | None:
        """At least one set must not be the default."""
        return unreadable(run, SMMD) or TABLE.skip(run, bandwidths(run))

    def build(self, run: Run) -> Artefact:
        """One row a set, small ones first; tasks are columns."""
        return TABLE.artefact(run, self.title, bandwidths(run))


def bandwidths(run: Run) -> dict[str, str]:
    """The specs of the run that change nothing but the bandwidths, and CE, with their labels."""
    found = {}
    for loss in map(str, run.cells["loss"].cat.categories):
        if loss == SMMD or f"{SIGMA}=" in loss:
            found[loss] = values_of(loss, SMMD, SIGMA)
    sets = {loss: values for loss, values in found.items() if values is not None}
    ordered = sorted(sets, key=lambda loss: (len(sets[loss]), sets[loss]))
    labels = {loss: f"{{{', '.join(spell(float(v)) for v in sets[loss])}}}" for loss in ordered}
    return {REFERENCE: "none (CE)", **labels}
