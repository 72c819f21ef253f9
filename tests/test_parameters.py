from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.errors import UserError
from smmd_bench.parameters import (
    build,
    canonical,
    non_negative,
    parameter,
    parameters_of,
    split_list,
    split_spec,
)


@dataclass(frozen=True)
class Toy:
    name: ClassVar[str] = "toy"
    sigma: tuple[float, ...] = parameter((2.0,), "bandwidths")
    weight: float = parameter(3.0, "lambda", name="lambda", check=non_negative)
    term: Literal["both", "mmd"] = parameter("both", "terms")
    hard: bool = parameter(False, "flag")
    steps: int | None = parameter(None, "steps")
    operations: tuple[int, int] | None = parameter(None, "range")


def made(text: str) -> Toy:
    name, values = split_spec(text)
    toy = build(Toy, name, values)
    assert isinstance(toy, Toy)
    return toy


def test_values_are_read_by_the_type_of_the_parameter() -> None:
    toy = made("toy[sigma=1+2.5,lambda=5,term=mmd,hard=true,steps=4,operations=1..2]")
    assert toy == Toy((1.0, 2.5), 5.0, "mmd", True, 4, (1, 2))


def test_canonical_spelling_names_only_what_differs_from_the_default() -> None:
    assert canonical(made("toy[ sigma=2.0 , lambda=5 ]")) == "toy[lambda=5]"
    assert canonical(Toy()) == "toy"


@given(
    st.builds(
        Toy,
        st.lists(st.floats(0.1, 1e6), min_size=3, max_size=5).map(tuple),
        st.floats(0, 1e9),
        st.sampled_from(["both", "mmd"]),
        st.booleans(),
        st.none() | st.integers(-5, 5),
        st.none() | st.tuples(st.integers(1, 9), st.integers(1, 9)),
    )
)
def test_the_canonical_spelling_reads_back_as_the_same_plugin(toy: Toy) -> None:
    assert made(canonical(toy)) == toy


def test_lists_split_only_outside_brackets() -> None:
    assert split_list("ce, ntl,smmd[sigma=1,lambda=2]") == ["ce", "ntl", "smmd[sigma=1,lambda=2]"]


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
def test_a_bad_spelling_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        made(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_parameters_are_documented() -> None:
    found = parameters_of(Toy)
    assert found["lambda"].help == "lambda"
    assert found["steps"].type == "integer or none"
    assert found["operations"].type == "range such as 1..2 or none"
