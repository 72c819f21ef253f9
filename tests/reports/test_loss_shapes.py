import json
import math
import shutil
from pathlib import Path

import pytest
from smmd_bench.reports.loss_shapes import LossShapes, falls, figure, penalties

import smmd_bench as sb
from tests.publishing.published import publish
from tests.runs import write_run

SIX = ["ce", "gce", "dist2", "ntl", "ntil", "smmd"]


@pytest.fixture(scope="module")
def data():
    return penalties(SIX)


@pytest.fixture(scope="module")
def run(run_folder):
    return sb.read_run(run_folder)


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
@pytest.mark.parametrize("value", [0, 9])
def test_ntl_is_lambda_times_the_expected_distance(data, n, target, value):
    expected = 2 * sum(p * abs(i - target) for i, p in enumerate(prediction(n, value)))
    assert at(data, "ntl", n, value) == pytest.approx(expected)


def test_gce_is_the_cross_entropy_of_a_gaussian(data):
    q = [math.exp(-((i - 3) ** 2) / (2 * 0.5**2)) for i in range(10)]
    p = prediction(10, 4)
    expected = -sum(qi / sum(q) * math.log(pi) for qi, pi in zip(q, p, strict=True))
    assert at(data, "gce", 10, 4) == pytest.approx(expected)


def test_dist2_is_lambda_times_a_divergence(data):
    q = [math.exp(-((i - 3) ** 2)) for i in range(10)]
    q = [x / sum(q) for x in q]
    p = prediction(10, 4)
    expected = 0.1 * sum(qi * math.log(qi / pi) for qi, pi in zip(q, p, strict=True))
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


def test_smmd_charges_less_at_the_ends_of_the_range_than_before_them(data):
    assert falls(of(data, "smmd", 10)) == [(8, 9)]
    assert at(data, "smmd", 10, 9) < 0.99 * at(data, "smmd", 10, 8)
    assert falls(of(data, "smmd", 1000)) == [(5, 0), (994, 999)]
    assert at(data, "smmd", 1000, 999) < 0.94 * at(data, "smmd", 1000, 994)


@pytest.mark.parametrize("loss", ["ce", "gce", "dist2", "ntl", "ntil"])
@pytest.mark.parametrize("n", [10, 1000])
def test_no_other_loss_falls_at_the_ends(data, loss, n):
    assert falls(of(data, loss, n)) == []


def test_the_figure_says_where_smmd_falls():
    _, numbers, _ = figure(["smmd"]).axes
    assert [text.get_text() for text in numbers.texts] == [
        "falls below 5 and beyond 994:\n7.60 → 7.12 at 0,\n7.60 → 7.12 at 999"
    ]


def test_ntil_does_not_act_on_tokens_of_several_digits(data):
    assert of(data, "ntil", 1000).empty
    digits, *numbers = figure(["ntil"]).axes
    assert digits.get_ylabel() == "NTIL\n(2 × auxiliary,\nnoise=0)"
    for axis in numbers:
        assert [text.get_text() for text in axis.texts] == ["does not act on\nmulti-digit tokens"]


def test_a_weight_of_nothing_and_a_long_spelling_can_be_drawn(tmp_path):
    figure(["ntl[lambda=0]", "smmd[kernel=random,term=mmd]"]).savefig(tmp_path / "f.png")


def test_the_losses_of_the_run_are_drawn_with_cross_entropy(run):
    artefact = LossShapes().build(run)
    assert list(artefact.data["loss"].cat.categories) == ["ce", "ntl", "smmd"]
    assert len(artefact.figure.axes) == 3 * 3
    assert "0.9 to that value and spreads 0.1 evenly" in artefact.caption
    assert "Left out" not in artefact.caption


def test_a_loss_that_is_not_installed_is_left_out_and_named(tmp_path):
    write_run(tmp_path, losses=("smmd",), seeds=(0,), n=5, steps=5, resamples=20, base=False)
    for file in tmp_path.glob("cells/*/cell.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"loss": "unheard"}))
    artefact = LossShapes().build(sb.read_run(tmp_path))
    assert list(artefact.data["loss"].cat.categories) == ["ce"]
    assert "does not act here): unheard." in artefact.caption


def test_of_many_losses_the_first_are_drawn(tmp_path):
    losses = [f"ntl[lambda={at}]" for at in range(3, 16)]
    write_run(tmp_path, losses=losses, seeds=(0,), n=5, steps=5, resamples=20, base=False)
    artefact = LossShapes().build(sb.read_run(tmp_path))
    assert list(artefact.data["loss"].cat.categories) == ["ce", *losses[:11]]
    assert "the first 12 of 14 losses" in artefact.caption


def test_a_run_that_trains_nothing_is_skipped(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    shutil.rmtree(folder / "cells")
    assert LossShapes().skip(sb.read_run(folder)) == "no cell trains with a loss"


def test_publishing_again_gives_the_same_bytes(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))

    def published() -> list[bytes]:
        publish(sb.read_run(folder), [LossShapes()])
        files = sorted((folder / "reports" / "figures").iterdir())
        assert [file.suffix for file in files] == [".csv", ".pdf", ".png"]
        return [file.read_bytes() for file in files]

    assert published() == published()
