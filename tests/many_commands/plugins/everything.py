"""A report that says all that a run can be asked for."""

from typing import ClassVar

import pandas as pd

from smmd_bench.contracts import Artefact
from smmd_bench.results.run import RunFrames

TITLE = "Everything"
FRAMES = ("cells", "metrics", "comparisons", "selection", "completions", "probes", "train_log")


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
            frame = getattr(run, name)
            lines = frame.astype(str).agg(" ".join, axis=1) if len(frame) else []
            parts.append(pd.DataFrame({"Frame": name, "Row": list(lines)}))
        table = pd.concat(parts, ignore_index=True).astype({"Row": "str"})
        return Artefact(TITLE, table)
