import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.overhead.batches import (
    PREPARATION,
    _values,
    numeric_places,
    synthetic_rows,
    synthetic_vocabulary,
)
from tests.overhead.conftest import tiny_settings


def runs_of(places):
    """Lengths of the runs of numeric tokens."""
    text = "".join("n" if numeric else " " for numeric in places)
    return [len(run) for run in text.split()]


@given(st.integers(1, 600), st.floats(0.001, 1))
def test_the_share_of_numeric_places_is_the_one_asked_for(tokens, share):
    places = numeric_places(tokens, share)
    assert len(places) == tokens
    assert places.sum() == max(1, round(tokens * share))


def test_numbers_have_about_four_tokens_with_others_between_them():
    assert runs_of(numeric_places(64, 0.5)) == [4] * 8
    assert runs_of(numeric_places(10, 0.5)) == [3, 2]


def test_where_others_are_few_numbers_get_longer_up_to_a_single_one():
    assert runs_of(numeric_places(20, 0.9)) == [6, 6, 6]
    assert runs_of(numeric_places(64, 1.0)) == [64]


def test_the_numeric_vocabulary_is_spread_over_the_whole_one():
    vocabulary = synthetic_vocabulary(512, 10)
    assert vocabulary.values.tolist() == list(range(10))
    assert (vocabulary.token_ids[0], vocabulary.token_ids[-1]) == (0, 511)
    assert len(vocabulary.token_ids.unique()) == 10


def test_labels_are_the_tokens_of_the_last_part_of_a_row_and_numeric_where_they_should_be():
    settings = tiny_settings(length=40, supervised=0.5, numeric=0.4)
    rows = synthetic_rows(settings, 0)
    assert len(rows) == (PREPARATION + settings.steps) * settings.batch_size
    vocabulary = synthetic_vocabulary(512, 10)
    for row in rows:
        assert row["labels"][:20].eq(-100).all()
        assert torch.equal(row["labels"][20:], row["input_ids"][20:])
        numeric = torch.isin(row["input_ids"], vocabulary.token_ids).numpy()
        expected = np.r_[np.zeros(20, bool), numeric_places(20, 0.4)]
        assert (numeric == expected).all()


def test_rows_follow_from_the_seed_and_the_repeat():
    settings = tiny_settings()
    ids = [synthetic_rows(settings, repeat)[0]["input_ids"] for repeat in (0, 0, 1)]
    assert torch.equal(ids[0], ids[1])
    assert not torch.equal(ids[0], ids[2])


def test_values_of_few_and_many_digits_are_alike_often():
    values = _values(np.random.default_rng(0), 1000, (100, 60))
    assert values.shape == (100, 60)
    shares = np.bincount(np.char.str_len(values.astype(str)).ravel(), minlength=4) / 6000
    assert shares[1:] == pytest.approx(1 / 3, abs=0.03)
    assert (values.min(), values.max()) == (0, 999)
    assert set(np.unique(_values(np.random.default_rng(0), 10, (50, 50)))) == set(range(10))
