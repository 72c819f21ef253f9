"""Groups of losses that no test tells apart."""

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smmd_bench.reports.verdict import Verdict

from smmd_bench.contracts import ExactMatch
from smmd_bench.results.compare import contrasts, tied_losses
from smmd_bench.results.tie_groups import _test_difference, compact_letters
from smmd_bench.scoring.gain import holm
from tests.in_process import call
from tests.runs import planted_run

ANSWERS = [str(at) for at in range(80)]
RIGHT = {"ce": 30, "ntil": 36, "gce": 44, "ntl": 50, "smmd": 72}


def test_the_letters_are_those_of_the_example_by_hand():
    """Five means in order, of which neighbours but one are told apart; and one between two."""
    apart = [frozenset(pair) for pair in ("AD", "AE", "BE")]
    by_hand = {"A": "a", "B": "ab", "C": "abc", "D": "bc", "E": "c"}
    assert compact_letters("ABCDE", apart) == by_hand
    assert compact_letters("ABC", [frozenset("BC")]) == {"A": "ab", "B": "a", "C": "b"}
    assert compact_letters("ABC", []) == dict.fromkeys("ABC", "a")


@given(
    st.sets(st.sampled_from([frozenset(pair) for pair in combinations("ABCDEF", 2)]))
)
def test_two_share_a_letter_where_they_are_not_told_apart_and_no_letter_says_less(
    apart,
):
    letters = compact_letters("ABCDEF", apart)
    for pair in combinations("ABCDEF", 2):
        assert ({*letters[pair[0]]} & {*letters[pair[1]]} == set()) == (
            frozenset(pair) in apart
        )
    groups = [
        {n for n in letters if c in letters[n]} for c in {*"".join(letters.values())}
    ]
    assert not any(one < other for one in groups for other in groups)


@pytest.fixture(
    scope="module", params=[(0,), (0, 1, 2)], ids=["one seed", "three seeds"]
)
def run(request, tmp_path_factory):
    """Losses that get more and more of the examples right, other ones for each seed and loss."""

    def written(seed, right):
        shuffled = np.random.default_rng([seed, right]).permutation(80)
        return [
            a if at < right else "777" for at, a in zip(shuffled, ANSWERS, strict=True)
        ]

    texts = {
        loss: {seed: written(seed, right) for seed in request.param}
        for loss, right in RIGHT.items()
    }
    return planted_run(
        tmp_path_factory.mktemp("run"), ANSWERS, texts, seeds=request.param
    )


def test_told_apart_are_the_pairs_whose_test_is_significant_after_holm(run):
    pairs = [*combinations(RIGHT, 2)]
    p_values = []
    for pair in pairs:
        contrast = contrasts(run, pair, resamples=2)
        p_values += [*contrast["p"]]

    significant = holm(p_values) < 0.05
    assert {*significant} == {True, False}

    tied = tied_losses(run, [*RIGHT])
    assert [*tied["loss"]] == [*reversed(RIGHT)]
    letters = tied.set_index("loss")["letters"]
    for pair, is_significant in zip(pairs, significant, strict=True):
        first, second = (set(letters[loss]) for loss in pair)
        assert first.isdisjoint(second) == is_significant
    assert letters["smmd"].startswith("a")


def test_the_verdict_has_the_letters_of_compare(run):
    letters = tied_losses(run, [*RIGHT]).set_index("loss")["letters"]
    verdict = run.verdict.query("metric == 'exact_match' and loss != 'ce'")
    for row in verdict.itertuples():
        assert row.letters == letters[row.loss]
        assert row.against_letters == letters["ce"]
    assert {*verdict["loss"], "ce"} == {*RIGHT}


def test_the_verdict_and_compare_show_the_groups(run, tmp_path):
    table = Verdict().build(run).table
    exact = table[table["Metric"] == "Acc (%)"]
    groups = exact.set_index("Loss")["Group"]
    tied = tied_losses(run, [*RIGHT])
    letters = tied.set_index("loss")["letters"]
    for loss in ("ce", "ntil", "smmd"):
        assert groups[loss.upper()] == letters[loss]

    command = f"compare {run.path} --losses {','.join(RIGHT)}"
    assert "Who is first?" in call(command, tmp_path).stdout
    output = call(f"{command} --json", tmp_path).stdout
    rows = json.loads(output)["groups"]
    in_json = {row["loss"]: row["letters"] for row in rows}
    assert in_json == letters.to_dict()


def test_four_losses_need_no_groups(run):
    four = run.only(run.cells[run.cells["loss"] != "gce"])
    assert set(four.verdict["letters"]) == {""}
    assert "Group" not in Verdict().build(four).table


def test_of_one_seed_a_mean_is_tested_by_its_pseudo_values():
    assert _test_difference(ExactMatch(), [100.0, 0.0, -100.0, 100.0])["p"] == 1
    result = _test_difference(None, [1.0, 2.0, 3.0, 4.0])
    # t = 3.873 of 3 degrees of freedom
    assert result["p"] == pytest.approx(0.0305, abs=1e-4)
