"""What each loss charges, against its formula by hand."""

import math

import pytest
from smmd_bench.reports.loss_shapes import LossShapes, figure, penalties

SIX = ["ce", "gce", "dist2", "ntl", "ntil", "smmd"]


@pytest.fixture(scope="module")
def data():
    return penalties(SIX)


def of(data, loss, n):
    return data[(data["loss"] == loss) & (data["numeric_tokens"] == n)]


def at(data, loss, n, value):
    return of(data, loss, n).set_index("value")["penalty"][value]


def prediction(n, value):
    return [0.9 if i == value else 0.1 / (n - 1) for i in range(n)]


@pytest.mark.parametrize(("n", "target"), [(10, 3), (1000, 300)])
def test_cross_entropy_is_flat_but_at_the_target(data, n, target):
    charged = of(data, "ce", n).set_index("value")["penalty"]
    assert charged[target] == pytest.approx(-math.log(0.9))
    assert charged.drop(target).to_numpy() == pytest.approx(-math.log(0.1 / (n - 1)))


@pytest.mark.parametrize(("n", "target"), [(10, 3), (1000, 300)])
@pytest.mark.parametrize("value", [0, 5])
def test_ntl_is_lambda_times_the_expected_distance(data, n, target, value):
    expected = 2 * sum(p * abs(i - target) for i, p in enumerate(prediction(n, value)))
    assert at(data, "ntl", n, value) == pytest.approx(expected)


def gaussian(width):
    q = [math.exp(-((i - 3) ** 2) / (2 * width**2)) for i in range(10)]
    return [x / sum(q) for x in q]


def test_gce_is_the_cross_entropy_of_a_gaussian_and_dist2_lambda_times_a_divergence(data):
    p = prediction(10, 4)
    expected = -sum(q * math.log(x) for q, x in zip(gaussian(0.5), p, strict=True))
    assert at(data, "gce", 10, 4) == pytest.approx(expected)
    pairs = zip(gaussian(math.sqrt(0.5)), p, strict=True)
    expected = 0.1 * sum(q * math.log(q / x) for q, x in pairs)
    assert at(data, "dist2", 10, 4) == pytest.approx(expected)


def test_ntil_of_one_digit_has_no_noise_and_no_place_value(data):
    p = prediction(10, 7)
    sharp = [x**10 for x in p]  # the softmax at temperature 0.1
    X, Y = sum(i * x for i, x in enumerate(sharp)) / sum(sharp), 3
    expected = sum(x * abs(i - Y) for i, x in enumerate(p))
    expected += 0.2 * (X - Y) / (X + 1) + 0.2 * math.log((X + 1) / (Y + 1))
    assert at(data, "ntil", 10, 7) == pytest.approx(2 * expected)


@pytest.mark.parametrize("value", [0, 6, 9])
def test_smmd_is_lambda_times_its_quadratic_form(data, value):
    K = [[math.exp(-((i - j) ** 2) / 8) for j in range(10)] for i in range(10)]
    alpha = 1 / (2 * sum(map(sum, K)) / 10)
    r = [p - (i == 3) for i, p in enumerate(prediction(10, value))]
    pairs = [(i, j) for i in range(10) for j in range(10)]
    expected = sum(K[i][j] * r[i] * r[j] for i, j in pairs)
    expected += alpha * sum(K[i][j] * (r[i] - r[j]) ** 2 for i, j in pairs) / 2
    assert at(data, "smmd", 10, value) == pytest.approx(3 * expected)


def test_ntil_does_not_act_on_tokens_of_several_digits(data):
    assert of(data, "ntil", 1000).empty
    digits, *numbers = figure(["ntil"]).axes
    assert digits.get_ylabel() == "NTIL\n(2 × auxiliary,\nnoise=0)"
    for axis in numbers:
        assert [text.get_text() for text in axis.texts] == ["does not act on\nmulti-digit tokens"]


def drawn(artefact):
    return list(artefact.data["loss"].cat.categories)


def test_the_losses_of_the_run_are_drawn_with_cross_entropy(run):
    artefact = LossShapes().build(run)
    assert drawn(artefact) == ["ce", "ntl", "smmd"]
    assert len(artefact.figure.axes) == 3 * 2
