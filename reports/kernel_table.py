"""Table 6 of the paper: kernels that know the values against kernels that do not, MMD alone."""

from __future__ import annotations

from typing import ClassVar

from ._ablation import Ablation


class KernelTable(Ablation):
    """Accuracy by what the kernel of the MMD term is made from, with the difference to CE."""

    name = "kernel_table"
    title = "Kernel structure, MMD term alone"
    paper = "Table 6"
    published = "kernel_ablation"
    heading = "Kernel"
    meaning = (
        "The MMD term alone (smmd[term=mmd]). Its kernel is made from the distances between the "
        "values, from the values shuffled among the tokens (kernel=shuffled), or at random "
        "(kernel=random)."
    )
    usual = ("ce", "smmd[term=mmd]")
    rows: ClassVar = {
        "ce": "none (CE)",
        "smmd[kernel=random,term=mmd]": "random PSD",
        "smmd[kernel=shuffled,term=mmd]": "shuffled values",
        "smmd[term=mmd]": "distances",
    }
