import re
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.contracts import non_negative, parameter
from smmd_bench.plugin_system import parameters
from tests.conftest import expect_user_error


@dataclass(frozen=True)
class Toy:
    name = "toy"
    sigma: tuple[float, ...] = parameter((2.0,), "bandwidths")
    weight: float = parameter(3.0, "lambda", name="lambda", check=non_negative)
    term: Literal["both", "mmd"] = parameter("both", "terms")
    hard: bool = parameter(False, "flag")
    steps: int | None = parameter(None, "steps")
    operations: tuple[int, int] | None = parameter(None, "range")
    text: str = parameter("plain", "text")


def made(text):
    return parameters.build(Toy, *parameters.split_spec(text))


def test_values_are_read_by_the_type_of_the_parameter():
    toy = made("toy[sigma=1+2.5,lambda=5,term=mmd,hard=true,steps=4,operations=1..2]")
    assert toy == Toy((1.0, 2.5), 5.0, "mmd", True, 4, (1, 2))
    # as in an exponent
    assert made("toy[sigma=1e+20+1.5E+2+3]").sigma == (1e20, 150.0, 3.0)


def test_canonical_spelling_names_only_what_differs_from_the_default():
    assert parameters.canonical(made("toy[ sigma=2.0 , lambda=5 ]")) == "toy[lambda=5]"
    assert parameters.canonical(Toy(sigma=(1e20,))) == "toy[sigma=1e20]"
    assert parameters.canonical(Toy()) == "toy"


@given(
    st.builds(
        Toy,
        st.lists(st.floats(allow_nan=False), min_size=1, max_size=5).map(tuple),
        st.floats(0, allow_infinity=False),
        st.sampled_from(["both", "mmd"]),
        st.booleans(),
        st.none() | st.integers(),
        st.none() | st.tuples(st.integers(), st.integers()),
        st.text("az09 _.+-=/", min_size=1).map(str.strip).filter(bool),
    )
)
def test_the_canonical_spelling_reads_back_as_the_same_plugin(toy):
    assert made(parameters.canonical(toy)) == toy


def test_lists_split_only_outside_brackets():
    specs = parameters.split_list("ce, ntl,smmd[sigma=1,lambda=2]")
    assert specs == ["ce", "ntl", "smmd[sigma=1,lambda=2]"]


def test_a_text_in_double_quotes_may_hold_commas_and_brackets():
    spec = 'toy[steps=4,text="a, [b] = c "]'
    assert made(spec) == Toy(steps=4, text="a, [b] = c ")
    assert parameters.canonical(made(spec)) == spec
    assert parameters.split_list(f"ce,{spec},smmd") == ["ce", spec, "smmd"]
    assert made('toy[text=a "b"]').text == 'a "b"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("toy[lamda=2]", "did you mean lambda"),
        ("toy[lambda=-1]", "lambda must be >= 0"),
        ("toy[lambda=nan]", "lambda must be >= 0"),
        ("toy[lambda=x]", "expected number"),
        ("toy[term=all]", "expected both|mmd"),
        ("toy[hard=1]", "expected true|false"),
        ("toy[lambda]", "not of the form param=value"),
        ("toy[lambda=1,lambda=2]", "stands twice"),
        ("toy[lambda=1", "not of the form name"),
    ],
)
def test_a_bad_spelling_says_what_is_wrong(text, message):
    with expect_user_error(re.escape(message)):
        made(text)


@pytest.mark.parametrize(
    "loss", ["ce", "smmd[sigma=1]", "smmd[kernel=random,term=mmd]"]
)
def test_a_label_says_what_was_tuned_and_is_no_spec(loss):
    label = parameters.tuned_label(loss)
    assert parameters.is_tuned(label) is True
    assert parameters.is_tuned(loss) is False
    assert parameters.untuned_label(label) == parameters.untuned_label(loss) == loss
    with expect_user_error("not of the form"):
        parameters.split_spec(label)


def with_field(annotation, **default):
    """A plugin with one field of this type."""
    return dataclass(
        type("Plugin", (), {"__annotations__": {"z": annotation}, **default})
    )


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Toy, None),
        (object, "not a dataclass"),
        (Toy(), "not a dataclass"),
        (with_field(int), "z needs a default"),
        (with_field(complex, z=1j), "z needs a default"),
        (with_field(Literal[1, 2], z=1), "Literal of texts"),
        (with_field(int | str, z=1), "z needs a default"),
        (with_field("Nowhere", z=1), "annotations cannot be read"),
    ],
)
def test_a_class_that_cannot_be_spelled_is_found(plugin, message):
    reason = parameters.why_unusable(plugin)
    assert reason is None if message is None else message in str(reason)
