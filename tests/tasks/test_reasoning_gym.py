"""Tasks of the package reasoning-gym: numbers as answers, splits, parameters, its own score."""

import subprocess
import sys

import pytest

pytest.importorskip("reasoning_gym", reason="reasoning-gym is not installed")
from reasoning_gym.factory import DATASETS
from smmd_bench.tasks.reasoning_gym import _NAMES, ReasoningGym

import smmd_bench as sb
from smmd_bench.conformance.suite import violations
from smmd_bench.contracts import parse_number
from smmd_bench.plugin_system.parameters import parameters_of
from smmd_bench.scoring.score import score
from tests.conftest import expect_user_error

EASY = "max_decimal_places=2,max_digits=2,max_terms=2"
EASY_DECIMALS = f"reasoning_gym[name=decimal_chain_sum,{EASY}]"


def questions(task, split, seed=0, limit=100):
    return {example.prompt for example in task.examples(split, seed, limit)}


@pytest.mark.parametrize("name", _NAMES)
def test_each_answer_is_a_number_and_gets_a_point_from_the_package_and_from_us(name):
    task = sb.load_task(f"reasoning_gym[name={name}]")
    examples = task.examples("train", 0, 50)
    targets = [example.target for example in examples]
    assert [task.parse(target) for target in targets] == [
        example.answer for example in examples
    ]
    assert None not in map(parse_number, targets)
    assert {task.annotate(target, target)["gym_score"] for target in targets} == {1.0}


@pytest.mark.parametrize("name", _NAMES)
def test_the_package_scores_strange_completions_from_0_to_1(name):
    task = sb.load_task(f"reasoning_gym[name={name}]")
    (example,) = task.examples("test", 0, 1)
    for text in (
        "",
        " ",
        "nan",
        "inf",
        "1e999",
        "1/0",
        "-",
        "[",
        "9" * 5000,
        "<think>1",
    ):
        assert 0 <= task.annotate(text, example.target)["gym_score"] <= 1, text


@pytest.mark.parametrize("spec", ["reasoning_gym", EASY_DECIMALS])
def test_it_keeps_the_contract_of_tasks(spec):
    assert violations(spec) == []


def test_no_question_is_in_two_splits_nor_in_one_twice_even_where_there_are_few():
    task = sb.load_task("reasoning_gym[name=gcd,max_value=60]")
    of_split = {
        split: questions(task, split) for split in ("train", "validation", "test")
    }
    assert {len(prompts) for prompts in of_split.values()} == {100}
    assert len(set.union(*of_split.values())) == 300
    other_seeds = [questions(task, "train", seed, 500) for seed in (1, 2)]
    assert not set.union(*other_seeds) & (of_split["test"] | of_split["validation"])


def test_too_few_questions_are_counted_in_the_error():
    task = sb.load_task("reasoning_gym[name=gcd,max_value=4]")
    with expect_user_error(r"gcd has \d different questions for test, not 10: ask"):
        task.examples("test", 0, 10)


def test_a_question_is_the_one_that_the_package_makes_with_these_parameters():
    task = sb.load_task("reasoning_gym[name=chain_sum,max_digits=1,max_terms=2]")
    dataset, config = DATASETS["chain_sum"]
    reference = dataset(config(max_digits=1, max_terms=2, seed=0, size=1000))
    for example in task.examples("train", 0, 20):
        entry = reference[int(example.uid.removeprefix("train-0-"))]
        assert example.prompt == f"{entry['question']}\nAnswer: "
        assert example.target == entry["answer"]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ("name=gdc", "has one number as its answer: did you mean gcd"),
        ("name=caesar_cipher", "has one number as its answer: "),
        (
            "name=gcd,max_valu=3",
            "Unknown parameter 'max_valu' of reasoning_gym: did you mean",
        ),
        (
            "name=gcd,max_terms=3",
            "gcd has no parameter max_terms: did you mean max_numbers",
        ),
        ("name=gcd,max_value=x", "'x' is not a valid value of reasoning_gym"),
        ("name=gcd,max_value=0", "max_value must be > min_value"),
    ],
)
def test_a_mistake_gets_a_sentence(parameters, sentence):
    with expect_user_error(sentence):
        sb.load_task(f"reasoning_gym[{parameters}]")


@pytest.mark.parametrize("parameter", sorted({*parameters_of(ReasoningGym)} - {"name"}))
def test_each_parameter_reaches_the_config_of_the_tasks_that_the_help_names(parameter):
    owners = parameters_of(ReasoningGym)[parameter].help.removeprefix("of ").split(", ")
    for owner in owners:
        default = getattr(DATASETS[owner][1](), parameter)
        value = str(default).lower() if isinstance(default, bool) else default
        plain = sb.load_task(f"reasoning_gym[name={owner}]")
        task = sb.load_task(f"reasoning_gym[name={owner},{parameter}={value}]")
        assert questions(task, "train", limit=5) == questions(plain, "train", limit=5)


def test_the_version_of_the_package_and_its_whole_config_are_in_the_address():
    identity = sb.load_task("reasoning_gym[name=gcd,max_value=30]").identity("test", 0)
    assert identity["reasoning-gym"] == "0.1.25"
    assert identity["config"]["max_value"] == "30"
    assert identity["config"]["min_numbers"] == "2"
    assert "seed" not in identity["config"] or identity["config"]["seed"] == "0"


def test_the_package_scores_the_text_and_exact_match_the_number():
    task = sb.load_task("reasoning_gym[name=gcd]")
    assert task.annotate("12 ", "12") == {"gym_score": 1.0}
    assert task.annotate("It is 12", "12") == {"gym_score": 2 / 8}
    scores = score(
        "reasoning_gym[name=gcd]", ["12", "12.0", "It is 12"], ["12", "12", "12"]
    )
    assert scores["exact"].tolist() == [True, True, False]
    assert scores["gym_score"].tolist() == [1.0, 2 / 4, 2 / 8]


def test_the_error_selects_the_epoch_where_answers_have_decimals():
    assert sb.load_task(EASY_DECIMALS).select_by == "mean_absolute_error"
    assert sb.load_task("reasoning_gym[name=gcd]").select_by == "exact_match"


def test_without_the_package_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['reasoning_gym'] = None\n"
        "import smmd_bench; smmd_bench.load_task('reasoning_gym')"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert "it needs pip install 'smmd-bench[reasoning-gym]'" in output.stderr
