"""GSM8K and SVAMP: their examples, and the answer that a completion gives."""

import re
from pathlib import Path

import pytest
import yaml
from smmd_bench.tasks._final_answer import lm_eval_matches
from smmd_bench.tasks.gsm8k import GSM8K
from smmd_bench.tasks.svamp import SVAMP

from smmd_bench.plugin_system.registry import load_task
from tests.conftest import expect_user_error

pytestmark = pytest.mark.usefixtures("local_copies")


def test_a_problem_of_gsm8k():
    (example, *_) = GSM8K().examples("test", seed=0)
    assert example.uid == "gsm8k-test-0"
    assert example.prompt.startswith(
        "Question: Janet’s ducks lay 16 eggs per day. She eats"
    )
    assert example.prompt.endswith("\nAnswer:")
    assert example.target == (
        " Janet sells 16 - 3 - 4 = 9 duck eggs a day.\n"
        "She makes 9 * 2 = $18 every day at the farmer’s market.\n#### 18"
    )
    assert example.answer.value == 18
    assert example.target[example.answer_start :] == " 18"

    kept = GSM8K(calculator="keep").examples("test", seed=0)[0]
    assert "16 - 3 - 4 = <<16-3-4=9>>9 duck" in kept.target
    assert kept.target[kept.answer_start :] == " 18"


def test_a_problem_of_svamp():
    example, *_, misspelled = SVAMP().examples("test", seed=0)
    assert example.prompt == (
        "Question: Each pack of dvds costs 76 dollars. If there is a discount of 25 dollars on "
        "each pack. How much do you have to pay to buy each pack?\nAnswer:"
    )
    assert example.target == " #### 51"
    assert example.uid == "svamp-chal-1"
    assert misspelled.attributes["type"] == "Common-Division"


def test_train_and_validation_are_disjoint():
    task = GSM8K()
    train, validation = (task.examples(split, 0) for split in ("train", "validation"))
    assert len(validation) == 6
    assert len({e.uid for e in [*train, *validation]}) == 60
    assert task.identity("test", 0) != GSM8K(calculator="keep").identity("test", 0)


BROKEN = [
    ("gsm8k", "test.jsonl", '{"question": "1?"}', r"test\.jsonl .*row 1 has no answer"),
    ("svamp", "SVAMP.json",
     '[{"ID": "c-1", "Body": "b", "Question": "q", "Answer": "n/a", "Type": "t"}]',
     "answer of c-1 of SVAMP is no number"),
    *(("gsm8k", "test.jsonl", f'{{"question": "1?", "answer": "{answer}"}}', "gsm8k-test-0 ")
      for answer in ("7", "#### 3:30", "#### 3 or 4")),
]  # fmt: skip


@pytest.mark.parametrize(("task", "file", "text", "complaint"), BROKEN)
def test_a_broken_row_is_the_users_error(
    task, file, text, complaint, tmp_path, monkeypatch
):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(tmp_path))
    (tmp_path / file).write_text(text)
    with expect_user_error(complaint):
        load_task(task).examples("test", 0)


TRAPS = {  # completion: (value, strict, flexible) for a truth of 18
    "So 9 * 2 = 18.\n#### 18": (18, True, True),
    "#### $18": (18, False, True),  # strict wants a digit at once
    "####18": (18, False, True),
    "#### 18.00": (18, False, False),  # other text, the same value
    "#### 18.": (18, True, True),
    "#### 18 eggs, and 3 more": (18, True, False),
    "#### 18\n\nQuestion: what is 2+2?\nAnswer: #### 4": (18, True, True),
    "#### 18<|im_end|>\n#### 4": (18, True, True),
    "the answer is 18": (18, False, True),
    "#### 36/2": (18, False, False),
    "#### 1.8e1": (18, False, False),
    "#### -18": (-18, False, False),
    "#### \u221218": (-18, False, True),  # lm-eval reads no unicode minus
    "#### 18%": (18, True, True),
    "#### 1,018": (1018, False, False),
    "#### eighteen": (None, False, False),
    "": (None, False, False),
    "####": (None, False, False),
}


@pytest.mark.parametrize("text", TRAPS)
def test_known_traps(text):
    value, strict, flexible = TRAPS[text]
    parsed = GSM8K().parse(text)
    assert (None if parsed is None else parsed.value) == value
    assert lm_eval_matches(text, " so\n#### 18") == {
        "strict": strict,
        "flexible": flexible,
    }


def lm_eval_scores(completions, targets):
    """By lm-eval's own filters and metric, as its gsm8k.yaml sets them up."""
    import lm_eval
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.filters.extraction import RegexFilter

    path = Path(lm_eval.__file__).parent / "tasks/gsm8k/gsm8k.yaml"
    settings = yaml.safe_load(path.read_text())
    (metric,) = settings["metric_list"]
    options = {
        k: metric[k] for k in ("regexes_to_ignore", "ignore_case", "ignore_punctuation")
    }
    for word in settings["generation_kwargs"]["until"]:  # where it would have stopped
        completions = [text.split(word)[0] for text in completions]
    scores = {}
    for entry in settings["filter_list"]:
        arguments = {k: v for k, v in entry["filter"][0].items() if k != "function"}
        answers = RegexFilter(**arguments).apply([[text] for text in completions], [{}])
        scores[entry["name"]] = [
            bool(exact_match_hf_evaluate(answer, [target], **options)["exact_match"])
            for answer, target in zip(answers, targets, strict=True)
        ]
    return scores


def variations(target):
    """Right, wrong and odd completions for one target."""
    number = target.rpartition("#### ")[2]
    return [
        target, f"#### {number}.", f"####{number}", f"#### ${number}", f"#### {number}.00",
        f"The answer is {number}.", f"The answer is ${number}!", f"#### {number}\nQuestion: 4?",
        target.replace("#### ", "#### -"), number, re.sub(r"\d", "7", target), "no number", "",
        f"#### {number} #### 5", "....", "$", f"{number},",
    ]  # fmt: skip


def test_lm_evals_rules_agree_with_lm_eval():
    pairs = [(text, " #### 18") for text in TRAPS]
    for example in GSM8K().examples("train", 0):
        pairs += [(text, example.target) for text in variations(example.target)]
    texts, targets = zip(*pairs, strict=True)
    expected = lm_eval_scores(texts, targets)
    matches = [lm_eval_matches(*pair) for pair in pairs]
    for rule, filter_name in (
        ("strict", "strict-match"),
        ("flexible", "flexible-extract"),
    ):
        assert [row[rule] for row in matches] == expected[filter_name]
        assert {*expected[filter_name]} == {True, False}
