import shutil
from pathlib import Path

import pytest
from rich.console import Console
from smmd_bench.reports.math_table import MathTable

import smmd_bench as sb
from smmd_bench.publishing.tables import to_terminal
from smmd_bench.storage.files import read_json, write_json
from tests.reports.golden import assert_golden
from tests.runs import Planted, add_cells, write_run

PAPER_LOSSES = ("ce", "gce", "ntl", "ntil", "smmd")


@pytest.fixture(scope="module")
def paper_run(tmp_path_factory):
    """One of the paper's models, with one seed, on as many examples of both test sets."""
    folder = tmp_path_factory.mktemp("runs") / "paper"
    names = {"models": ("Qwen/Qwen2.5-1.5B",), "losses": PAPER_LOSSES, "seeds": (0,), "recipe": {}}
    write_run(folder, tasks=("gsm8k",), n=1319, steps=5, resamples=100, **names)
    write_run(folder.with_name("svamp"), tasks=("svamp",), n=1000, steps=5, resamples=100, **names)
    add_cells(folder.with_name("svamp"), folder)
    return sb.read_run(folder)


@pytest.fixture(scope="module")
def seeds_run(tmp_path_factory):
    """The paper's model and another, with two seeds; on SVAMP as many examples as the paper."""
    folder = tmp_path_factory.mktemp("runs") / "seeds"
    write_run(
        folder, models=("Qwen/Qwen2.5-1.5B", "builtin/tiny"), tasks=("gsm8k", "svamp"),
        losses=("ce", "smmd"), n=1000, steps=5, resamples=100, recipe={},
    )  # fmt: skip
    return sb.read_run(folder)


def test_the_table_of_a_model_of_the_paper(paper_run):
    assert_golden("math_paper_model", MathTable().build(paper_run))


def test_the_table_of_two_models_over_two_seeds(seeds_run):
    assert_golden("math_two_models_two_seeds", MathTable().build(seeds_run))


@pytest.mark.parametrize("name", ["paper_run", "seeds_run"])
def test_the_table_fits_a_terminal_of_100_columns(name, request):
    artefact = MathTable().build(request.getfixturevalue(name))
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(to_terminal(artefact.table, "title", width=100))
    assert max(len(line.rstrip()) for line in captured.get().splitlines()) <= 100


def test_published_values_and_the_distance_to_them(paper_run):
    artefact = MathTable().build(paper_run)
    table = artefact.table.set_index(["Task", "Loss"])
    ours = artefact.data.set_index(["task", "loss"]).loc[("gsm8k", "smmd"), "exact_match_value"]
    distance = f"{ours - 57.77:+.1f}".replace("-", "−")
    assert list(table.loc[("gsm8k", "SMMD"), ["Paper", "Δ to paper"]]) == ["57.77", distance]
    assert table.loc[("svamp", "GCE"), "Paper"] == "71.10"
    assert table.loc[("gsm8k", "untuned"), "Paper"] == "–"


def test_the_caption_says_where_the_paper_prints_other_values(paper_run):
    caption = MathTable().build(paper_run).caption
    assert (
        "It prints CE on gsm8k with Qwen2.5 1.5B also as 54.97 in Table 5 of the paper and 55.04 "
        "in Table 10 of the paper, which names no model."
    ) in caption


def test_the_papers_values_stand_beside_the_same_setting_alone(seeds_run):
    artefact = MathTable().build(seeds_run)
    paper = artefact.table.set_index(["Model", "Task", "Loss"])["Paper"]
    assert paper["Qwen2.5", "svamp", "SMMD"] == "71.10"
    assert paper["Qwen2.5", "gsm8k", "SMMD"] == paper["builtin/tiny", "svamp", "SMMD"] == "–"
    assert (
        "No published values for gsm8k with Qwen2.5-1.5B: 1,000 of 1,319 test" in artefact.caption
    )
    assert "svamp with builtin/tiny: a model that is not in the paper" in artefact.caption
    assert "svamp with Qwen2.5-1.5B" not in artefact.caption


def test_another_format_of_the_task_says_so(tmp_path):
    write_run(
        tmp_path, models=("Qwen/Qwen2.5-1.5B",), tasks=("gsm8k[calculator=keep]",), seeds=(0,),
        n=20, steps=5, resamples=20,
    )  # fmt: skip
    artefact = MathTable().build(sb.read_run(tmp_path))
    assert set(artefact.table.filter(like="aper").stack()) == {"not compared"}
    assert (
        "No published values for gsm8k[calculator=keep]: another level or format"
        in artefact.caption
    )


def test_planted_answers_give_known_values(tmp_path):
    answers = ["1", "2", "3", "0"]
    planted = Planted(answers, {"ce": ["1", "0", "none", ""], "smmd": ["1", "2", "3", "0"]})
    write_run(tmp_path, tasks=("gsm8k",), planted=planted, seeds=(0,), steps=5, resamples=20)
    data = MathTable().build(sb.read_run(tmp_path)).data.set_index("loss")
    assert data["exact_match_value"].to_dict() == {"ce": 25, "smmd": 100}
    assert data["strict_match_value"].to_dict() == {"ce": 25, "smmd": 100}
    assert data["parse_failure_rate_value"].to_dict() == {"ce": 50, "smmd": 0}
    assert data["truncation_rate_value"].to_dict() == {"ce": 25, "smmd": 0}
    ours = data.loc["smmd"]
    assert (ours["difference"], ours["difference_b"], ours["difference_c"]) == (75, 3, 0)


def test_the_difference_is_to_cross_entropy_alone(paper_run):
    artefact = MathTable().build(paper_run)
    table = artefact.table.set_index(["Task", "Loss"])
    assert table.loc[("gsm8k", "CE"), "Δ to CE"] == "–"
    assert table.loc[("gsm8k", "SMMD"), "Δ to CE"] != "–"


def test_a_task_without_lm_evals_rules_has_no_columns_for_them(paper_run, tmp_path):
    folder = Path(shutil.copytree(paper_run.path, tmp_path / "run"))
    for file in folder.glob("cells/*/metrics.json"):
        content = read_json(file)
        assert content is not None
        for name in ("strict_match", "flexible_match"):
            del content["metrics"][name]
        write_json(file, content)
    artefact = MathTable().build(sb.read_run(folder))
    assert not any("lm-eval" in column for column in artefact.table)
    assert "lm-eval" not in artefact.caption


def test_the_caption_names_the_task_of_a_cell_without_a_result(paper_run, tmp_path):
    folder = Path(shutil.copytree(paper_run.path, tmp_path / "run"))
    cells = sb.read_run(folder).cells
    lost = cells[(cells["task"] == "svamp") & (cells["loss"] == "smmd")]["address"].iloc[0]
    (folder / "cells" / lost / "metrics.json").unlink()
    caption = MathTable().build(sb.read_run(folder)).caption
    assert caption.endswith("Without a result: Qwen/Qwen2.5-1.5B svamp smmd seed 0 (pending).")


def test_other_runs_are_skipped(run_folder, tmp_path):
    reason = "the run has no cell of gsm8k or svamp"
    assert MathTable().skip(sb.read_run(run_folder)) == reason
    write_json(tmp_path / "manifest.json", {"name": "empty", "experiment": {}})
    assert MathTable().skip(sb.read_run(tmp_path)) == reason


def test_a_run_without_results_is_skipped(tmp_path):
    write_run(tmp_path, tasks=("svamp",), seeds=(0,), n=5, steps=5, resamples=20)
    for file in tmp_path.glob("cells/*/metrics.json"):
        file.unlink()
    assert MathTable().skip(sb.read_run(tmp_path)) == "no cell of gsm8k or svamp has results yet"
