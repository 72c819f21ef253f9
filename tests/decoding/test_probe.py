"""Digit probes: which prefixes are asked about, and what is kept of the answers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from smmd_bench.plugins.engines.transformers import TransformersEngine

from smmd_bench.contracts import Answer, EngineSettings, Example, NumericVocabulary
from smmd_bench.decoding import probe as module
from smmd_bench.decoding.answer_digits import answer_digits
from smmd_bench.decoding.probe import probe
from smmd_bench.encoding.numbers import numeric_vocabulary
from smmd_bench.encoding.prompts import encode_prompts, encode_targets

QUESTIONS = {"3+4=": "7", "6+9=": "15", "1-9=": "-8", "say a": "a", "2+2=": "4 or 40"}
ANSWER = Answer(Fraction(1))
EXAMPLES = [
    Example(prompt, prompt, target, ANSWER, answer_start=5 if "or" in target else 0)
    for prompt, target in QUESTIONS.items()
]
"""The answer of the last one is 40; "4 or" is a rationale."""


@pytest.fixture(scope="module", params=["digit", "triple"])
def probed(
    request: pytest.FixtureRequest, tiny_checkpoints: Callable[[str], Any]
) -> tuple[pd.DataFrame, NumericVocabulary, Any]:
    tiny = tiny_checkpoints(request.param)
    vocabulary = numeric_vocabulary(tiny.tokenizer)
    with TransformersEngine().open(tiny.base, EngineSettings()) as session:
        frame = _probe(session, tiny, vocabulary)
    return frame, vocabulary, tiny


def _probe(session: Any, tiny: Any, vocabulary: NumericVocabulary, **options: Any) -> pd.DataFrame:
    targets = encode_targets(tiny.tokenizer, list(QUESTIONS.values()))
    return probe(
        session,
        tiny.checkpoints["base"],
        encode_prompts(tiny.tokenizer, list(QUESTIONS)),
        targets,
        list(QUESTIONS),
        vocabulary,
        answer_digits=answer_digits(tiny.tokenizer, EXAMPLES, targets),
        **options,
    )


def test_every_numeric_token_of_a_target_has_a_row(probed: Any) -> None:
    frame, vocabulary, _ = probed
    columns = ["uid", "digit", "answer_digit", "target_value"]
    rows = list(frame[columns].itertuples(index=False, name=None))
    if len(vocabulary) == 10:
        assert rows == [
            ("3+4=", 0, 0, 7), ("6+9=", 0, 0, 1), ("6+9=", 1, 1, 5), ("1-9=", 0, 0, 8),
            ("2+2=", 0, -1, 4), ("2+2=", 1, 0, 4), ("2+2=", 2, 1, 0),
        ]  # fmt: skip
    else:
        assert rows == [("3+4=", 0, 0, 7), ("6+9=", 0, 0, 15), ("1-9=", 0, 0, 8),
                        ("2+2=", 0, -1, 4), ("2+2=", 1, 0, 40)]  # fmt: skip
    assert frame.loc[frame["uid"] == "1-9=", "position"].tolist() == [1]


def test_a_row_is_the_softmax_of_the_model_after_the_true_prefix(probed: Any) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    frame, vocabulary, tiny = probed
    model = AutoModelForCausalLM.from_pretrained(tiny.base)
    row = frame[frame["uid"] == "2+2="].iloc[-1]
    ids = encode_prompts(tiny.tokenizer, ["2+2="])[0]
    ids += encode_targets(tiny.tokenizer, ["4 or 40"])[0][: row["position"]]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, -1].double()
    p = logits[vocabulary.token_ids].softmax(-1).numpy()
    values = vocabulary.values.numpy()
    np.testing.assert_allclose(row["vector"], p, atol=1e-6)
    assert row["p_target"] == pytest.approx(p[values.tolist().index(row["target_value"])], abs=1e-6)
    assert row["maximum"] == pytest.approx(p.max(), abs=1e-6)
    assert row["argmax_value"] == values[p.argmax()]
    assert row["mean"] == pytest.approx(float(p @ values), abs=1e-3)


def test_ten_digits_reduce_by_the_leading_one(probed: Any) -> None:
    frame, vocabulary, _ = probed
    digits = frame[[f"p{digit}" for digit in range(10)]].to_numpy()
    vectors = np.array(frame["vector"].tolist())
    np.testing.assert_allclose(digits.sum(axis=1), 1.0)
    if len(vocabulary) == 10:
        np.testing.assert_allclose(digits, vectors)
    else:
        np.testing.assert_allclose(digits[:, 0], vectors[:, 0])
        np.testing.assert_allclose(
            digits[:, 7], vectors[:, [7, *range(70, 80), *range(700, 800)]].sum(axis=1)
        )


def test_only_the_first_examples_keep_their_vectors(
    tiny_checkpoints: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = tiny_checkpoints("digit")
    vocabulary = numeric_vocabulary(tiny.tokenizer)
    counts: list[tuple[int, int]] = []
    monkeypatch.setattr(module, "BLOCK", 3)
    with TransformersEngine().open(tiny.base, EngineSettings()) as session:
        whole = _probe(session, tiny, vocabulary, full_vectors=2)
        every = _probe(
            session, tiny, vocabulary,
            progress=lambda what, done, total: counts.append((done, total)),
        )  # fmt: skip
    assert [vector is not None for vector in whole["vector"]] == [True] * 3 + [False] * 4
    assert every["vector"].notna().all()
    assert counts[-1] == (7, 7)


def test_targets_without_numbers_give_an_empty_frame(
    tiny_checkpoints: Callable[[str], Any],
) -> None:
    tiny = tiny_checkpoints("digit")
    with TransformersEngine().open(tiny.base, EngineSettings()) as session:
        frame = probe(
            session, tiny.checkpoints["base"], [[5]], [[20, 2]], ["a"],
            numeric_vocabulary(tiny.tokenizer), answer_digits=[[-1, -1]],
        )  # fmt: skip
    assert len(frame) == 0
    assert {"uid", "p_target", "p9", "vector"} <= set(frame.columns)
