"""Table 11: ROUGE beside the paper's, its differences, and how few of its tokens are numeric."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from smmd_bench.reports.digit_distribution import DigitDistribution
from smmd_bench.reports.error_histogram import ErrorHistogram
from smmd_bench.reports.samsum_table import SamsumTable
from smmd_bench.reports.scale_errors import ScaleErrors
from smmd_bench.reports.signed_errors import SignedErrors
from smmd_bench.tasks.samsum import SAMSum

import smmd_bench as sb
from smmd_bench.publishing.examples import embedded_examples
from smmd_bench.publishing.tables import to_terminal
from smmd_bench.results.frames import RunFrames
from smmd_bench.scoring.statistics import paired_difference
from smmd_bench.storage.files import read_json, write_json
from tests.reports.golden import assert_golden
from tests.runs import write_run

MODEL = "Qwen/Qwen2.5-1.5B"
LOSSES = ("ce", "ntl", "smmd[sigma=2.0]", "smmd")


@pytest.fixture(scope="module")
def paper_run(tmp_path_factory: pytest.TempPathFactory) -> RunFrames:
    """The paper's model on as many dialogues as the paper's, with the receipts of trainings."""
    folder = tmp_path_factory.mktemp("runs") / "paper"
    cells = write_run(
        folder, models=(MODEL,), tasks=("samsum",), losses=LOSSES, seeds=(0,), n=819, steps=5,
        resamples=100, recipe={},
    )  # fmt: skip
    for cell in cells:
        if cell.loss != "base":
            counts = {"tokens": 412_345, "digit_tokens": 6_400, "numeric": 6_321}
            file = folder / "cells" / cell.address / "train.json"
            write_json(file, {**read_json(file), "numeric_targets": counts})
    return sb.read_run(folder)


@pytest.fixture(scope="module")
def seeds_run(tmp_path_factory: pytest.TempPathFactory) -> RunFrames:
    """The paper's model and another, with two seeds, on some dialogues."""
    folder = tmp_path_factory.mktemp("runs") / "seeds"
    write_run(
        folder, models=(MODEL, "builtin/tiny"), tasks=("samsum", "gsm8k"), losses=("ce", "smmd"),
        n=40, steps=5, resamples=100,
    )  # fmt: skip
    return sb.read_run(folder)


def test_the_table_of_a_model_of_the_paper(paper_run: RunFrames) -> None:
    assert_golden("samsum_paper_model", SamsumTable().build(paper_run))


def test_the_table_of_two_models_over_two_seeds(seeds_run: RunFrames) -> None:
    assert_golden("samsum_two_models_two_seeds", SamsumTable().build(seeds_run))


@pytest.mark.parametrize("name", ["paper_run", "seeds_run"])
def test_the_table_fits_a_terminal_of_100_columns(name: str, request: Any) -> None:
    artefact = SamsumTable().build(request.getfixturevalue(name))
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(to_terminal(artefact.table, "title", width=100))
    assert max(len(line.rstrip()) for line in captured.get().splitlines()) <= 100


def test_the_papers_values_stand_beside_its_setting_alone(
    paper_run: RunFrames, seeds_run: RunFrames
) -> None:
    table = SamsumTable().build(paper_run).table
    assert table is not None
    table = table.set_index(["Loss", "ROUGE"])
    assert list(table.loc[("SMMD", "L"), ["Paper", "Paper Δ to CE"]]) == ["43.01", "−0.48"]
    assert table.loc[("SMMD", "L"), "Δ to paper"] != "–"
    assert list(table.loc[("CE", "1"), ["Paper", "Paper Δ to CE"]]) == ["51.90", "–"]
    assert set(table.loc["NTL", "Paper"]) == {"–"}
    assert set(table.loc["SMMD[sigma=2.0]", "Paper"]) == {"–"}
    some = SamsumTable().build(seeds_run)
    assert some.table is not None
    assert set(some.table.filter(like="aper").stack()) == {"not compared"}
    assert "40 of 819 test examples (a path check on a small subset)" in some.caption


def test_each_difference_is_that_of_its_own_rouge(paper_run: RunFrames) -> None:
    data = SamsumTable().build(paper_run).data
    assert data is not None
    folders = paper_run.cells.set_index("loss")["address"]
    ours, ce = (paper_run.read("scores", None, [folders[loss]]) for loss in ("smmd", "ce"))
    for metric in SAMSum().metrics()[:3]:
        row = data[(data["loss"] == "smmd") & (data["metric"] == metric.name)].iloc[0]
        expected = paired_difference(metric, ours, ce, resamples=100)
        assert row["difference"] == pytest.approx(expected.value)
        assert (row["difference_low"], row["difference_high"]) == (expected.low, expected.high)
        assert row["value"] == pytest.approx(100 * ours[metric.name].mean())


def test_the_caption_says_how_many_tokens_are_numeric(paper_run: RunFrames) -> None:
    assert "training set that are numeric: 6,321 of 412,345 (1.5%);" in (
        SamsumTable().build(paper_run).caption
    )


def test_other_runs_are_skipped(run_folder: Path, tmp_path: Path, paper_run: RunFrames) -> None:
    assert SamsumTable().skip(sb.read_run(run_folder)) == "the run has no cell of samsum"
    folder = Path(shutil.copytree(paper_run.path, tmp_path / "run"))
    for file in folder.glob("cells/*/metrics.json"):
        file.unlink()
    assert SamsumTable().skip(sb.read_run(folder)) == "no cell of samsum has results yet"


@pytest.mark.parametrize("report", [ScaleErrors, ErrorHistogram, SignedErrors, DigitDistribution])
def test_summaries_are_no_answers_with_errors_or_digits(
    report: Any, paper_run: RunFrames, seeds_run: RunFrames
) -> None:
    assert report().skip(paper_run) == "no task has numbers as answers"
    assert report().skip(seeds_run) is None
    tables = report().build(seeds_run)
    assert set(tables.data["task"].unique()) == {"gsm8k"}


def test_a_run_with_mixed_tasks_keeps_mcnemars_test_where_it_has_one(seeds_run: RunFrames) -> None:
    compared = seeds_run.comparisons.set_index("task")
    assert compared.loc["samsum", "p"].isna().all()
    assert compared.loc["gsm8k", "p"].notna().all()
    content = read_json(
        seeds_run.path / "cells" / compared.loc["samsum", "address"].iloc[0] / "metrics.json"
    )
    assert content is not None
    assert content["counts"].keys() == {"text_match", "truncated"}


def test_the_page_marks_no_summary_as_right_or_wrong(seeds_run: RunFrames) -> None:
    found = embedded_examples(seeds_run)
    flags: dict[str, set[str]] = {"samsum": set(), "gsm8k": set()}
    for group, *_, exact, _ in found["rows"]:
        flags[found["groups"][group]["task"]] |= set(exact)
    assert flags == {"samsum": {"-"}, "gsm8k": {"0", "1"}}


def test_made_dialogues_are_named_and_never_beside_the_paper(tmp_path: Path) -> None:
    task = "samsum[source=synthetic]"
    write_run(
        tmp_path / "run", models=(MODEL,), tasks=(task,), losses=("ce", "smmd"), seeds=(0,), n=819,
        steps=5, resamples=100,
    )  # fmt: skip
    made = SamsumTable().build(sb.read_run(tmp_path / "run"))
    assert made.table is not None
    assert made.table.attrs["title"] == "SAMSum dialogue summarization, synthetic dialogues"
    assert set(made.table["Paper"]) == {"not compared"}
    assert "No published values for samsum[source=synthetic]: synthetic data" in made.caption
