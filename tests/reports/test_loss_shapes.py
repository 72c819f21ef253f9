"""What each loss charges, against its formula by hand."""

import math

import pytest
from smmd_bench.reports.loss_shapes import LossShapes, penalties

SIX = ["ce", "gce", "dist2", "ntl", "ntil", "smmd"]


@pytest.fixture(scope="module")
def data():
    return penalties(SIX)


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


def gaussian(width):
    q = [math.exp(-((i - 3) ** 2) / (2 * width**2)) for i in range(10)]
    return [x / sum(q) for x in q]


def test_gce_is_the_cross_entropy_of_a_gaussian_and_dist2_lambda_times_a_divergence(data):
    p = prediction(4)
    expected = -sum(q * math.log(x) for q, x in zip(gaussian(0.5), p, strict=True))
    assert at(data, "gce", 4) == pytest.approx(expected)
    pairs = zip(gaussian(math.sqrt(0.5)), p, strict=True)
    expected = 0.1 * sum(q * math.log(q / x) for q, x in pairs)
    assert at(data, "dist2", 4) == pytest.approx(expected)


def test_ntil_of_one_digit_has_no_noise_and_no_place_value(data):
    p = prediction(7)
    sharp = [x**10 for x in p]  # the softmax at temperature 0.1
    X, Y = sum(i * x for i, x in enumerate(sharp)) / sum(sharp), 3
    expected = sum(x * abs(i - Y) for i, x in enumerate(p))
    expected += 0.2 * (X - Y) / (X + 1) + 0.2 * math.log((X + 1) / (Y + 1))
    assert at(data, "ntil", 7) == pytest.approx(2 * expected)


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
