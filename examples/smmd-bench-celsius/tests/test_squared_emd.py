"""The loss squared_emd keeps the contract, and charges what its formula says."""

import math

import pytest
import torch
from scipy.stats import energy_distance
from smmd_bench import integers, load_loss, numeric_objective, violations
from smmd_bench.contracts import NumericVocabulary
from torch import Tensor

from smmd_bench_celsius.squared_emd import SquaredEarthMover


def auxiliary(vocabulary: NumericVocabulary, p: Tensor, target: int) -> float:
    """What the loss charges for the distribution p over the numeric tokens."""
    loss = load_loss("squared_emd").bind(vocabulary)
    logits = torch.full((1, 1, int(vocabulary.token_ids.max()) + 1), -1e4, dtype=torch.float64)
    logits[0, 0, vocabulary.token_ids] = p.log().clamp(min=-1e4)
    labels = vocabulary.token_ids[target].reshape(1, 1)
    return float(numeric_objective(loss, logits, labels).auxiliary)


def test_it_keeps_the_contract_of_a_loss() -> None:
    assert isinstance(load_loss("squared_emd"), SquaredEarthMover)
    assert violations("squared_emd") == []


@pytest.mark.parametrize(("predicted", "expected"), [(3, 0.0), (4, 1 / 9), (0, 3 / 9), (9, 6 / 9)])
def test_a_certain_prediction_costs_its_share_of_the_range(predicted: int, expected: float) -> None:
    p = torch.eye(10, dtype=torch.float64)[predicted]
    assert auxiliary(integers(10), p, 3) == pytest.approx(expected, abs=1e-9)


def test_it_is_half_the_squared_energy_distance_as_a_share_of_the_range() -> None:
    values = torch.tensor([-3.5, 0, 0.25, 2, 2, 40], dtype=torch.float64)  # two tokens of one value
    vocabulary = NumericVocabulary(torch.tensor([4, 0, 2, 5, 1, 3]), values, "float")
    p = torch.tensor([0.1, 0.2, 0.3, 0.15, 0.05, 0.2], dtype=torch.float64)
    for target in range(6):
        wanted = energy_distance(values, values[[target]], u_weights=p) ** 2 / 2 / 43.5
        assert auxiliary(vocabulary, p, target) == pytest.approx(wanted)


@pytest.mark.parametrize("n", [10, 1000])
def test_the_stated_scale_is_what_it_gives_at_an_even_guess(n: int) -> None:
    p = torch.full((n,), 1 / n, dtype=torch.float64)
    mean = sum(auxiliary(integers(n), p, target) for target in range(n)) / n
    loss = load_loss("squared_emd")
    found = loss.weight * mean / math.log(n)
    assert found == pytest.approx(SquaredEarthMover.relative_scale[n], rel=0.03)
