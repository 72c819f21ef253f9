"""ChartQA as a task: its synthetic examples, how completions are read, and its metrics."""

import runpy
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from smmd_bench.tasks.chartqa import ChartQA, lm_eval_relaxed

from smmd_bench.plugin_system.registry import load_task
from tests.conftest import expect_user_error

TASK = ChartQA()


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """One cache folder for all, and no folder of local copies."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("SMMD_BENCH_CACHE", str(folder))
        patch.delenv("SMMD_BENCH_DATA", raising=False)
        yield folder


def relaxed_correctness(target, prediction, max_relative_change=0.05):
    """The definition for numbers in pix2struct's metrics.py, in floats."""
    if not float(target):
        return target == prediction
    change = abs(float(prediction) - float(target)) / abs(float(target))
    return change <= max_relative_change


def test_an_example_has_one_picture_and_a_number():
    *_, example = TASK.examples("train", 0, 3)
    assert example.uid == "chartqa-synthetic-train-0-1-0"
    assert example.prompt == "Question: What is the highest value of Old?\nAnswer:"
    assert example.target == " 1"
    assert example.answer == TASK.parse("1")
    (picture,) = example.images
    with Image.open(picture) as image:
        assert image.format == "PNG"
        assert image.mode == "RGB"
        assert image.size == (448, 336)


@pytest.mark.parametrize("name", ["chartqa", "clock_time"])
def test_pictures_that_are_drawn_for_want_of_others_are_a_note(name, monkeypatch):
    monkeypatch.delenv("SMMD_BENCH_DATA", raising=False)
    (note,) = load_task(name).notes
    assert "are drawn here" in note
    assert not load_task(f"{name}[source=synthetic]").notes


def test_fewer_examples_are_the_first_of_more():
    twenty = TASK.examples("test", 0, 20)
    assert TASK.examples("test", 0, 7) == twenty[:7]


def test_plain_charts_are_other_examples_of_the_drawn_source_alone():
    plain = load_task("chartqa[charts=plain]")
    examples = plain.examples("test", 0, 20)
    assert {example.attributes["reading"] for example in examples} == {"printed"}

    with Image.open(examples[0].images[0]) as image:
        assert image.size == (308, 224)
    for example, other in zip(examples, TASK.examples("test", 0, 20), strict=True):
        assert example.uid != other.uid
        assert example.images != other.images
    assert plain.identity("test", 0) != TASK.identity("test", 0)
    with expect_user_error(r"no plain charts: write chartqa\[source=synthetic"):
        load_task("chartqa[source=official,charts=plain]").examples("test", 0, 1)


@given(
    st.integers(-9_999, 99_999),
    st.integers(-9_999, 99_999),
    st.sampled_from([1, 10, 100, 1000]),
)
def test_relaxed_is_the_fields_definition(target, prediction, scale):
    # often within 5 %
    close_prediction = target + round(target * (prediction % 13 - 6) / 100)
    for number in (prediction, close_prediction):
        if 20 * abs(number - target) == abs(target):
            continue  # exactly 5 % away: a matter of rounding there, not here
        pair = f"{number / scale}", f"{target / scale}"
        expected = relaxed_correctness(*reversed(pair))
        assert TASK.annotate(*pair)["relaxed"] == expected


RULES = {  # ours, and that of lm-eval
    (True, True): [
        ("21", "20"), ("-19", "-20"), ("0", "0"), ("1,234", "1234"), ("14%", "14"), ("$20.", "20"),
        ("21\nQuestion: 5?", "20"),
    ],
    (True, False): [
        ("1.47", "1.4"),  # 5 % in fractions, more than that in floats
        ("12 million", "12"), ("~5", "5"), ('"372532"', "372532"), ("4014/2", "2007"),
    ],
    (False, True): [("14%", "0.14")],
    (False, False): [("1.471", "1.4"), ("19", "-20"), ("0.001", "0"), ("none", "20"), ("", "20")],
}  # fmt: skip


@pytest.mark.parametrize("rules", RULES)
def test_both_relaxed_rules_stand_side_by_side(rules):
    for pair in RULES[rules]:
        expected = dict(zip(("relaxed", "relaxed_lm_eval"), rules, strict=True))
        assert TASK.annotate(*pair) == expected, pair


PIECES = st.sampled_from(
    ["5", "0.14", "14", "%", "$", ",", ".", "-", "~", '"', "'", " ", "\n", "answer", ":", "**",
     "(", "]", "_", "A", "b", "million", "Yes", "no", "1e3", "inf", "nan", "５", "/2"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=6).map("".join) | st.text(max_size=8)


@lru_cache
def lm_eval_scorer():
    """The class of lm-eval's own file, loaded without the rest of lm-eval."""
    package = find_spec("lm_eval")
    if package is None or package.origin is None:
        pytest.skip("lm-eval is not installed")
    path = Path(package.origin).parent / "tasks/chartqa/utils.py"
    return runpy.run_path(str(path))["ExplicitPromptRelaxedCorrectness"]()


@settings(max_examples=200)
@given(TEXTS, TEXTS)
def test_the_rule_of_lm_eval_is_lm_evals(completion, target):
    expected = lm_eval_scorer().score(f"answer:{completion}", target) == 1.0
    assert lm_eval_relaxed(completion, target) == expected
