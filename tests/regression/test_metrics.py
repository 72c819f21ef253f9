"""Which numbers become percent."""

import pandas as pd
import pytest

from smmd_bench.regression.comparison import is_share
from smmd_bench.regression.evaluate import _rows


@pytest.mark.parametrize(
    ("metric", "documents", "share"),
    [
        ("acc", [0.0, 1.0], True),
        ("exact_match,strict-match", [1.0], True),
        ("f1", [0.25, None], True),
        ("f1", [25.0, 0.0], False),
        ("f1", [None], False),
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
    f1, exact = _rows(found, samples)
    assert (f1["value"], f1["unit"]) == (61.5, "")
    assert (exact["value"], exact["unit"]) == (50.0, "percent")
