"""The tables of terms, kernels and bandwidths, against the completions of generated runs."""

import re

import pytest
from scipy.stats import binomtest
from smmd_bench.reports._gains import gains, seed_gains
from smmd_bench.reports.bandwidth_table import BandwidthTable
from smmd_bench.reports.kernel_table import KernelTable
from smmd_bench.reports.terms_table import TermsTable

from smmd_bench.publishing import tables
from smmd_bench.publishing.latex import to_latex
from smmd_bench.publishing.tables import with_interval
from tests.changed_runs import NO_MEMORY, with_manifest, without
from tests.reports.conftest import TERMS, VISION
from tests.reports.golden import widest_line, words
from tests.reports.test_significance import by_hand
from tests.runs import planted_run, quick_run

REPORTS = pytest.mark.parametrize("report", [TermsTable(), KernelTable(), BandwidthTable()])


def test_values_differences_and_tests_are_those_of_the_completions(runs):
    run = runs("variants")
    data = TermsTable().build(run).data.set_index("loss")
    exact = run.completions.pivot(index="uid", columns="loss", values="exact").astype(bool)
    p_values = []
    assert data.loc["ce", "exact_match_value"] == pytest.approx(100 * exact["ce"].mean())
    for loss in TERMS[1:]:
        assert data.loc[loss, "exact_match_value"] == pytest.approx(100 * exact[loss].mean())
        gained, lost = (exact[loss] & ~exact["ce"]).sum(), (exact["ce"] & ~exact[loss]).sum()
        assert data.loc[loss, "difference"] == pytest.approx(100 * (gained - lost) / len(exact))
        p_values.append(binomtest(int(gained), int(gained + lost)).pvalue)
    ours, corrected = data.loc[[*TERMS[1:]]], by_hand(p_values)
    assert list(ours["exact_match_gain_p"]) == pytest.approx(corrected)
    best = ours["difference"] == max(ours["difference"].max(), 0)
    assert list(ours["best"]) == [*best & (ours["exact_match_gain_p"] < 0.05)]


@REPORTS
def test_bold_is_what_is_best_and_significantly_better(report, runs):
    artefact = report.build(runs("variants of the paper"))
    table, best = artefact.table, artefact.data[artefact.data["best"]]
    bold = table.attrs["bold"]
    names = {"Qwen/Qwen2.5-1.5B": "Qwen2.5 1.5B", "builtin/tiny": "builtin/tiny 2.14M"}
    assert sorted((table.loc[row, "Model"], column) for row, column in bold) == sorted(
        (names[row.model], row.task) for row in best.itertuples()
    )
    assert {table.loc[row, "Value"] for row, _ in bold} == {"Acc (%)"}
    assert tables.to_markdown(table).count("**") == 2 * len(best)
    assert widest_line(table) <= 100


def test_planted_answers_give_a_known_table(tmp_path):
    answers = [str(at) for at in range(20)]
    predictions = {
        "ce": ["none"] * 20,
        "smmd[term=mmd]": answers[:12] + ["99"] * 8,
        "smmd[term=smooth]": answers[:4] + ["99"] * 16,
        "smmd": answers,
    }
    artefact = TermsTable().build(planted_run(tmp_path, answers, predictions))
    table = artefact.table.set_index("Terms")
    assert [text.split()[0] for text in table["Acc (%)"]] == ["0.0", "60.0", "20.0", "100.0"]
    assert list(table["p (Holm)"]) == ["–", "<0.001", "0.125", "<0.001"]
    assert artefact.table.attrs["bold"] == [(3, "Acc (%)")]
    assert "n = 20 test examples; seed 0; at most 100.0 %" in words(artefact)


def test_published_values_stand_beside_the_papers_setting_alone(runs):
    table = TermsTable().build(runs("variants of the paper")).table
    paper = table[table["Value"] == "Paper"].set_index(["Model", "Terms"])
    assert set(paper.index.get_level_values("Model")) == {"Qwen2.5 1.5B"}
    assert paper.loc[("Qwen2.5 1.5B", "none (CE)"), "gsm8k":].tolist() == ["54.97", "68.60", "–"]


def test_synthetic_clocks_are_not_compared(tmp_path):
    run = quick_run(
        tmp_path, models=(VISION,), tasks=("clock_time",), losses=TERMS, n=1440, source="kaggle",
        recipe={},
    )  # fmt: skip
    table = TermsTable().build(run).table
    assert list(table["Paper"]) == ["46.39", "68.61", "75.14", "74.30"]
    data = {"clock_time": {"identity": {"test": {"source": "synthetic"}}}}
    assert "Paper" not in TermsTable().build(with_manifest(run, tmp_path, data=data)).table


def test_only_the_seeds_that_every_row_has_are_compared(tmp_path):
    quick_run(tmp_path, losses=TERMS)
    run = quick_run(tmp_path, losses=("ce", "smmd"), seeds=(1, 2), base=False)
    artefact = TermsTable().build(run)
    assert set(artefact.data["seed"]) == {0}
    assert "; seed 0 (seeds 1, 2 of CE, SMMD left out" in words(artefact)


def test_several_seeds_give_a_deviation_and_the_test_of_seeds_and_examples(tmp_path):
    run = quick_run(tmp_path, losses=TERMS, seeds=(0, 1, 2), n=50)
    artefact = TermsTable().build(run)
    row = artefact.table.set_index("Terms").loc["MMD + smoothness"]
    ours = run.metrics.query("metric == 'exact_match' and loss == 'smmd'")["value"]
    assert row["Acc (%)"] == f"{ours.mean():.1f} ± {ours.std():.1f}"
    gain = gains(seed_gains(run)).set_index("loss").loc["smmd"]
    bounds = with_interval(gain["difference"], gain["low"], gain["high"], 1, sign=True)
    assert row["Δ to CE"].startswith(f"{bounds} (")
    assert "seeds 0, 1, 2" in words(artefact)
    assert "a mixed model of seeds and test examples" in words(artefact)


@pytest.mark.parametrize(
    ("failure", "said"),
    [(None, "pending"), (NO_MEMORY, "failed in train"), ({"skipped": True}, "skipped")],
)
def test_a_row_without_a_result_says_why_in_place(failure, said, runs, tmp_path):
    run = without(runs("variants"), tmp_path, failure=failure, loss="smmd[term=mmd]")
    artefact = TermsTable().build(run)
    table = artefact.table.set_index("Terms")
    assert list(table.loc["MMD"]) == ["builtin/tiny 2.14M", said, "–", "–"]
    assert artefact.caption.endswith(
        f" Without a result: builtin/tiny smmd[term=mmd] seed 0 ({said})."
    )
    assert r"\begin{tabular}{llrrr}" in to_latex(artefact.table, "", "")


def test_a_row_that_is_not_in_the_run_is_named_and_a_task_without_a_variant_left_out(tmp_path):
    quick_run(tmp_path, tasks=("svamp",), losses=("ce", "smmd", "smmd[term=smooth]"))
    run = quick_run(tmp_path, tasks=("gsm8k",), losses=("ce", "smmd"))
    artefact = TermsTable().build(run)
    assert set(artefact.data["task"]) == {"svamp"}
    assert artefact.table.attrs["title"].endswith(": svamp")
    table = artefact.table.set_index("Terms")
    assert table.loc["MMD", "Acc (%)"] == "not run"
    assert re.match(r"\d", table.loc["smoothness", "Acc (%)"])
