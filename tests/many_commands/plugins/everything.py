"""A report that says all that a run can be asked for."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.results.frames import RunFrames

NUMBER = 0
TITLE = f"Everything {NUMBER}"
FRAMES = (
    "cells", "metrics", "comparisons", "selection", "tuning", "completions", "probes", "train_log"
)  # fmt: skip


@dataclass(frozen=True)
class Everything:
    """Every frame of a run, one below the other."""

    name: ClassVar[str] = "everything"
    title: ClassVar[str] = TITLE
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: RunFrames) -> str | None:
        return None

    def build(self, run: RunFrames) -> Artefact:
        parts = []
        for name in FRAMES:
            # The untuned base follows no recipe: it has that of whoever asked for it last.
            frame = getattr(run, name).drop(columns="recipe", errors="ignore")
            lines = [" ".join(map(str, row)) for row in frame.itertuples(index=False)]
            parts.append(pd.DataFrame({"Frame": name, "Row": lines}))
        table = pd.concat(parts, ignore_index=True).astype({"Row": "str"})
        return Artefact(TITLE, table)
