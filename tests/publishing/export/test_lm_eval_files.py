"""lm-eval's own readers, and `smmd-bench score`, read the exported files."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from lm_eval.result_schema import EvalResults, SampleResult
from lm_eval.utils import (
    get_file_task_name,
    get_results_filenames,
    get_sample_results_filenames,
    hash_string,
    make_table,
)
from pydantic import TypeAdapter

from smmd_bench.cli import cli
from smmd_bench.conformance.stamped_cell import write_measured
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.results.frames import read_run
from smmd_bench.scoring.measure import measure
from smmd_bench.scoring.score import completions_frame
from tests.runs import quick_run

TASK = "arithmetic-operations-1..2"


@pytest.fixture
def files(arithmetic_run, export):
    """Results, samples by line, and their paths."""
    folder = export(arithmetic_run, "--seed", 0) / "lm_eval"
    names = [str(file) for file in folder.iterdir()]
    (results,), (samples,) = get_results_filenames(names), get_sample_results_filenames(names)
    lines = Path(samples).read_text(encoding="utf-8").splitlines()
    return json.loads(Path(results).read_text(encoding="utf-8")), [*map(json.loads, lines)], samples


def test_lm_eval_finds_the_files_and_tabulates_the_results(files, arithmetic_run):
    results, _, samples = files
    assert get_file_task_name(samples.rpartition("/")[2]) == TASK
    frame = read_run(arithmetic_run).metrics
    own = frame[(frame["loss"] == "smmd") & (frame["seed"] == 0)].set_index("metric")
    (row,) = (line for line in make_table(results).splitlines() if "exact_match" in line)
    value = f"{own.loc['exact_match', 'value'] / 100:.4f}"
    assert [cell.strip() for cell in row.split("|")][5:8] == ["exact_match", "↑", value]


def test_every_sample_is_of_lm_evals_schema(files):
    TypeAdapter(list[SampleResult]).validate_python(files[1], strict=True)
    assert all(s["prompt_hash"] == hash_string(s["doc"]["prompt"]) for s in files[1])


def test_the_results_are_of_lm_evals_schema(files):
    """But for what lm-eval itself writes otherwise: N/A, and settings that are no text."""
    results, task = files[0], files[0]["results"][TASK]
    kept = {key: value for key, value in task.items() if value != "N/A"}
    shown = {**results, "results": {TASK: kept}, "configs": {}}
    TypeAdapter(EvalResults).validate_python(shown)
    assert not {*results} - {*EvalResults.__annotations__}


def test_the_mean_of_the_samples_is_the_result(files):
    results, samples, _ = files
    for name in ("exact_match", "mean_absolute_error"):
        values = [sample[name] for sample in samples if name in sample]
        mean = results["results"][TASK][f"{name},none"]
        assert sum(values) / len(values) == pytest.approx(mean)
    assert "r_squared" not in samples[0]["metrics"]  # it is no mean


def test_score_reads_the_samples_back_with_the_same_metrics(tmp_path, export):
    """The completions are of real examples, some wrong, some cut off."""
    run = tmp_path / "run"
    frames = quick_run(run, tasks=("arithmetic",), losses=("smmd",))
    task = load_task("arithmetic")
    examples = task.examples("test", 0, 20)
    answers = [e.target if at % 3 else "x7" for at, e in enumerate(examples)]
    reasons = ["length" if at % 5 == 0 else "stop" for at in range(20)]
    completions = completions_frame(examples, {"completion": answers, "finish_reason": reasons})
    (address,) = frames.cells.loc[frames.cells["loss"] == "smmd", "address"]
    now = frames.current(address)
    scores, content = measure(task, completions)
    write_measured(now, completions, frames.read("probes", addresses=[address]), scores, content)
    (samples,) = (export(run) / "lm_eval").glob("samples_*")
    words = ["score", "--task=arithmetic", "--limit=20", f"--out={tmp_path / 'scored'}", "-q"]
    result = CliRunner().invoke(cli, [*words, f"--predictions={samples}"], standalone_mode=False)
    assert result.exception is None, result.exception
    again, own = read_run(tmp_path / "scored").metrics, read_run(run).metrics
    columns = ["metric", "value", "low", "high", "n"]
    own = own[own["loss"] == "smmd"][columns].to_dict("records")
    assert again[columns].to_dict("records") == own
    assert {m["metric"]: m["value"] for m in own}["truncation_rate"] == 20.0
