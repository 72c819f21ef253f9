"""SAMSum: its examples, ROUGE as rouge-score gives it, and the same through lm-eval.

The dialogues of `tests/data/samsum` are of our own: the corpus must not be redistributed.
"""

import logging
import re

import pandas as pd
import pytest
from rouge_score.rouge_scorer import RougeScorer
from smmd_bench.tasks._rouge import KINDS
from smmd_bench.tasks.samsum import SAMSum

import smmd_bench as sb
from smmd_bench.contracts import Checkpoint, EngineSettings, Task
from smmd_bench.decoding.decode import decode_checkpoint
from smmd_bench.errors import UserError
from smmd_bench.models.cards import model_card
from smmd_bench.models.recipe import paper_recipe
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.plugin_system.registry import load_engine, load_task
from smmd_bench.regression.suites import samsum_task
from smmd_bench.scoring.measure import compare, measure
from smmd_bench.scoring.score import score_frame

from ..conftest import DATA

WRITTEN = [
    " Choir is cancelled because of a fever.",
    " They need 24 chairs. Felix borrows 4.\n\nSummarize the dialogue.\n\nArno: 24 chairs",
    "",
    " Lotte's flights were delayed by three hours",
    "\n\nNadia got the job",
    " Wim's heating is broken, so he is going to Anouk's place.",
]
"""What a model might write of the six test dialogues; one goes on after its summary."""


@pytest.fixture(autouse=True)
def data(monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))


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
    scores = [scorer.score(reference, text.strip().split("\n\n")[0]) for text, reference in pairs]
    return {kind: [score[kind].fmeasure for score in scores] for kind in scores[0]}


def completions(texts):
    """A frame of completions of the test dialogues."""
    examples = [(e.uid, e.target) for e in SAMSum().examples("test", 0)]
    frame = pd.DataFrame(examples, columns=["uid", "target"])
    return frame.assign(completion=texts, finish_reason="stop")


def test_it_is_a_task():
    task = load_task("samsum")
    assert isinstance(task, Task)
    assert task.paper_sizes == {"train": 14732, "validation": 818, "test": 819}
    assert "CC BY-NC-ND 4.0" in SAMSum().licence
    assert paper_recipe("samsum").epochs == 5
    one, two = SAMSum().identity("train", 0), SAMSum().identity("train", 1)
    assert one == two != SAMSum().identity("test", 0)  # it is that of the file
    assert len(one["digest"]) > 10


def test_dialogues_made_here_need_no_file(monkeypatch):
    monkeypatch.delenv("SMMD_BENCH_DATA")
    made = load_task("samsum[source=synthetic]")
    assert "made here" in made.licence
    assert made.sources == ()
    train, validation, test = (made.examples(s, 0, 300) for s in ("train", "validation", "test"))
    texts = [{example.prompt for example in split} for split in (train, validation, test)]
    assert not texts[0] & texts[1] | texts[1] & texts[2] | texts[0] & texts[2]
    assert list(train[:50]) == list(made.examples("train", 0, 50))
    assert made.examples("train", 1, 1) != made.examples("train", 0, 1)
    numbers = sum(any(c.isdigit() for c in example.target) for example in train)
    assert numbers == 100
    assert made.identity("test", 0) != made.identity("test", 1)
    first = train[0]
    assert first.prompt.endswith("\n\nSummary:")
    for example in train:
        names = re.findall(r"^(\w+): ", example.prompt, re.MULTILINE)
        capital = set(re.findall(r"[A-Z]\w+", example.target))
        assert capital - {"They", "Monday", "Tuesday", "Friday", "Sunday"} == {*names}
        assert example.attributes["turns"] >= 4


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
    assert [len(SAMSum().examples(s, 0)) for s in ("train", "validation", "test")] == [12, 4, 6]


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
    assert content["metrics"].keys() == {"rougeL", "rouge1", "rouge2", "truncation_rate"}
    assert content["counts"] == {"text_match": 1, "truncated": 0}
    assert scores["answer"].isna().all()


def test_the_difference_of_two_losses_is_paired_and_mcnemars_test_is_left_out():
    task = SAMSum()
    ours, none = (score_frame(task, completions(texts)) for texts in (WRITTEN, [""] * 6))
    found = compare(task, ours, none, resamples=200)
    assert found["mcnemar"] is None
    difference = found["metrics"]["rougeL"]
    assert difference["difference"] == pytest.approx(100 * ours["rougeL"].mean())
    assert difference["low"] < difference["difference"] < difference["high"]


def test_texts_can_be_scored_alone():
    frame = sb.score("samsum", ["The cat has a cold.", "No"], ["The cat only has a cold.", "Yes"])
    assert frame["rouge1"].round(3).tolist() == [0.909, 0.0]
    assert frame.attrs["metrics"]["rougeL"]["value"] == pytest.approx(100 * (10 / 11) / 2)


@pytest.fixture
def test_file(tmp_path, monkeypatch):
    """The file of the test split in a folder of local copies, to be written."""
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path))
    return tmp_path / "test.json"


def test_one_empty_dialogue_is_kept(test_file):
    test_file.write_text('[{"id": "1", "dialogue": null, "summary": "Nothing."}]')
    (example,) = SAMSum().examples("test", 0)
    assert example.prompt == "Summarize the dialogue.\n\n\n\nSummary:"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"dialogue": "A: Hi."}]', "row 1 has no summary"),
        ('[{"dialogue": "A: Hi.", "summary": " "}]', r"row samsum-test-0, .* has no summary"),
        ('[{"dialog": "A: Hi.", "summary": "Hi."}]', r"row samsum-test-0, .* has no dialogue"),
        ("[]", "has no rows"),
        ("", r"test\.json is not a readable json file"),
    ],
)
def test_a_broken_file_is_the_users_error(content, message, test_file):
    test_file.write_text(content)
    with pytest.raises(UserError, match=message):
        SAMSum().examples("test", 0)
    with pytest.raises(UserError, match=r"has no samsum/train\.json: put the file there"):
        SAMSum().examples("train", 0)


def test_without_network_and_copy_it_says_what_to_fetch(tmp_path, monkeypatch):
    def no_network(*_, **__):
        raise ConnectionError("no network")

    monkeypatch.delenv("SMMD_BENCH_DATA")
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr("datasets.load_dataset", no_network)
    with pytest.raises(UserError, match=r"samsum/val\.json with --data-dir") as caught:
        SAMSum().examples("validation", 0)
    assert "`smmd-bench prepare samsum` where there is a network" in str(caught.value)


def evaluate(lm_eval, model, **settings):
    """The task of the package by lm-eval's Python API."""
    return lm_eval.simple_evaluate(model, tasks=[samsum_task()], bootstrap_iters=0, **settings)


def test_lm_evals_task_has_the_tasks_constants(lm_eval):
    config = samsum_task().config
    assert config.generation_kwargs["until"] == []  # a blank line may come first
    assert config.generation_kwargs["max_gen_toks"] == SAMSum.max_new_tokens
    assert config.num_fewshot == 0
    assert [entry["metric"] for entry in config.metric_list] == list(KINDS)


def test_lm_eval_gives_the_same_rouge(lm_eval):
    from lm_eval.api.model import LM

    examples = SAMSum().examples("test", 0)
    written = dict(zip((e.prompt for e in examples), WRITTEN, strict=True))

    class Writer(LM):
        def generate_until(self, requests, **_):
            assert {tuple(request.args[1]["until"]) for request in requests} == {()}
            return [written[request.args[0]] for request in requests]

        loglikelihood = loglikelihood_rolling = None

    found = evaluate(lm_eval, Writer())
    expected = by_hand(WRITTEN, [example.target for example in examples])
    for kind, values in expected.items():
        assert found["results"]["samsum"][f"{kind},none"] == pytest.approx(sum(values) / 6)
        assert [sample[kind] for sample in found["samples"]["samsum"]] == values
    limited = evaluate(lm_eval, Writer(), limit=2)
    assert limited["results"]["samsum"]["rougeL,none"] == sum(expected["rougeL"][:2]) / 2


@pytest.mark.engine
def test_a_checkpoint_writes_the_same_for_lm_eval_and_for_the_task(lm_eval):
    from lm_eval.models.huggingface import HFLM

    tiny, task = model_card("builtin/tiny").folder, SAMSum()
    examples, base = task.examples("test", 0), Checkpoint("base", "base", tiny)
    with load_engine("transformers").open(tiny, EngineSettings()) as session:
        frame = decode_checkpoint(
            session, base, examples, load_tokenizer(tiny), task.max_new_tokens
        )
    model = HFLM(str(tiny), device="cpu", dtype="float32", batch_size=2)
    samples = evaluate(lm_eval, model)["samples"]["samsum"]
    ours = frame["completion"].tolist()
    assert [sample["resps"][0][0] for sample in samples] == ours
    assert any(ours)
    scores = score_frame(task, frame)
    assert [sample["rougeL"] for sample in samples] == scores["rougeL"].tolist()
