"""The arithmetic of the table, on planted numbers."""

import statistics

import numpy as np
import pandas as pd
import pytest

from smmd_bench.overhead.ratios import memory_ratio, overhead_frame, step_ratio
from smmd_bench.overhead.settings import STOCK

ROWS = (STOCK, "ce", "smmd")
CE = {0: [9.0, 2.0, 4.0, 1.0], 1: [9.0, 3.0, 5.0, 2.0]}  # seconds by repeat; the first is dropped
SMMD = {0: [1.0, 2.2, 4.0, 1.3], 1: [1.0, 3.0, 6.0, 2.8]}
RATIOS = [1.1, 1.0, 1.3, 1.0, 1.2, 1.4]  # of the kept steps, pair by pair


def lines(row, seconds, factor=0.5):
    return [
        (row, repeat, step, wall, factor * wall, step == 1)
        for repeat, walls in seconds.items()
        for step, wall in enumerate(walls, 1)
    ]


def frames():
    columns = ["row", "repeat", "step", "wall_seconds", "cpu_seconds", "dropped"]
    steps = pd.DataFrame([*lines("ce", CE), *lines("smmd", SMMD)], columns=columns)
    peaks = {"ce": (2e9, 4e9), "smmd": (3e9, 5e9)}
    runs = [
        (row, repeat, peak, "cpu", 1, None)
        for row, both in peaks.items()
        for repeat, peak in enumerate(both)
    ]
    runs += [(STOCK, 0, None, None, None, "killed"), (STOCK, 1, None, None, None, "killed")]
    names = ["row", "repeat", "peak_bytes", "device", "threads", "error"]
    types = {"peak_bytes": "Int64", "threads": "Int64", "error": "str"}
    return steps, pd.DataFrame(runs, columns=names).astype(types)


def kept(steps):
    return steps[~steps["dropped"]]


def test_the_ratio_is_the_median_over_paired_kept_steps():
    steps, _ = frames()
    found = step_ratio(kept(steps), "smmd", "ce", "wall")
    assert found.value == pytest.approx(statistics.median(RATIOS)) == pytest.approx(1.15)
    assert min(RATIOS) <= found.low < found.value < found.high <= max(RATIOS)


def test_the_order_of_the_lines_does_not_change_the_pairs():
    steps, _ = frames()
    shuffled = steps.sample(frac=1, random_state=0)
    pairs = [step_ratio(kept(frame), "smmd", "ce", "cpu") for frame in (steps, shuffled)]
    assert pairs[0] == pairs[1]


def test_the_interval_covers_a_median_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        ratios = rng.lognormal(0, 0.1, 60)
        frame = pd.DataFrame({"repeat": 0, "step": range(60), "wall_seconds": 1.0, "row": "ce"})
        other = frame.assign(row="x", wall_seconds=ratios)
        found = step_ratio(pd.concat([frame, other]), "x", "ce", "wall")
        covered += found.low <= 1 <= found.high
    assert 182 <= covered <= 198  # 95% of 200, and three standard errors


def test_a_single_pair_has_no_interval_and_no_pair_no_ratio():
    steps, _ = frames()
    one = steps[(steps["repeat"] == 0) & (steps["step"] == 2)]
    found = step_ratio(one, "smmd", "ce", "wall")
    assert (found.value, found.low, found.high) == (pytest.approx(1.1), None, None)
    assert step_ratio(one, STOCK, "ce", "wall") is None


def test_the_ratio_of_memory_is_paired_by_repeat():
    _, runs = frames()
    found = memory_ratio(runs, "smmd", "ce")
    assert (found.value, found.low, found.high) == pytest.approx((1.375, 1.25, 1.5))


def test_times_are_means_and_deviations_over_repeats_without_the_dropped_steps():
    line = overhead_frame(*frames(), ROWS).set_index("row").loc["ce"]
    means = [1000 * statistics.fmean(CE[repeat][1:]) for repeat in (0, 1)]
    assert line["wall_ms"] == pytest.approx(statistics.fmean(means))
    assert line["wall_ms_deviation"] == pytest.approx(statistics.stdev(means))
    assert line["cpu_ms"] == pytest.approx(line["wall_ms"] / 2)
    assert (line["repeats"], line["steps"], line["memory_gb"]) == (2, 6, 3.0)


def test_the_frame_has_the_ratios_and_those_of_each_repeat():
    line = overhead_frame(*frames(), ROWS).set_index("row").loc["smmd"]
    assert line["wall_to_ce"] == line["cpu_to_ce"] == pytest.approx(1.15)
    assert line["wall_to_ce_repeat_low"] == pytest.approx(1.1)
    assert line["wall_to_ce_repeat_high"] == pytest.approx(1.2)
    assert line["memory_to_ce"] == pytest.approx(1.375)
    assert pd.isna(line["wall_to_stock"])


def test_a_failed_row_has_its_errors_and_no_numbers():
    line = overhead_frame(*frames(), ROWS).set_index("row").loc[STOCK]
    assert line["error"] == "repeat 1: killed; repeat 2: killed"
    assert line["repeats"] == 0
    assert pd.isna(line["wall_ms"])
    assert pd.isna(line["memory_gb"])
