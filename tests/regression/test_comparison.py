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
    samples = pd.DataFrame(
        {"subtask": "squadv2", "doc_id": [0, 1], "exact_match": [0.0, 1.0]}
    )
    metrics = {"sample_len": 2, "f1,none": 61.5, "exact_match,none": 0.5}
    f1, exact = evaluate.rows_of(metrics, samples)

    assert f1["value"] == 61.5
    assert f1["unit"] == ""
    assert exact["value"] == 50.0
    assert exact["unit"] == "percent"


def test_a_comparison_is_paired_by_question_and_leaves_out_those_that_changed():
    rows = zip(
        "aaabb", [0, 1, 2, 0, 1], "vwxyz", [1.0, 1.0, 1.0, 0.0, 0.0], strict=True
    )
    samples = pd.DataFrame(rows, columns=["subtask", "doc_id", "doc_hash", "acc"])
    other = samples.iloc[::-1].assign(acc=[1.0, 0.0, 0.0, 1.0, 0.0])

    comparison = compare(samples, other, "acc")
    assert comparison["difference"] == pytest.approx(20)
    assert comparison["low"] <= 20 <= comparison["high"]
    counts = [comparison[name] for name in ("b", "c", "n")]
    assert counts == [2, 1, 5]

    rouge = [frame.rename(columns={"acc": "rouge1"}) for frame in (samples, other)]
    assert "p" not in compare(*rouge, "rouge1")

    some_changed = other.assign(doc_hash=[*"z?x?v"])
    comparison = compare(samples, some_changed, "acc")
    assert comparison["n"] == 3
    assert comparison["left_out"] == 2
    all_changed = other.assign(doc_hash="-")
    assert compare(samples, all_changed, "acc") == {}
