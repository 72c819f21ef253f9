"""Which cells are compared with which."""

from smmd_bench.results.opponents import CellKey, opponents


def key(loss: str, seed: int = 0, recipe: str = "r", test: str = "all") -> CellKey:
    return CellKey("m", "t", None, test, "" if loss == "base" else recipe, loss, seed)


def test_ce_of_the_same_seed_and_ce_with_the_base() -> None:
    keys = [key("base"), key("ce"), key("ce", 1), key("smmd"), key("smmd", 1)]
    assert opponents(keys) == {
        key("ce"): key("base"),
        key("ce", 1): key("base"),
        key("smmd"): key("ce"),
        key("smmd", 1): key("ce", 1),
    }


def test_a_seed_that_ce_lacks_is_not_compared_with_something_else() -> None:
    keys = [key("base"), key("ce"), key("smmd"), key("smmd", 1)]
    assert opponents(keys) == {key("ce"): key("base"), key("smmd"): key("ce")}


def test_without_any_ce_the_base_stands_in() -> None:
    other = key("ce", recipe="another")
    keys = [key("base"), key("smmd"), key("smmd", 1), other]
    assert opponents(keys) == {
        key("smmd"): key("base"),
        key("smmd", 1): key("base"),
        other: key("base"),
    }


def test_cells_that_answer_other_examples_are_not_paired() -> None:
    keys = [key("base"), key("ce"), key("smmd", test="half"), key("ntl")]
    assert opponents(keys) == {key("ce"): key("base"), key("ntl"): key("ce")}


def test_files_of_completions_are_compared_with_the_first_of_them() -> None:
    keys = [key("mine"), key("base"), key("ce")]
    assert opponents(keys, "mine") == {key("base"): key("mine"), key("ce"): key("mine")}
