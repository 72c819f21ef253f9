"""SAMSum: its examples, ROUGE as rouge-score gives it, and the same through lm-eval.

The dialogues of `tests/data/samsum` are of our own: the corpus must not be redistributed.
"""

import logging

import pandas as pd
import pytest
from rouge_score.rouge_scorer import RougeScorer
from smmd_bench.tasks.samsum import SAMSum

from smmd_bench.regression.suites import samsum_task
from smmd_bench.scoring.measure import measure

pytestmark = pytest.mark.usefixtures("local_copies")
WRITTEN = [
    " Choir is cancelled because of a fever.",
    " They need 24 chairs. Felix borrows 4.\n\nSummarize the dialogue.\n\nArno: 24 chairs",
    "",
    " Lotte's flights were delayed by three hours",
    "\n\nNadia got the job",
    " Wim's heating is broken, so he is going to Anouk's place.",
]
"""What a model might write of the six test dialogues; one goes on after its summary."""


@pytest.fixture
def lm_eval():
    """lm-eval, which sets up logging of its own."""
    module = pytest.importorskip("lm_eval")
    level = logging.getLogger("lm_eval").level
    yield module
    logging.getLogger("lm_eval").setLevel(level)


def by_hand(texts, references):
    """F1 of the first paragraphs that are not empty, by rouge-score alone."""
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    pairs = zip(texts, references, strict=True)
    scores = [
        scorer.score(reference, text.strip().split("\n\n")[0])
        for text, reference in pairs
    ]
    return {kind: [score[kind].fmeasure for score in scores] for kind in scores[0]}


def completions(texts):
    """A frame of completions of the test dialogues."""
    examples = [(e.uid, e.target) for e in SAMSum().examples("test", 0)]
    frame = pd.DataFrame(examples, columns=["uid", "target"])
    return frame.assign(completion=texts, finish_reason="stop")


def test_a_dialogue():
    first, *_ = SAMSum().examples("train", seed=0, limit=2)
    assert first.prompt == (
        "Summarize the dialogue.\n\nNora: Are you bringing the tent on Saturday?\n"
        "Idris: Yes, and 2 sleeping bags.\nNora: Great, I'll pack the stove.\n\nSummary:"
    )
    assert first.target == (
        " Idris will bring the tent and 2 sleeping bags on Saturday. Nora will pack the stove."
    )
    assert first.answer is None
    assert first.attributes == {"turns": 3}
    assert [len(SAMSum().examples(s, 0)) for s in ("train", "validation", "test")] == [
        12,
        4,
        6,
    ]


def test_rouge_is_that_of_rouge_score_and_no_summary_fails_to_give_a_number():
    frame = completions(WRITTEN)
    scores, content = measure(SAMSum(), frame, resamples=100)
    expected = by_hand(WRITTEN, frame["target"].tolist())
    for kind, values in expected.items():
        assert scores[kind].tolist() == values
        assert content["metrics"][kind]["value"] == pytest.approx(100 * sum(values) / 6)

    assert expected["rougeL"][5] == 1
    assert expected["rougeL"][2] == 0
    assert expected["rougeL"][4] > 0.3  # blank lines stand before it
    assert 0 < expected["rouge2"][1] < 1
    assert content["metrics"].keys() == {
        "rougeL",
        "rouge1",
        "rouge2",
        "truncation_rate",
    }
    assert content["counts"] == {"text_match": 1, "truncated": 0}
    assert scores["answer"].isna().all()


@pytest.mark.long
def test_lm_eval_gives_the_same_rouge(lm_eval):
    from lm_eval.api.model import LM

    examples = SAMSum().examples("test", 0)
    written = dict(zip((e.prompt for e in examples), WRITTEN, strict=True))

    class Writer(LM):
        def generate_until(self, requests, **_):
            assert {tuple(request.args[1]["until"]) for request in requests} == {()}
            return [written[request.args[0]] for request in requests]

        loglikelihood = loglikelihood_rolling = None

    results = lm_eval.simple_evaluate(
        Writer(), tasks=[samsum_task()], bootstrap_iters=0
    )
    expected = by_hand(WRITTEN, [example.target for example in examples])
    for kind, values in expected.items():
        assert results["results"]["samsum"][f"{kind},none"] == pytest.approx(
            sum(values) / 6
        )
        assert [sample[kind] for sample in results["samples"]["samsum"]] == values
