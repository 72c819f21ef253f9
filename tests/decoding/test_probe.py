"""Digit probes: which prefixes are asked about, and what is kept of the answers."""

import numpy as np
import pandas as pd
import pytest
import torch

from smmd_bench.contracts import Answer, Checkpoint, Example
from smmd_bench.decoding import probe as module
from smmd_bench.decoding.probe import answer_digits, probe
from smmd_bench.encoding.data import expand
from smmd_bench.encoding.numbers import numeric_vocabulary
from smmd_bench.encoding.prompts import (
    encode_examples,
    encode_prompts,
    encode_targets,
    images_of,
)
from smmd_bench.models.loading import load_model
from smmd_bench.models.tokenizers import load_processor

pytestmark = pytest.mark.engine
EXAMPLES = [
    Example(prompt, prompt, target, Answer(1), answer_start=5 if "or" in target else 0)
    for prompt, target in {
        "3+4=": "7", "6+9=": "15", "1-9=": "-8", "say a": "a", "2+2=": "4 or 40"
    }.items()
]  # fmt: skip
"""The answer of the last one is 40; "4 or" is a rationale."""


def probed(session, tiny, **options):
    targets = encode_targets(tiny.tokenizer, [e.target for e in EXAMPLES])
    return probe(
        session,
        tiny.checkpoints["base"],
        encode_prompts(tiny.tokenizer, [e.prompt for e in EXAMPLES]),
        targets,
        [e.uid for e in EXAMPLES],
        numeric_vocabulary(tiny.tokenizer),
        answer_digits=answer_digits(tiny.tokenizer, EXAMPLES, targets),
        **options,
    )


ROWS = {  # uid, digit, digit of the answer, value of the token
    "digit": [("3+4=", 0, 0, 7), ("6+9=", 0, 0, 1), ("6+9=", 1, 1, 5), ("1-9=", 0, 0, 8),
              ("2+2=", 0, -1, 4), ("2+2=", 1, 0, 4), ("2+2=", 2, 1, 0)],
    "triple": [("3+4=", 0, 0, 7), ("6+9=", 0, 0, 15), ("1-9=", 0, 0, 8), ("2+2=", 0, -1, 4),
               ("2+2=", 1, 0, 40)],
}  # fmt: skip


@pytest.fixture(params=ROWS)
def case(request, tiny_checkpoints, open_session):
    """The kind of a checkpoint, its files, and its probes."""
    tiny = tiny_checkpoints(request.param)
    return request.param, tiny, probed(open_session(tiny.base), tiny)


def test_every_numeric_token_of_a_target_has_a_row(case):
    kind, _, frame = case
    columns = ["uid", "digit", "answer_digit", "target_value"]
    expected = pd.DataFrame(ROWS[kind], columns=columns)

    pd.testing.assert_frame_equal(frame[columns], expected, check_dtype=False)
    assert frame.loc[frame["uid"] == "1-9=", "position"].tolist() == [1]


def test_the_last_token_is_probed_after_the_true_prefix(case):
    _, tiny, frame = case
    tokenizer = tiny.tokenizer
    row = frame.iloc[-1]

    (ids,) = encode_prompts(tokenizer, ["2+2="])
    (target_ids,) = encode_targets(tokenizer, ["4 or 40"])
    ids += target_ids[: row["position"]]
    model = load_model(tiny.base, "float32")
    vocabulary = numeric_vocabulary(tokenizer)
    p = softmax(model, vocabulary, input_ids=torch.tensor([ids]))
    np.testing.assert_allclose(row["vector"], p, atol=1e-6)

    values = vocabulary.values.numpy()
    likeliest = p.argmax()
    assert row["argmax_value"] == values[likeliest]

    (target,) = np.flatnonzero(values == row["target_value"])
    numbers = row[["p_target", "maximum", "mean"]]
    expected = [p[target], p[likeliest], p @ values]
    assert [*numbers] == pytest.approx(expected, abs=1e-3)


def test_the_mass_of_each_leading_digit_is_that_of_its_tokens(case):
    *_, frame = case
    masses = frame[[f"p{digit}" for digit in range(10)]].to_numpy()
    vectors = np.array(frame["vector"].tolist())

    leading = [int(str(value)[0]) for value in range(vectors.shape[1])]
    expected = vectors @ np.eye(10)[leading]

    np.testing.assert_allclose(masses, expected)


def softmax(model, vocabulary, **inputs):
    with torch.no_grad():
        logits = model(**inputs).logits[0, -1].double()
    return logits[vocabulary.token_ids].softmax(-1).numpy()


def test_only_the_first_examples_keep_their_vectors(tiny, open_session, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 3)
    session = open_session(tiny.base)
    counts = []

    def progress(what, done, total):
        counts.append((done, total))

    of_two = probed(session, tiny, full_vectors=2)
    of_all = probed(session, tiny, progress=progress)

    assert of_two.pop("vector").notna().tolist() == [True] * 3 + [False] * 4
    assert of_all.pop("vector").notna().all()
    assert counts[-1] == (7, 7)
    pd.testing.assert_frame_equal(of_two, of_all)


def test_every_prefix_of_a_probe_sees_the_image(tiny_vlm, open_session, times):
    base = Checkpoint("base", "base", tiny_vlm("qwen2_5_vl"))
    examples = times[:3]
    processor = load_processor(base.path)
    tokenizer = processor.tokenizer
    vocabulary = numeric_vocabulary(tokenizer)
    prompts = encode_examples(tokenizer, processor, examples)
    targets = encode_targets(tokenizer, [e.target for e in examples])
    frame = probe(
        open_session(base.path), base, prompts, targets, [e.uid for e in examples], vocabulary,
        answer_digits=answer_digits(tokenizer, examples, targets), images=images_of(examples),
    )  # fmt: skip

    assert set(frame["answer_digit"]) == {-1}  # these examples have no answer
    # 1:00, 2:07, 3:14
    assert frame["target_value"].tolist() == [1, 0, 0, 2, 0, 7, 3, 1, 4]

    model = load_model(base.path, "float32")
    for row in frame.itertuples():
        number = int(row.uid)
        ids = prompts[number] + targets[number][: row.position]
        inputs = expand(processor, ids, examples[number].images)
        np.testing.assert_allclose(
            row.vector, softmax(model, vocabulary, **inputs), atol=1e-4
        )
