"""The tables of terms, kernels and bandwidths, against the completions of generated runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from scipy.stats import binomtest
from smmd_bench.reports.bandwidth_table import BandwidthTable
from smmd_bench.reports.kernel_table import KernelTable
from smmd_bench.reports.terms_table import TermsTable

import smmd_bench as sb
from smmd_bench.publishing import tables
from smmd_bench.publishing.latex import to_latex
from smmd_bench.storage.files import read_json, write_json
from tests.reports.golden import assert_golden
from tests.reports.test_significance import by_hand
from tests.runs import Planted, add_cells, write_failure, write_run

TERMS = ("ce", "smmd[term=mmd]", "smmd[term=smooth]", "smmd")
KERNELS = ("smmd[kernel=random,term=mmd]", "smmd[kernel=shuffled,term=mmd]")
BANDWIDTHS = ("smmd[sigma=1+2+3]", "smmd[sigma=1.7+2+2.3]", "smmd[sigma=4]")
LOSSES = (*TERMS, *KERNELS, *BANDWIDTHS, "smmd[lambda=9,sigma=1+2]")
REPORTS = pytest.mark.parametrize("report", [TermsTable(), KernelTable(), BandwidthTable()])
PAPERS = ("Qwen/Qwen2.5-1.5B", ("gsm8k", "svamp", "arithmetic"))


@pytest.fixture(scope="module")
def one_task(tmp_path_factory):
    """Another model than the paper's, one task, one seed."""
    folder = tmp_path_factory.mktemp("runs") / "one"
    write_run(folder, losses=LOSSES, seeds=(0,), n=150, steps=3, resamples=100)
    return sb.read_run(folder)


@pytest.fixture(scope="module")
def paper_run(tmp_path_factory):
    """A model of the paper and another, three tasks, one seed; of arithmetic too few examples."""
    folder = tmp_path_factory.mktemp("runs") / "paper"
    (model, tasks), sizes = PAPERS, (1319, 1000, 200)
    for task, n in zip(tasks, sizes, strict=True):
        write_run(
            folder, models=(model, "builtin/tiny"), tasks=(task,), losses=LOSSES, seeds=(0,), n=n,
            steps=3, resamples=50, base=False, recipe={},
        )  # fmt: skip
    manifest = read_json(folder / "manifest.json")
    manifest["experiment"]["tasks"] = list(tasks)
    write_json(folder / "manifest.json", manifest)
    return sb.read_run(folder)


def without(run, tmp_path, loss, failure=None):
    """A copy of a run that lost the results of a loss."""
    folder = Path(shutil.copytree(run.path, tmp_path / "run"))
    for file in folder.glob("cells/*/cell.json"):
        if read_json(file)["loss"] == loss:
            file.with_name("metrics.json").unlink()
            if failure is not None:
                write_failure(file.parent, failure)
    return sb.read_run(folder)


def test_the_table_of_terms_of_one_task(one_task):
    assert_golden("terms_one_task", TermsTable().build(one_task))


def test_the_table_of_kernels_of_two_models_and_three_tasks(paper_run):
    assert_golden("kernels_two_models", KernelTable().build(paper_run))


def test_the_table_of_bandwidths_of_one_task(one_task):
    assert_golden("bandwidths_one_task", BandwidthTable().build(one_task))


def test_values_differences_and_tests_are_those_of_the_completions(one_task):
    data = TermsTable().build(one_task).data.set_index("loss")
    exact = one_task.completions.pivot(index="uid", columns="loss", values="exact").astype(bool)
    p_values = []
    for loss in TERMS:
        assert data.loc[loss, "exact_match_value"] == pytest.approx(100 * exact[loss].mean())
        if loss == "ce":
            continue
        gained, lost = (exact[loss] & ~exact["ce"]).sum(), (exact["ce"] & ~exact[loss]).sum()
        assert data.loc[loss, "difference"] == pytest.approx(100 * (gained - lost) / len(exact))
        p_values.append(binomtest(int(gained), int(gained + lost)).pvalue)
    corrected = by_hand(p_values)
    assert list(data.loc[list(TERMS[1:]), "p_holm"]) == pytest.approx(corrected)
    best = data.loc[list(TERMS[1:]), "difference"].max()
    expected = [p < 0.05 and data.loc[loss, "difference"] == best > 0
                for loss, p in zip(TERMS[1:], corrected, strict=True)]  # fmt: skip
    assert list(data.loc[list(TERMS[1:]), "best"]) == expected


@REPORTS
def test_bold_is_what_is_best_and_significantly_better(report, paper_run):
    artefact = report.build(paper_run)
    marked = [(artefact.table.loc[row, "Model"], column)
              for row, column in artefact.table.attrs["bold"]]  # fmt: skip
    best = artefact.data[artefact.data["best"]]
    names = {"Qwen/Qwen2.5-1.5B": "Qwen2.5 1.5B", "builtin/tiny": "builtin/tiny 2.14M"}
    assert sorted(marked) == sorted((names[row.model], row.task) for row in best.itertuples())
    assert all(artefact.table.loc[row, "Value"] == "Acc (%)"
               for row, _ in artefact.table.attrs["bold"])  # fmt: skip
    assert len(best) > 0
    assert tables.to_markdown(artefact.table).count("**") == 2 * len(best)


def test_planted_answers_give_a_known_table(tmp_path):
    answers = [str(at) for at in range(20)]
    predictions = {
        "ce": ["none"] * 20,
        "smmd[term=mmd]": answers[:12] + ["99"] * 8,
        "smmd[term=smooth]": answers[:4] + ["99"] * 16,
        "smmd": answers,
    }
    write_run(
        tmp_path, tasks=("gsm8k",), planted=Planted(answers, predictions), seeds=(0,), steps=3,
        resamples=20,
    )  # fmt: skip
    artefact = TermsTable().build(sb.read_run(tmp_path))
    table = artefact.table.set_index("Terms")
    assert [text.split()[0] for text in table["Acc (%)"]] == ["0.0", "60.0", "20.0", "100.0"]
    assert list(table["p (Holm)"]) == ["–", "<0.001", "0.125", "<0.001"]
    assert artefact.table.attrs["bold"] == [(3, "Acc (%)")]
    assert "n = 20 test examples; seed 0; at most 100.0 %" in artefact.caption


def test_published_values_stand_beside_the_papers_setting_alone(paper_run):
    artefact = TermsTable().build(paper_run)
    table = artefact.table
    paper = table[table["Value"] == "Paper"].set_index(["Model", "Terms"])
    assert set(paper.index.get_level_values("Model")) == {"Qwen2.5 1.5B"}
    assert list(paper.loc[("Qwen2.5 1.5B", "none (CE)")][list(PAPERS[1])]) == [
        "54.97", "68.60", "–",
    ]  # fmt: skip
    assert list(paper.loc[("Qwen2.5 1.5B", "MMD + smoothness")][list(PAPERS[1])]) == [
        "57.77", "71.10", "–",
    ]  # fmt: skip
    assert (
        "arithmetic with Qwen2.5-1.5B: 200 of 10,000 test examples (a path check on a small subset)"
    ) in artefact.caption


def test_another_model_has_no_published_value_and_the_caption_says_so(one_task):
    artefact = TermsTable().build(one_task)
    assert not {"Paper", "Δ to paper"} & set(artefact.table.columns)
    assert "No published values for arithmetic[operations=1..2]: a model that" in artefact.caption


@pytest.mark.parametrize(("source", "shown"), [("synthetic", False), ("kaggle", True)])
def test_synthetic_clocks_are_not_compared(source, shown, tmp_path):
    write_run(
        tmp_path, models=("Qwen/Qwen2.5-VL-3B-Instruct",), tasks=("clock_time",), losses=TERMS,
        seeds=(0,), n=1440, steps=3, resamples=20, source=source, recipe={},
    )  # fmt: skip
    table = TermsTable().build(sb.read_run(tmp_path)).table
    assert ("Paper" in table) is shown
    if shown:
        assert list(table["Paper"]) == ["46.39", "68.61", "75.14", "74.30"]


def test_bandwidths_are_those_that_change_nothing_else_small_sets_first(one_task):
    assert BandwidthTable().labels(one_task) == {
        "ce": "none (CE)", "smmd": "{2}", "smmd[sigma=4]": "{4}",
        "smmd[sigma=1+2+3]": "{1, 2, 3}", "smmd[sigma=1.7+2+2.3]": "{1.7, 2, 2.3}",
    }  # fmt: skip


def test_only_the_seeds_that_every_row_has_are_compared(one_task, tmp_path):
    write_run(tmp_path / "run", losses=TERMS, seeds=(0,), n=50, steps=3, resamples=20)
    write_run(
        tmp_path / "more", losses=("ce", "smmd"), seeds=(1, 2), n=50, steps=3, resamples=20,
        base=False,
    )  # fmt: skip
    add_cells(tmp_path / "more", tmp_path / "run")
    artefact = TermsTable().build(sb.read_run(tmp_path / "run"))
    assert set(artefact.data["seed"]) == {0}
    assert "; seed 0 (seeds 1, 2 of CE, SMMD left out" in artefact.caption


def test_several_seeds_give_a_deviation_and_the_largest_p(tmp_path):
    write_run(tmp_path, losses=TERMS, seeds=(0, 1, 2), n=50, steps=3, resamples=20)
    run = sb.read_run(tmp_path)
    artefact = TermsTable().build(run)
    row = artefact.table.set_index("Terms").loc["MMD + smoothness"]
    ours = run.metrics.query("metric == 'exact_match' and loss == 'smmd'")["value"]
    assert row["Acc (%)"] == f"{ours.mean():.1f} ± {ours.std():.1f}"
    p = run.comparisons.query("metric == 'exact_match' and loss == 'smmd'")["p"]
    assert set(artefact.data.query("loss == 'smmd'")["p"]) == {p.max()}
    assert "seeds 0, 1, 2" in artefact.caption
    assert "the largest p of the seeds" in artefact.caption


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (None, "pending"),
        ({"stage": "train", "error": "out of memory"}, "failed in train"),
        ({"skipped": True, "error": "no"}, "skipped"),
    ],
)
def test_a_row_without_a_result_says_why_in_place(failure, said, one_task, tmp_path):
    run = without(one_task, tmp_path, "smmd[term=mmd]", failure)
    artefact = TermsTable().build(run)
    table = artefact.table.set_index("Terms")
    assert list(table.loc["MMD"]) == ["builtin/tiny 2.14M", said, "–", "–"]
    assert artefact.caption.endswith(
        f" Without a result: builtin/tiny smmd[term=mmd] seed 0 ({said})."
    )
    assert r"\begin{tabular}{llrrr}" in to_latex(artefact.table, "", "")


def test_a_row_that_is_not_in_the_run_is_named_in_place(tmp_path):
    losses = ("ce", "smmd", "smmd[term=smooth]")
    write_run(tmp_path, losses=losses, seeds=(0,), n=30, steps=3, resamples=20)
    table = TermsTable().build(sb.read_run(tmp_path)).table.set_index("Terms")
    assert table.loc["MMD", "Acc (%)"] == "not run"
    assert re.match(r"\d", table.loc["smoothness", "Acc (%)"])


def test_tasks_without_a_variant_are_left_out(tmp_path):
    write_run(tmp_path, tasks=("svamp",), losses=TERMS, seeds=(0,), n=30, steps=3, resamples=20)
    write_run(
        tmp_path / "plain", tasks=("gsm8k",), losses=("ce", "smmd"), seeds=(0,), n=30, steps=3,
        resamples=20,
    )  # fmt: skip
    add_cells(tmp_path / "plain", tmp_path)
    artefact = TermsTable().build(sb.read_run(tmp_path))
    assert set(artefact.data["task"]) == {"svamp"}
    assert artefact.table.attrs["title"].endswith(": svamp")


@pytest.mark.parametrize(
    ("report", "what"),
    [(TermsTable(), "terms"), (KernelTable(), "kernel"), (BandwidthTable(), "bandwidth")],
)
def test_runs_without_the_variants_are_skipped(report, what, run_folder, one_task, tmp_path):
    assert report.skip(sb.read_run(run_folder)) == f"the run varies no {what} of smmd"
    folder = Path(shutil.copytree(one_task.path, tmp_path / "run"))
    for file in folder.glob("cells/*/metrics.json"):
        file.unlink()
    said = f"no variant of the {what} of smmd has an accuracy yet"
    assert report.skip(sb.read_run(folder)) == said


@REPORTS
@pytest.mark.parametrize("name", ["one_task", "paper_run"])
def test_the_table_fits_a_terminal_of_100_columns(report, name, request):
    artefact = report.build(request.getfixturevalue(name))
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(tables.to_terminal(artefact.table, "title", width=100))
    assert max(len(line.rstrip()) for line in captured.get().splitlines()) <= 100


@REPORTS
def test_the_same_run_gives_the_same_bytes(report, paper_run):
    first, again = (report.build(sb.read_run(paper_run.path)) for _ in range(2))
    assert first.caption == again.caption
    assert first.table.attrs == again.table.attrs
    for write in (tables.to_csv, tables.to_markdown, lambda t: to_latex(t, "", "")):
        assert write(first.table) == write(again.table)
    assert tables.to_csv(first.data) == tables.to_csv(again.data)
