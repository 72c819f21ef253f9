"""YAML is read as it is written, and what is written is read back."""

import ast
from datetime import date

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given

from smmd_bench.storage.strict_yaml import DuplicateKeyError, read_yaml, write_yaml
from tests.test_house_rules import FILES

WORDS_OF_YAML_1_1 = [
    "010", "0x1F", "0b11", "0o17", "1_000", "+5", "1:30", "190:20:30.15", "00.5", "2026-01-02",
    "2026-01-02 03:04:05", "no", "No", "NO", "yes", "on", "Off", "y", "=", "inf", "nan", "tRue",
]  # fmt: skip
PLAIN = {
    "0": 0, "-5": -5, "5": 5, "1.5": 1.5, ".5": 0.5, "-.5": -0.5, "5.": 5.0, "2e-4": 2e-4,
    "1E+3": 1000.0, "-.inf": -float("inf"), "true": True, "False": False, "null": None, "~": None,
    "": None,
}  # fmt: skip
TEXT = st.one_of(st.text(), st.sampled_from([*WORDS_OF_YAML_1_1, *PLAIN]))
CONTENT = st.recursive(
    st.one_of(
        TEXT, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False)
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXT, inner)),
)


@pytest.mark.parametrize("word", WORDS_OF_YAML_1_1)
def test_what_yaml_1_1_converts_is_text_as_it_is_written(word):
    assert read_yaml(f"a: {word}\n{word}: [{word}]") == {"a": word, word: [word]}


@pytest.mark.parametrize("word", PLAIN)
def test_decimal_numbers_truth_values_and_null_are_no_text(word):
    (value,) = read_yaml(f"a: {word}").values()
    assert type(value) is type(PLAIN[word])
    assert value == PLAIN[word]


@given(CONTENT)
def test_what_is_written_is_read_back_here_and_by_any_other_reader(content):
    text = write_yaml(content)
    assert read_yaml(text) == content
    assert yaml.safe_load(text) == content


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: 2\na: 3",
        "b: {a: 1,\n\n  a: 1}",
        "- a: 1\n\n  'a': 2",
        "1: a\nb: 2\n'1': a",
    ],
)
def test_a_key_that_stands_twice_is_refused_with_both_lines(text):
    with pytest.raises(DuplicateKeyError, match=r"in line 1 and in line 3: keep one"):
        read_yaml(text)


def test_a_key_takes_the_place_of_a_merged_one():
    text = "one: &one {a: 1, b: 2}\ntwo: &two {<<: *one, a: 3}\nthree: {<<: *two, b: 4}"
    assert read_yaml(text)["three"] == {"a": 3, "b": 4}


def test_no_object_of_python_is_made():
    with pytest.raises(yaml.YAMLError):
        read_yaml("!!python/object/apply:os.getcwd []")
    assert read_yaml("!!timestamp 2026-01-02") == date(2026, 1, 2)  # asked for by name


def test_nothing_else_reads_or_writes_yaml():
    readers = {
        file.name
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import)
        and any(alias.name == "yaml" for alias in node.names)
    }
    assert readers == {"strict_yaml.py"}
