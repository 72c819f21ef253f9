"""Comparisons by an older statistic are made again."""

from smmd_bench.results import frames
from smmd_bench.run import comparison
from smmd_bench.run.comparison import missing_comparisons, write_comparisons
from tests.runs import quick_run


def test_a_comparison_by_an_older_statistic_is_missing(tmp_path, monkeypatch):
    run = quick_run(tmp_path, losses=("ce", "smmd"))
    assert len(run.comparisons)
    assert not missing_comparisons(run)

    for module in (comparison, frames):
        monkeypatch.setattr(module, "COMPARISON", "a newer one")

    newer = frames.read_run(tmp_path)
    assert newer.comparisons.empty
    assert len(missing_comparisons(newer)) == len(run.comparisons["address"].unique())
    assert write_comparisons(newer, resamples=20)
    assert len(frames.read_run(tmp_path).comparisons) == len(run.comparisons)
