"""Decoding rules: the mean and the median of p(number), in place of the likeliest completion.

A model that is scored by squared error should answer with the mean of its distribution, by absolute
error with the median (regression-aware inference: Lukasik et al., arXiv 2403.04182). p(number) is
found by a beam search (`smmd_bench.decoding.beams`); `measure.rule_columns` is theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..contracts import Metric, Task

if TYPE_CHECKING:
    import pandas as pd

GREEDY = "greedy"
RULES = ("mean", "median")
"""Each gives one number of a distribution; greedy decoding gives a completion."""
VERSION = 2
"""Raise it when a rule gives other numbers; part of the measure address."""

# What a rule changes of a scored frame: all else is of the completion.
_OF_RULES = ("parsed", "error", "valid")
_READ = {"answer", "parsed", "error"}
MASS = "number_mass"


def columns_of(rules: Sequence[str]) -> list[str]:
    """The columns of `rule_columns` that these rules give."""
    return [*(f"{name}[{rule}]" for rule in rules for name in _OF_RULES), MASS]


def by_decoder(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The scored frame, and for each rule that answered one with its `parsed`, `error` and `valid`
    in place of those of the greedy completion."""
    frames = {GREEDY: scores}
    for rule in RULES:
        # A cell has the columns of the rules that its run asked for.
        if f"error[{rule}]" in scores:
            columns = {name: scores[f"{name}[{rule}]"] for name in _OF_RULES}
            frames[rule] = scores.assign(**columns)
    return frames


def metrics_under(task: Task, decoder: str) -> dict[str, Metric]:
    """The metrics of a task under a decoder, by name: greedily all, under a rule those of the error
    (`mean_absolute_error[mean]`)."""
    if decoder == GREEDY:
        return {metric.name: metric for metric in task.metrics()}
    return {f"{m.name}[{decoder}]": m for m in task.metrics() if _of_error(m)}


def rules_of(decoders: Sequence[str]) -> tuple[str, ...]:
    """Those of the decoders that need beams, each once, in one order."""
    # In the order of RULES, so that an address does not follow from that of flags.
    return tuple(rule for rule in RULES if rule in decoders)


def _of_error(metric: Metric) -> bool:
    """Whether a metric is of parsed values, right or wrong by how much, and of nothing else."""
    # A metric of texts, or of cut-off completions, has no other value under a rule.
    columns = {*metric.columns}
    return (
        columns <= _READ and columns != {"answer"} and metric.subset in (None, "valid")
    )


def split_rule(metric: str) -> tuple[str, str]:
    """The name of a metric and the decoder that it is of: `r_squared[mean]` -> r_squared, mean."""
    name, _, rule = metric.removesuffix("]").partition("[")
    return (name, rule) if rule in RULES else (metric, GREEDY)
