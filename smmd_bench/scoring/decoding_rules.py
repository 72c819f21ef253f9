"""Decoding rules: the mean and the median of p(number), in place of the likeliest completion.

A model that is scored by squared error should answer with the mean of its distribution, by absolute
error with the median (regression-aware inference: Lukasik et al., arXiv 2403.04182). p(number) is
found by a beam search (`smmd_bench.decoding.beams`); `rule_columns` has what the rules answer.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from ..contracts import Metric, Task

GREEDY = "greedy"
RULES = ("mean", "median")
"""Each gives one number of a distribution; greedy decoding gives a completion."""
VERSION = 1
"""Raise it when a rule gives other numbers; part of the measure address."""

_READ = {"answer", "parsed", "error"}
MASS = "number_mass"


def columns_of(rules: Sequence[str]) -> list[str]:
    """The columns of `rule_columns` that these rules give."""
    return [*(f"{name}[{rule}]" for rule in rules for name in ("parsed", "error", "valid")), MASS]


def every_metric(task: Task) -> list[Metric]:
    """The metrics of a task, and those of the error once more under each rule."""
    metrics = task.metrics()
    return [*metrics, *(under_rule(m, rule) for rule in RULES for m in metrics if _of_error(m))]


def under_rule(metric: Metric, rule: str) -> Metric:
    """The metric of what a rule answers: `mean_absolute_error[mean]`."""
    names = {name: f"{name}[{rule}]" for name in ("parsed", "error", "valid")}
    own = {
        "name": f"{metric.name}[{rule}]",
        "label": f"{metric.label}, {rule}",
        "columns": tuple(names.get(column, column) for column in metric.columns),
        "subset": metric.subset and names[metric.subset],
    }
    found = copy.copy(metric)
    object.__setattr__(
        found, "__class__", type(type(metric).__name__, (type(metric),), {**own, "__slots__": ()})
    )
    return found


def rules_of(decoders: Sequence[str]) -> tuple[str, ...]:
    """Those of the decoders that need beams, each once, in one order."""
    return tuple(rule for rule in RULES if rule in decoders)


def _of_error(metric: Metric) -> bool:
    """Whether a metric is of parsed values, right or wrong by how much, and of nothing else."""
    columns = {*metric.columns}
    return columns <= _READ and columns != {"answer"} and metric.subset in (None, "valid")


def split_rule(metric: str) -> tuple[str, str]:
    """The name of a metric and the decoder that it is of: `r_squared[mean]` -> r_squared, mean."""
    name, _, rule = metric.removesuffix("]").partition("[")
    return (name, rule) if rule in RULES else (metric, GREEDY)
