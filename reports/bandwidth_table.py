"""Table 9 of the paper: SMMD with one or several bandwidths in its kernel."""

from __future__ import annotations

from smmd_bench.contracts import Run
from smmd_bench.plugin_system.parameters import spell

from ._ablation import Ablation
from ._variants import unreadable, values_of

SMMD, SIGMA = "smmd", "sigma"


class BandwidthTable(Ablation):
    """Accuracy by the set of bandwidths of SMMD, with the difference to CE."""

    name = "bandwidth_table"
    title = "Bandwidths of the kernel"
    paper = "Table 9"
    published = "sigma"
    heading = "Bandwidth"
    meaning = (
        "The kernel of SMMD is the mean of Gaussian kernels of these bandwidths: {1, 2, 3} is "
        "smmd[sigma=1+2+3], and {2} the default."
    )
    usual = ("ce", SMMD)

    def skip(self, run: Run) -> str | None:
        """At least one set must not be the default; for a name alone no loss is imported."""
        if not any(f"{SIGMA}=" in str(loss) for loss in run.cells["loss"].cat.categories):
            return self.unvaried()
        return unreadable(run, SMMD) or super().skip(run)

    def labels(self, run: Run) -> dict[str, str]:
        """CE, and the losses of the run that change the bandwidths alone, small sets first."""
        losses = map(str, run.cells["loss"].cat.categories)
        named = [loss for loss in losses if loss == SMMD or f"{SIGMA}=" in loss]
        found = {loss: values_of(loss, SMMD, SIGMA) for loss in named}
        sets = {loss: values for loss, values in found.items() if values is not None}
        labels = {
            loss: f"{{{', '.join(spell(float(value)) for value in values)}}}"
            for loss, values in sorted(sets.items(), key=lambda item: (len(item[1]), item[1]))
        }
        return {"ce": "none (CE)", **labels}
