"""What the mean and the median of p(number) answer to the examples of a cell.

p(number) is that of the completions that a beam search finds (`smmd_bench.decoding.beams`): parsed
by the task, those of one number added up, and divided by their sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..contracts import Task
from .decoding_rules import MASS, RULES
from .score import float_of, value_of

if TYPE_CHECKING:
    import pandas as pd


def rule_columns(task: Task, beams: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """What the rules answer to the examples of a scored frame, in its order.

    `parsed[RULE]`, `error[RULE]` and `valid[RULE]` as the scored frame has them of the greedy
    completion; and number_mass, the probability of all beams that hold a number. Decoders are
    compared on the same examples: a rule counts where the greedy completion is a number, and gives
    that number where no beam holds one. `beams` has uid, text and log_probability.
    """
    import pandas as pd

    known = {text: value_of(task, text) for text in beams["text"].unique()}
    values = beams["text"].map({text: float_of(value) for text, value in known.items()})
    weighed = pd.DataFrame({"uid": beams["uid"], "value": values.astype("float64")})
    weighed["p"] = np.exp(beams["log_probability"].to_numpy(np.float64))
    weighed = weighed[weighed["value"].notna()].sort_values(["uid", "value"], kind="stable")
    mass = weighed.groupby("uid")["p"].sum()
    share = weighed["p"] / weighed.groupby("uid")["p"].transform("sum")
    with np.errstate(over="ignore", invalid="ignore"):
        mean = (weighed["value"] * share).groupby(weighed["uid"]).sum()
    reached = share.groupby(weighed["uid"]).cumsum() >= 0.5 - 1e-12
    median = weighed[reached].groupby("uid")["value"].first()
    found: dict[str, Any] = {}
    unknown = ~scores["uid"].isin(mass.index).to_numpy()
    for rule, by_uid in zip(RULES, (mean, median), strict=True):
        parsed = by_uid.reindex(scores["uid"]).to_numpy(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.abs(parsed - scores["answer"].to_numpy(np.float64))
        parsed = np.where(unknown, scores["parsed"], parsed)
        error = np.where(unknown, scores["error"], error)
        found |= {f"parsed[{rule}]": parsed, f"error[{rule}]": error}
        found[f"valid[{rule}]"] = scores["valid"].to_numpy(bool) & ~np.isnan(error)
    found[MASS] = mass.reindex(scores["uid"], fill_value=0.0).to_numpy(np.float64)
    return pd.DataFrame(found, index=scores.index)
