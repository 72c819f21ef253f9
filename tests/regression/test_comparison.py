"""What lm-eval's numbers are read as, and how two evaluations are compared question by question."""

import pandas as pd
import pytest

from smmd_bench.regression import evaluate
from smmd_bench.regression.comparison import compare, is_share


@pytest.mark.parametrize(
    ("metric", "documents", "share"),
    [
        ("acc", [0.0, 1.0], True),
        ("exact_match,strict-match", [1.0], True),
        ("f1", [0.25, None], True),
        ("f1", [25.0, 0.0], False),
        ("f1", None, False),
        ("brier_score", [0.1], False),
    ],
)
def test_a_share_is_known_by_name_and_by_its_documents(metric, documents, share):
    values = None if documents is None else pd.Series(documents, dtype="float64")
    assert is_share(metric, values) == share


def test_what_is_percent_already_stays_as_it_is():
    """lm-eval's squadv2 gives `f1` of all documents at once, in percent."""
    samples = pd.DataFrame({"subtask": "squadv2", "doc_id": [0, 1], "exact_match": [0.0, 1.0]})
    found = {"sample_len": 2, "f1,none": 61.5, "exact_match,none": 0.5}
    f1, exact = evaluate.rows_of(found, samples)
    assert (f1["value"], f1["unit"]) == (61.5, "")
    assert (exact["value"], exact["unit"]) == (50.0, "percent")


def test_a_comparison_is_paired_by_question_and_leaves_out_those_that_changed():
    right = [1.0, 1.0, 1.0, 0.0, 0.0]
    mine = pd.DataFrame({"subtask": ["a"] * 3 + ["b"] * 2, "doc_id": [0, 1, 2, 0, 1], "acc": right})
    other = mine.assign(acc=[0.0, 1.0, 0.0, 0.0, 1.0]).iloc[::-1]
    found = compare(mine, other, "acc")
    assert found["difference"] == pytest.approx(20)
    assert found["low"] <= 20 <= found["high"]
    assert (found["b"], found["c"], found["n"]) == (2, 1, 5)
    shares = [frame.rename(columns={"acc": "rouge1"}) for frame in (mine, other)]
    assert "p" not in compare(*shares, "rouge1")
    mine, other = (
        frame.assign(doc_hash=list(h)) for frame, h in ((mine, "vwxyz"), (other, "z?x?v"))
    )
    found = compare(mine, other, "acc")
    assert (found["n"], found["left_out"]) == (3, 2)
    assert compare(mine, other.assign(doc_hash="-"), "acc") == {}
