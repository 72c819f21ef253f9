"""The task temperature keeps the contract, and means what its sentences say."""

from fractions import Fraction

import pytest
from smmd_bench import load_task, violations
from smmd_bench.contracts import Answer

from smmd_bench_celsius.temperature import Temperature, in_words


@pytest.mark.parametrize("spec", ["temperature", "temperature[unit=fahrenheit,distractors=1]"])
def test_it_keeps_the_contract_of_a_task(spec: str) -> None:
    assert isinstance(load_task(spec), Temperature)
    assert violations(spec) == []


def test_the_sentence_says_the_temperature_with_its_sign() -> None:
    for example in load_task("temperature").examples("train", 0, 500):
        celsius = int(example.target)
        size = abs(celsius)
        words = example.prompt.replace("-", " ").split()
        assert str(size) in words or set(in_words(size).split("-")) <= set(words)
        below = any(sign in example.prompt for sign in ("below", "minus", " -"))
        assert below == (celsius < 0)


def test_a_distractor_is_another_number_in_about_half_of_the_sentences() -> None:
    found = load_task("temperature").examples("test", 0, 1000)
    kinds = [example.attributes["distractor"] for example in found]
    assert 0.45 < sum(kind != "none" for kind in kinds) / len(kinds) < 0.55
    for example in load_task("temperature[distractors=0]").examples("test", 0, 100):
        digits = [word for word in example.prompt.replace("-", " ").split() if word.isdigit()]
        assert digits in ([], [str(abs(int(example.target)))])


def test_fahrenheit_is_exact() -> None:
    for example in load_task("temperature[unit=fahrenheit]").examples("test", 0, 100):
        celsius = Fraction(example.attributes["celsius"])
        assert example.answer == Answer(celsius * Fraction(9, 5) + 32)


@pytest.mark.parametrize(
    ("completion", "value"),
    [
        ("-12", -12),
        (" 7 degrees\n8", 7),
        ("10.4", "10.4"),
        ("\u22123 C (26.6 F)", -3),
        ("cold", None),
    ],
)
def test_the_first_number_of_the_first_line_is_the_answer(
    completion: str, value: int | str | None
) -> None:
    expected = None if value is None else Answer(Fraction(value))
    assert load_task("temperature").parse(completion) == expected
