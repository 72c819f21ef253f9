"""Table 1 of the paper: mathematical reasoning, GSM8K and SVAMP, beside the published values."""

from __future__ import annotations

from ._metric_table import Column, MetricTable


class MathTable(MetricTable):
    """Accuracy by our rule and lm-eval's two, by model, task and loss, with differences to CE."""

    name = "math_table"
    title = "Mathematical reasoning results"
    paper = "Table 1"
    order = 10
    tasks = ("gsm8k", "svamp")
    published = "math_reasoning"
    unsaid = "seeds, prompts or parser"
    columns = (
        Column(
            "exact_match", "Acc (%)", interval=True, paper="Paper",
            meaning="Acc is exact match by value of the final answer; a completion without a "
            "number counts as wrong.",
        ),
        Column(
            "strict_match", "lm-eval strict",
            meaning="lm-eval strict and flexible are accuracies (%) by the two rules of lm-eval's "
            "gsm8k, which compare text (strict: after ####; flexible: the last number).",
        ),
        Column("flexible_match", "lm-eval flexible"),
        Column(
            "mean_absolute_error", "MAE", digits=2, delta="Δ MAE",
            meaning="MAE leaves out completions without a number; a single wild one can dominate "
            "it.",
        ),
        Column(
            "trimmed_absolute_error", "MAE of 90 %", digits=2, delta="Δ of 90 %",
            robust="mean_absolute_error",
            meaning="MAE of 90 % leaves out the largest tenth of the errors as well.",
        ),
        Column("parse_failure_rate", "Parse fail (%)"),
        Column("truncation_rate", "Cut off (%)"),
    )  # fmt: skip
