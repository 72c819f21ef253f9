import math

import numpy as np
import pandas as pd
import pytest
from smmd_bench.reports._probes import vocabulary_sizes
from smmd_bench.reports.kernel_spectrum import KernelSpectrum, kernels

from smmd_bench.publishing.style import figure_style
from tests.changed_runs import changed
from tests.reports.golden import words
from tests.runs import quick_run

LOSSES = ("ce", "smmd", "smmd[term=mmd]", "smmd[kernel=random,term=mmd]", "smmd[lambda=9]",
          "smmd[term=smooth]", "smmd[sigma=1+3]")  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return quick_run(tmp_path_factory.mktemp("variants"), losses=LOSSES)


@pytest.fixture(scope="module")
def artefact(run):
    return KernelSpectrum().build(run)


def gaussian(n, sigma=2.0):
    return np.array(
        [[math.exp(-((i - j) ** 2) / (2 * sigma**2)) for j in range(n)] for i in range(n)]
    )


@pytest.mark.parametrize("n", [10, 60])
def test_kernel_and_form_are_those_of_the_paper(n):
    (found,) = kernels(["smmd"], n)
    K = gaussian(n)
    alpha = n / (2 * K.sum())
    A = K + alpha * (np.diag(K.sum(axis=0)) - K)
    np.testing.assert_allclose(found.matrices["K"], K, atol=1e-12)
    np.testing.assert_allclose(found.matrices["A"], A, atol=1e-12)
    assert found.alpha == pytest.approx(alpha)
    for eigenvalues, matrix in ((found.eigenvalues["K"], K), (found.eigenvalues["A"], A)):
        expected = np.sort(np.linalg.eig(matrix)[0].real)[::-1]
        np.testing.assert_allclose(eigenvalues, expected, rtol=1e-3, atol=1e-8)
        assert (np.diff(eigenvalues) <= 0).all()


def test_what_is_rounding_counts_as_0():
    smooth, random = kernels(["smmd[term=smooth]", "smmd[kernel=random,term=mmd]"], 10)
    assert smooth.eigenvalues["A"][-1] == 0  # the constant vector of a graph Laplacian
    assert (smooth.eigenvalues["A"][:-1] > 0).all()
    rank = np.linalg.matrix_rank(random.matrices["K"])
    assert ((random.eigenvalues["K"] > 0).sum(), random.alpha) == (rank, None)


def test_the_table_has_every_kernel_once_and_losses_of_another_lambda_not(artefact):
    assert artefact.table["Loss"].tolist() == [
        "SMMD", "SMMD[kernel=random,term=mmd]", "SMMD[term=mmd]", "SMMD[term=smooth]",
        "SMMD[sigma=1+3]",
    ]  # fmt: skip
    row = artefact.table.iloc[0]
    assert row[["N", "σ", "A", "α"]].tolist() == ["10", "2", "K + αL", "0.1182"]


def test_the_figure_has_two_heat_maps_and_a_spectrum_a_loss(artefact):
    panels = [axis for axis in artefact.figure.axes if axis.get_label() != "<colorbar>"]
    assert len(panels) == 4 * 3
    titles = [axis.get_title() for axis in panels[:3]]
    assert titles == ["SMMD\nK, σ = 2", "A = K + αL, α = 0.118", "Eigenvalues\n"]
    (image,) = panels[0].images
    np.testing.assert_allclose(image.get_array(), gaussian(10))
    first, second = panels[2].lines
    assert (first.get_marker(), second.get_marker()) == ("o", "s")
    assert "Not drawn, but in the table: SMMD[sigma=1+3]." in words(artefact)


def test_the_kernels_of_table_6_are_drawn_before_terms_and_bandwidths(tmp_path):
    kinds = ("sigma=4", "term=mmd", "term=smooth", "kernel=shuffled,term=mmd")
    losses = ("ce", *(f"smmd[{kind}]" for kind in kinds), "smmd[kernel=random,term=mmd]", "smmd")
    artefact = KernelSpectrum().build(quick_run(tmp_path, losses=losses))
    assert set(artefact.data["loss"]) == {
        "smmd", "smmd[kernel=shuffled,term=mmd]", "smmd[kernel=random,term=mmd]", "smmd[term=mmd]"
    }  # fmt: skip
    assert len(artefact.table) == 6


def test_no_legend_covers_a_spectrum(artefact):
    with figure_style():
        artefact.figure.draw_without_rendering()
    legends = [axis for axis in artefact.figure.axes if axis.get_legend()]
    assert legends
    for axis in legends:
        assert axis.get_legend().get_window_extent().y0 >= axis.get_window_extent().y1


def test_of_a_thousand_numbers_a_corner_is_drawn_and_all_eigenvalues(run, tmp_path):
    def longer(probes):
        vectors = pd.Series([[0.001] * 1000, *[None] * (len(probes) - 1)], dtype=object)
        return probes.assign(vector=vectors)

    run = changed(run, tmp_path, "probes.parquet", longer)
    run = run.only(run.cells[run.cells["loss"].isin(["base", "ce", "smmd"])])
    assert vocabulary_sizes(run) == {"builtin/tiny": 1000}
    artefact = KernelSpectrum().build(run)
    assert artefact.figure.axes[0].get_title() == "SMMD\nK, σ = 2\n0 to 39 of 1,000 numbers"
    assert "(drawn: the numbers 0 to 39 of 1,000)" in words(artefact)
    data = artefact.data[artefact.data["matrix"] == "A"]
    assert data["what"].value_counts().to_dict() == {"entry": 1600, "eigenvalue": 1000}
