"""Table 4 of the paper: chart question answering results, each beside its published value."""

from __future__ import annotations

from ._metric_table import Column, MetricTable


class ChartTable(MetricTable):
    """Exact and relaxed accuracy by model and loss, with intervals and the difference to CE."""

    name = "chart_table"
    title = "Chart question answering results"
    paper = "Table 4"
    order = 10
    tasks = ("chartqa",)
    published = "chartqa"
    examples = "charts"
    columns = (
        Column(
            "exact_match", "Acc (%)", interval=True, paper="Paper Acc",
            meaning="Acc is exact match by value, as in the paper; a completion without a number "
            "counts as wrong.",
        ),
        Column(
            "relaxed_accuracy", "Relaxed (%)", interval=True, delta="Δ relaxed",
            meaning="Relaxed accuracy takes an answer within 5 % of the truth; lm-eval relaxed is "
            'the same as lm-eval reads numbers (not "~5").',
        ),
        Column("relaxed_accuracy_lm_eval", "lm-eval relaxed"),
        Column("parse_failure_rate", "Parse fail (%)"),
    )  # fmt: skip
