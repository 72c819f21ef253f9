"""The digit distributions on the page."""

import numpy as np
import pytest

import smmd_bench as sb
from smmd_bench.publishing.example_digits import LETTERS, POSITIONS, digit_distributions
from tests.runs import write_run

DIGITS = [f"p{digit}" for digit in range(10)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits")
    return write_run(path, tasks=("gsm8k",), losses=("ce", "smmd"), seeds=(0,), n=12, steps=5)


def examples(run):
    addresses = run.cells["address"].tolist()
    return [(addresses, str(uid)) for uid in run.completions["uid"].unique()]


def test_each_letter_is_a_probability_at_a_place_of_the_answer(run):
    asked = examples(run)
    found = digit_distributions(run, asked)
    assert list(found) == list(range(12))
    for row, (addresses, uid) in enumerate(asked):
        for address, letters in zip(addresses, found[row]["losses"], strict=True):
            probes = run.probes[(run.probes["uid"] == uid) & (run.probes["address"] == address)]
            answer = probes[probes["answer_digit"] >= 0].sort_values("digit")[:POSITIONS]
            p = np.array([LETTERS.index(letter) for letter in letters]).reshape(-1, 10) / 63
            np.testing.assert_allclose(p, answer[DIGITS], atol=0.5 / 63 + 1e-9)
            assert found[row]["targets"] == answer["target_value"].astype(int).tolist()


def test_the_limit_keeps_the_first_examples_whole(run):
    asked = examples(run)
    whole = digit_distributions(run, asked)
    sizes = [sum(len(letters) // 10 for letters in one["losses"]) for one in whole.values()]
    some = digit_distributions(run, asked, limit=sum(sizes[:5]) + 1)
    assert some == {row: whole[row] for row in range(5)}


def test_a_cell_without_probes_has_none(run):
    asked = examples(run)
    cells = run.cells["address"].tolist()
    (run.path / "cells" / cells[1] / "probes.parquet").unlink()
    found = digit_distributions(sb.read_run(run.path), asked)
    assert [None if x is None else bool(x) for x in found[0]["losses"]] == [True, None, True]
    for address in (cells[0], cells[2]):
        (run.path / "cells" / address / "probes.parquet").unlink()
    assert digit_distributions(sb.read_run(run.path), asked) == {}
