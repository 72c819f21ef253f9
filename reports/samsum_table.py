"""Table 11 of the paper: SAMSum, summaries scored by ROUGE, beside the published values."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from smmd_bench.contracts import Run
from smmd_bench.publishing.style import model_label
from smmd_bench.publishing.tables import number

from ._caption import noise_note, paper_note, spread_note, when
from ._cells import REFERENCE, one_row_a_metric, opponent, why_missing
from ._metric_table import MetricTable, head_of, title_with_source
from ._paper import published
from ._setting import SYNTHETIC, data_source
from ._values import P_HOLM, beside_paper, corrected_p, delta, estimate, gain
from ._verdicts import with_tests_by_metric

KINDS = {"rouge1": "1", "rouge2": "2", "rougeL": "L"}
VALUE = "F1 × 100"
DATA = (
    *("model", "params", "task", "loss", "seed", "status", "stage"),
    *("value", "low", "high", "n", "truncation_rate"),
    *("against_loss", "difference", "difference_low", "difference_high"),
    *("published", "against_published", "other_setting", "metric", "published_difference"),
    *("tokens", "numeric", "data"),
)


class SamsumTable(MetricTable):
    """ROUGE-1, ROUGE-2 and ROUGE-L by model and loss, with differences to CE."""

    name = "samsum_table"
    title = "SAMSum dialogue summarization"
    paper = "Table 11"
    order = 10
    tasks = ("samsum",)
    published = "samsum"
    unsaid = "seeds, prompt, intervals or whether ROUGE stems"
    key = ("model", "task", "loss", "metric")
    meaning = (
        "ROUGE-1, ROUGE-2 and ROUGE-L of the first paragraph against the one reference, F1, words "
        "stemmed (rouge-score); differences are paired, on the same dialogues."
    )

    def scores(self, run: Run, cells: pd.DataFrame) -> pd.DataFrame:
        """One row a cell and kind of ROUGE, in full precision.

        Besides what `one_row_a_metric` has: published_difference (to CE), truncation_rate, tokens
        and numeric (supervised tokens of the training, and those in V_num), and the data's source.
        """
        addresses = cells["address"].astype("str")
        rates = run.metrics[run.metrics["metric"] == "truncation_rate"].set_index("address")
        receipts = [run.current(address).receipt or {} for address in addresses]
        targets = [receipt.get("numeric_targets") or {} for receipt in receipts]
        more = pd.DataFrame({"truncation_rate": rates["value"].reindex(addresses).to_numpy()})
        for name in ("tokens", "numeric"):
            more[name] = pd.array([counts.get(name) for counts in targets], dtype="Int64")
        data = one_row_a_metric(run, cells, [*KINDS], self.published).join(more)
        data["data"] = [data_source(run, str(task)) for task in data["task"]]
        rows = zip(data["model"], data["task"], data["metric"], strict=True)
        of_ce = [
            published(self.published, model=model, task=task, loss=REFERENCE).get(metric, math.nan)
            for model, task, metric in rows
        ]
        data["published_difference"] = data["published"] - of_ce
        ordered = data.sort_index(kind="stable").reset_index(drop=True)[[*DATA]]
        return with_tests_by_metric(ordered, run)

    def row(self, cells: pd.DataFrame, other: str) -> dict[str, str]:
        """The row of one model, loss and kind, whose cells differ in their seed alone."""
        first = cells.iloc[0]
        head = {name: text for name, text in head_of(cells).items() if name != "Data"}
        head["ROUGE"] = KINDS[first["metric"]]
        if why := why_missing(cells):
            return {**head, VALUE: why}
        paper = None if first["loss"] == REFERENCE else first["published_difference"]
        return {
            **head,
            VALUE: estimate(cells, "", 1, interval=True),
            delta(other): gain(cells, ""),
            P_HOLM: corrected_p(cells, ""),
            **beside_paper(cells, self.published_columns()),
            f"Paper {delta(other)}": number(paper, sign=True),
            "n": f"{int(first['n']):,}",
            "Seeds": str(len(cells)),
        }

    def published_columns(self) -> dict[str, str]:
        """One for every kind."""
        return {"published": "Paper"}

    def attributes(self, run: Run, data: pd.DataFrame) -> dict[str, Any]:
        """Nothing is bold: the paper has no best one."""
        return {"title": title_with_source(self.title, data, "dialogues")}

    def notes(self, run: Run, data: pd.DataFrame) -> list[str]:
        """Sentences on intervals, what of the training is numeric, and published values."""
        known = data.dropna(subset="tokens").drop_duplicates("model")
        shares = ", ".join(
            f"{numeric:,} of {tokens:,} ({numeric / tokens:.1%}) with {model_label(model)}"
            for model, tokens, numeric in known[["model", "tokens", "numeric"]].to_numpy()
        )
        cut = data.loc[data["loss"] != "base", "truncation_rate"].max()
        synthetic, beside = (data["data"] == SYNTHETIC).any(), data["published"].notna().any()
        numeric = (
            f"Supervised tokens of the training set that are numeric: {shares}; on all others "
            "every loss is cross-entropy."
        )
        limit = f"Up to {cut:.1f} % of a trained loss's summaries reach the limit of tokens."
        return [
            when("predictions" not in run.manifest, "Validation ROUGE-L selects the epoch."),
            spread_note(data, "metric"),
            when(shares, numeric),
            when(cut > 0, limit),
            noise_note(data, opponent(data)),
            when(beside, paper_note(self.published, self.unsaid, VALUE)),
            when(synthetic, "Synthetic dialogues are far easier than the corpus."),
        ]
