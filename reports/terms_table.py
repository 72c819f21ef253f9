"""Table 5 of the paper: the MMD and the smoothness term of SMMD, each alone and both."""

from __future__ import annotations

from typing import ClassVar

from ._ablation import Ablation


class TermsTable(Ablation):
    """Accuracy with each term of SMMD on and off, by task, with the difference to CE."""

    name = "terms_table"
    title = "Effect of the MMD and smoothness terms"
    paper = "Table 5"
    published = "ablation"
    heading = "Terms"
    meaning = (
        "SMMD is the sum of a squared MMD and a smoothness term; with neither it is CE. MMD is "
        "smmd[term=mmd], smoothness smmd[term=smooth], both smmd."
    )
    usual = ("ce", "smmd")
    rows: ClassVar = {
        "ce": "none (CE)",
        "smmd[term=mmd]": "MMD",
        "smmd[term=smooth]": "smoothness",
        "smmd": "MMD + smoothness",
    }
