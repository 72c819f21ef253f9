import math
from fractions import Fraction

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.errors import UserError
from smmd_bench.scoring.score import score_frame
from tests.toy_tasks import ToyArithmetic

TASK = ToyArithmetic()


def completions(pairs: list[tuple[str, str]], **columns: object) -> pd.DataFrame:
    frame = pd.DataFrame(pairs, columns=["completion", "target"])
    return frame.assign(uid=[f"u{at}" for at in range(len(pairs))], **columns)


def test_values_are_compared_and_not_text():
    (row,) = score_frame(TASK, completions([("0.5", "1/2")])).to_dict("records")
    assert (row["exact"], row["text_match"], row["error"]) == (True, False, 0.0)


def test_exactness_is_decided_on_fractions_where_floats_are_equal():
    (row,) = score_frame(TASK, completions([("0.3333333333333333", "1/3")])).to_dict("records")
    assert row["parsed"] == row["answer"]
    assert not row["exact"]
    assert row["error"] > 0


def test_an_unparsable_completion_is_wrong_and_has_no_error():
    (row,) = score_frame(TASK, completions([("many", "3")])).to_dict("records")
    assert (row["valid"], row["exact"], row["category"]) == (False, False, "invalid")
    assert math.isnan(row["parsed"])
    assert math.isnan(row["error"])


def test_space_around_a_text_does_not_matter():
    assert score_frame(TASK, completions([(" 3\n", "3")]))["text_match"].all()


def test_values_beyond_float64_are_infinite():
    scores = score_frame(TASK, completions([("9" * 400, "1"), ("-" + "9" * 400, "1")]))
    assert scores["parsed"].tolist() == [math.inf, -math.inf]
    assert scores["error"].tolist() == [math.inf, math.inf]


def test_an_error_is_computed_before_it_is_rounded():
    (row,) = score_frame(
        TASK, completions([("10000000000000000001", "10000000000000000000")])
    ).to_dict("records")
    assert row["error"] == 1.0


def test_a_finish_by_length_is_truncated():
    frame = completions([("1", "1"), ("1", "1")], finish_reason=["stop", "length"])
    assert score_frame(TASK, frame)["truncated"].tolist() == [False, True]


def test_attributes_are_taken_over_and_the_order_is_kept():
    frame = completions([("1", "1"), ("2", "3")], operations=[4, 5], prompt="p")
    scores = score_frame(TASK, frame)
    assert scores["uid"].tolist() == ["u0", "u1"]
    assert scores["operations"].tolist() == [4, 5]
    assert "prompt" not in scores


def test_the_path_of_a_picture_is_no_attribute():
    frame = completions([("1", "1")], image="/cache/clock.png")
    assert "image" not in score_frame(TASK, frame)


def test_an_attribute_cannot_shadow_a_score():
    with pytest.raises(UserError, match="attribute error of task arithmetic"):
        score_frame(TASK, completions([("1", "1")], error=[1]))


def test_no_completion_gives_an_empty_frame_with_all_columns():
    scores = score_frame(TASK, completions([], finish_reason=[]))
    assert len(scores) == 0
    assert {"exact", "valid", "category", "truncated"} <= set(scores.columns)


def test_score_gives_a_row_a_completion_and_the_metrics():
    frame = sb.score(TASK, ["1", "-7", "no", "70"], ["1", "7", "7", "7"], {"level": list("abcd")})
    assert frame["category"].tolist() == ["exact", "sign_flip", "invalid", "scale_x10^1"]
    assert frame["exact"].tolist() == [True, False, False, False]
    assert frame["level"].tolist() == list("abcd")
    metrics = frame.attrs["metrics"]
    assert metrics["exact_match"]["value"] == 25.0
    assert metrics["parse_failure_rate"]["value"] == 25.0
    assert metrics["mean_absolute_error"] == pytest.approx(
        {"value": (0 + 14 + 63) / 3, "low": 0, "high": 63, "n": 3}
    )


def test_score_says_nothing_of_truncation_that_it_cannot_know():
    assert "truncation_rate" not in sb.score(TASK, ["1"], ["1"]).attrs["metrics"]


@pytest.mark.parametrize("reference", ["1/2", 0.5, Fraction(1, 2)])
def test_references_are_targets_or_numbers(reference):
    assert sb.score(TASK, ["0.5"], [reference])["exact"].all()


def test_score_takes_a_spec():
    frame = sb.score("arithmetic[operations=1..2]", ["-7/2", "what"], ["-3.5", "1"])
    assert frame["exact"].tolist() == [True, False]


def test_lengths_must_agree():
    with pytest.raises(UserError, match="2 completions and 1 references"):
        sb.score(TASK, ["1", "2"], ["1"])


def test_nothing_to_score_is_one_sentence():
    with pytest.raises(UserError, match="No completions were given"):
        sb.score(TASK, [], [])


@pytest.mark.parametrize("completion", [None, 3, math.nan])
def test_a_completion_that_is_no_text_is_named(completion):
    with pytest.raises(UserError, match=r"Completion 1 \((None|3|nan)\) is not text"):
        sb.score(TASK, ["1", completion], ["1", "2"])


def test_a_huge_integer_is_a_reference():
    assert sb.score(TASK, ["9" * 400], [10**400 - 1])["exact"].all()


@pytest.mark.parametrize("reference", ["none", math.nan, math.inf, None])
def test_a_reference_without_a_number_is_named(reference):
    with pytest.raises(UserError, match=r"Reference 1 \("):
        sb.score(TASK, ["1", "2"], ["1", reference])
