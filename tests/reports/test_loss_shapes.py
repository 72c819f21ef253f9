"""What each loss charges, against its formula by hand."""

import math

import pytest
from smmd_bench.reports.loss_shapes import LossShapes, penalties


@pytest.fixture(scope="module")
def data():
    return penalties(["ce", "ntl", "smmd"])


def at(data, loss, value):
    return data[data["loss"] == loss].set_index("value")["penalty"][value]


def prediction(value):
    return [0.9 if i == value else 0.1 / 9 for i in range(10)]


def test_cross_entropy_is_flat_but_at_the_target(data):
    charged = data[data["loss"] == "ce"].set_index("value")["penalty"]
    assert charged[3] == pytest.approx(-math.log(0.9))
    assert charged.drop(3).to_numpy() == pytest.approx(-math.log(0.1 / 9))


@pytest.mark.parametrize("value", [0, 5])
def test_ntl_is_lambda_times_the_expected_distance(data, value):
    expected = 2 * sum(p * abs(i - 3) for i, p in enumerate(prediction(value)))
    assert at(data, "ntl", value) == pytest.approx(expected)


@pytest.mark.parametrize("value", [0, 6, 9])
def test_smmd_is_lambda_times_its_quadratic_form(data, value):
    K = [[math.exp(-((i - j) ** 2) / 8) for j in range(10)] for i in range(10)]
    alpha = 1 / (2 * sum(map(sum, K)) / 10)
    r = [p - (i == 3) for i, p in enumerate(prediction(value))]
    pairs = [(i, j) for i in range(10) for j in range(10)]
    expected = sum(K[i][j] * r[i] * r[j] for i, j in pairs)
    expected += alpha * sum(K[i][j] * (r[i] - r[j]) ** 2 for i, j in pairs) / 2
    assert at(data, "smmd", value) == pytest.approx(3 * expected)


def test_the_losses_of_the_run_are_drawn_with_cross_entropy(run):
    artefact = LossShapes().build(run)
    assert list(artefact.data["loss"].unique()) == ["ce", "ntl", "smmd"]
