import math
from fractions import Fraction

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.plugin_system.registry import load_task
from smmd_bench.scoring.score import score_frame
from tests.conftest import expect_user_error

TASK = load_task("arithmetic")


def completions(pairs, **columns):
    frame = pd.DataFrame(pairs, columns=["completion", "target"])
    return frame.assign(uid=[f"u{at}" for at in range(len(pairs))], **columns)


def one(completion, target):
    """The score of one completion."""
    (row,) = score_frame(TASK, completions([(completion, target)])).to_dict("records")
    return row


def test_values_are_compared_exactly_and_not_their_text():
    row = one("0.5", "1/2")
    assert row["exact"] is True
    assert row["text_match"] is False
    assert row["error"] == 0.0
    row = one("0.3333333333333333", "1/3")  # equal as floats
    assert row["parsed"] == row["answer"]
    assert not row["exact"]
    assert row["error"] > 0
    assert one(" 3\n", "3")["text_match"]


def test_an_unparsable_completion_is_wrong_and_has_no_error():
    row = one("many", "3")
    assert row["valid"] is False
    assert row["exact"] is False
    assert row["category"] == "invalid"
    assert math.isnan(row["parsed"])
    assert math.isnan(row["error"])


def test_errors_are_computed_before_they_are_rounded_and_are_infinite_beyond_float64():
    assert one("10000000000000000001", "10000000000000000000")["error"] == 1.0
    for sign in (1, -1):
        row = one(str(sign * (10**400 - 1)), "1")
        assert row["parsed"] == sign * math.inf
        assert row["error"] == math.inf


def test_attributes_are_taken_over_and_the_order_is_kept():
    more = {"operations": [4, 5], "prompt": "p", "finish_reason": ["stop", "length"]}
    scores = score_frame(TASK, completions([("1", "1"), ("2", "3")], **more))
    assert scores["uid"].tolist() == ["u0", "u1"]
    assert scores["operations"].tolist() == [4, 5]
    assert scores["truncated"].tolist() == [False, True]
    assert "prompt" not in scores


def test_an_attribute_cannot_shadow_a_score():
    with expect_user_error("attribute error of task arithmetic"):
        score_frame(TASK, completions([("1", "1")], error=[1]))


def test_score_gives_a_row_a_completion_and_the_metrics():
    frame = sb.score(
        TASK, ["1", "-7", "no", "70"], ["1", "7", "7", "7"], {"level": list("abcd")}
    )
    assert frame["category"].tolist() == [
        "exact",
        "sign_flip",
        "invalid",
        "scale_x10^1",
    ]
    assert frame["exact"].tolist() == [True, False, False, False]
    assert frame["level"].tolist() == list("abcd")

    metrics = frame.attrs["metrics"]
    assert metrics["exact_match"]["value"] == 25.0
    assert metrics["parse_failure_rate"]["value"] == 25.0
    assert metrics["mean_absolute_error"] == pytest.approx(
        {"value": (0 + 14 + 63) / 3, "low": 0, "high": 63, "n": 3}
    )


@pytest.mark.parametrize("reference", ["1/2", 0.5, Fraction(1, 2)])
def test_references_are_targets_or_numbers(reference):
    assert sb.score(TASK, ["0.5"], [reference])["exact"].all()
    assert sb.score("arithmetic[operations=1..2]", ["0.5"], [reference])["exact"].all()
    assert sb.score(TASK, ["9" * 400], [10**400 - 1])["exact"].all()


@pytest.mark.parametrize(
    ("completions", "references", "said"),
    [
        (["1", "2"], ["1"], "2 completions and 1 references"),
        ([], [], "0 completions and 0 references"),
        *[
            (["1", x], ["1", "2"], rf"Completion 1 \({x}\) is not text")
            for x in (None, 3, math.nan)
        ],
        *[
            (
                ["1", "2"],
                ["1", x],
                rf"Reference 1 \('{x}'\) holds no number that the task arithm",
            )
            for x in ("none", math.nan, math.inf, None)
        ],
    ],
)
def test_what_cannot_be_scored_is_named(completions, references, said):
    with expect_user_error(said):
        sb.score(TASK, completions, references)


@pytest.mark.parametrize("attributes", [{"exact": [1, 2]}, {"level": ["easy"]}])
def test_an_attribute_has_a_name_of_its_own_and_a_value_a_completion(attributes):
    with expect_user_error(f"The attribute '{next(iter(attributes))}' has the name"):
        sb.score(TASK, ["1", "2"], ["1", "2"], attributes)


def test_the_first_answer_says_what_a_task_notes(monkeypatch):
    def annotate(task, completion, target):
        return (
            {"long": 0.0, "why": "it is wrong"} if completion == "9" else {"long": 0.0}
        )

    monkeypatch.setattr(type(TASK), "annotate", annotate, raising=False)
    frame = score_frame(TASK, completions([("1", "1"), ("9", "2")]))
    assert frame["long"].tolist() == [0.0, 0.0]
    assert "why" not in frame
