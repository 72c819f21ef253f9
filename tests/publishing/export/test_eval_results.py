"""`.eval_results/` holds what huggingface_hub's own parser reads."""

import yaml
from huggingface_hub import parse_eval_result_entries

from smmd_bench.results.frames import read_run
from tests.runs import quick_run


def test_a_whole_test_split_of_a_hub_data_set_gives_one_value(tmp_path, export):
    run = tmp_path / "run"
    quick_run(run, tasks=("gsm8k",), n=1319, resamples=None)
    text = (export(run) / ".eval_results" / "gsm8k.yaml").read_text()
    (entry,) = parse_eval_result_entries(yaml.safe_load(text))
    metrics = read_run(run).metrics
    own = metrics[(metrics["loss"] == "smmd") & (metrics["metric"] == "exact_match")].iloc[0]
    assert (entry.dataset_id, entry.task_id) == ("openai/gsm8k", "gsm8k")
    assert entry.value == round(own["value"], 4)
    assert entry.date == "2026-01-02T03:04:05+00:00"
    assert f"95% interval {own['low']:.2f} to {own['high']:.2f}, n 1319" in str(entry.notes)


def test_a_part_of_a_test_split_gives_none(make_run, export):
    assert not (export(make_run()) / ".eval_results").exists()  # 20 of 1,319


def test_a_task_that_is_made_here_gives_none(arithmetic_run, export):
    assert not (export(arithmetic_run, "--seed", 0) / ".eval_results").exists()
