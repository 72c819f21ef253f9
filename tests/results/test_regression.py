"""What `smmd-bench regress` left, read back."""

import smmd_bench as sb
from smmd_bench.results.regression import COLUMNS, regression_samples
from tests.regression_checks import write_checks
from tests.runs import write_run


def test_a_run_without_checks_has_an_empty_frame(run_folder):
    frame = sb.read_run(run_folder).regression
    assert frame.empty
    assert list(frame.columns) == list(COLUMNS)


def test_one_row_a_checkpoint_and_group_in_the_order_of_the_run(tmp_path):
    write_run(tmp_path, tasks=("gsm8k",), losses=("smmd", "ce"), n=20, steps=5)
    write_checks(tmp_path, limit=20)
    write_checks(tmp_path)
    frame = sb.read_run(tmp_path).regression
    assert len(frame) == 2 * 5 * 5

    of_mmlu = frame[frame["name"] == "mmlu"]
    order = ["base 0", "ce 0", "ce 1", "smmd 0", "smmd 1"]
    rows = of_mmlu.itertuples()
    assert [f"{row.loss} {row.seed}" for row in rows] == 2 * order
    # all the questions first
    is_whole = of_mmlu["limit"].isna()
    assert [*is_whole] == [True] * 5 + [False] * 5
    assert [*of_mmlu["documents"]] == [14042] * 5 + [80] * 5

    by_loss = of_mmlu.set_index("loss")
    against = by_loss["against_loss"]
    assert set(against["smmd"]) == {"ce"}
    assert set(against["ce"]) == {"base"}

    first = of_mmlu.iloc[0]
    samples = regression_samples(tmp_path, first["address"])
    share = samples["acc"].mean()
    assert share * 100 == first["value"]


def test_what_was_found_of_other_weights_is_left_out(tmp_path):
    write_run(
        tmp_path, tasks=("gsm8k",), losses=("ce", "smmd"), seeds=(0,), n=20, steps=5
    )
    write_checks(tmp_path, limit=20)
    again = {"losses": ("ce",), "weights": "others"}  # trained anew
    write_run(tmp_path, tasks=("gsm8k",), seeds=(0,), n=20, steps=5, **again)
    assert set(sb.read_run(tmp_path).regression["loss"]) == {"base", "smmd"}
