"""SMMD's kernel K and what the loss makes of it, as heat maps, with the eigenvalues of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from smmd_bench.contracts import Artefact, Run, UserError
from smmd_bench.publishing.style import (
    BLUE,
    VERMILION,
    WIDTH,
    folded,
    loss_label,
    new_figure,
)
from smmd_bench.publishing.tables import DASH, number

from ._panels import plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

VARIANTS = 4
"""Losses drawn at most; the table has all."""
CORNER = 40
"""Numbers to each side of a heat map at most."""
WRITTEN = 10
"""Up to so many numbers, the entries are written in the heat map."""
NOTHING = 1e-9
"""Eigenvalues below it, of the largest, are rounding: they count as 0."""
_FORMS = {"both": "K + αL", "mmd": "K", "smooth": "αL"}


@dataclass(frozen=True)
class Kernel:
    """The matrices of one loss at one N, from the loss itself.

    `kernel` [N, N] is K and `form` [N, N] the A of the loss rᵀAr; `alpha` is None without a
    smoothness term. Eigenvalues are in falling order.
    """

    loss: str
    kernel: NDArray[np.float64]
    form: NDArray[np.float64]
    formula: str
    sigma: str
    alpha: float | None
    kernel_eigenvalues: NDArray[np.float64]
    form_eigenvalues: NDArray[np.float64]


@dataclass(frozen=True)
class KernelSpectrum:
    """Which errors SMMD charges for: its kernel, and how fast its eigenvalues fall."""

    name: ClassVar[str] = "kernel_spectrum"
    title: ClassVar[str] = "The kernel of SMMD and its spectrum"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """A loss with a kernel, the size of V_num and torch are needed."""
        from importlib.util import find_spec

        if "predictions" in run.manifest:
            return "the completions were made elsewhere: their labels are no losses"
        if not find_spec("torch"):
            return "torch is not installed"
        if not _specs(run):
            return "no loss of the run has a kernel"
        return None if numeric_tokens(run) else "no cell has digit probes, which tell the size N"

    def build(self, run: Run) -> Artefact:
        """One row of panels a loss: K, the form of the loss, their eigenvalues."""
        sizes, specs = numeric_tokens(run), _specs(run)
        table = pd.DataFrame(
            [_row(kernel, n) for n in sizes for kernel in kernels(specs, n)]
        ).fillna(DASH)
        n = sizes[0]
        drawn = kernels(specs[:VARIANTS], n)
        shown = min(n, CORNER)
        entries = f"all {n} numbers" if shown == n else f"the numbers 0 to {shown - 1} of {n:,}"
        caption = (
            f"N = {n:,}, V_num the integers from 0 to {n - 1}. Left: K; middle: the matrix A of "
            "the loss λ rᵀAr, with the residual r of prediction and target, where L is the graph "
            f"Laplacian of K (drawn: {entries}). Right: the eigenvalues of both in "
            "falling order; an error along an eigenvector is charged in proportion to its "
            "eigenvalue. Those below a billionth of the largest count as 0 and are not drawn. All "
            "follow from the loss alone, not from training: no seeds, no examples."
        )
        if len(sizes) > 1:
            caption += f" The table has N = {' and '.join(f'{m:,}' for m in sizes)}."
        if left := specs[VARIANTS:]:
            caption += f" Not drawn, but in the table: {', '.join(map(loss_label, left))}."
        table.attrs["title"] = self.title
        return Artefact(caption, table, _figure(drawn), _data(drawn))


def kernels(specs: list[str], n: int) -> list[Kernel]:
    """The matrices of these losses over the integers from 0 to n - 1."""
    import torch

    from smmd_bench.contracts import NumericVocabulary
    from smmd_bench.plugin_system.registry import load_loss

    values = torch.arange(n)
    vocabulary = NumericVocabulary(values, values.double(), "integer")
    found = []
    for spec in specs:
        loss: Any = load_loss(spec)
        kernel, form = loss.gram(vocabulary).numpy(), loss.matrix(vocabulary).numpy()
        sigma = "+".join(f"{x:g}" for x in loss.sigma) if loss.kernel != "random" else DASH
        found.append(
            Kernel(
                spec,
                kernel,
                form,
                _FORMS[loss.term],
                sigma,
                _alpha(kernel, form, loss.term),
                _eigenvalues(kernel),
                _eigenvalues(form),
            )
        )
    return found


def numeric_tokens(run: Run) -> list[int]:
    """The sizes N of V_num in the run, by its models, from the digit probes."""
    sizes = []
    for _, cells in run.cells.groupby("model", observed=True):
        for address in cells["address"]:
            vectors = run.read("probes", ["vector"], [address])
            known = [] if "vector" not in vectors else [*vectors["vector"].dropna()[:1]]
            if known:
                sizes.append(len(known[0]))
                break
    return list(dict.fromkeys(sizes))


def _specs(run: Run) -> list[str]:
    """The losses of the run with a kernel; those that differ in lambda alone are one."""
    from smmd_bench.plugin_system.registry import load_loss

    found: dict[Any, str] = {}
    for spec in map(str, run.cells["loss"].cat.categories):
        if spec.partition("[")[0] != "smmd":
            continue
        try:
            loss: Any = load_loss(spec)
        except UserError:
            continue
        parts = loss.sigma, loss.alpha, loss.term, loss.kernel, loss.kernel_seed, loss.squash
        found.setdefault(parts, spec)
    return list(found.values())


def _alpha(kernel: NDArray[np.float64], form: NDArray[np.float64], term: str) -> float | None:
    """What the Laplacian of K is multiplied by in the form."""
    if term == "mmd":
        return None
    smoothness = form if term == "smooth" else form - kernel
    laplacian = np.diag(kernel.sum(axis=1)) - kernel
    return float(np.trace(smoothness) / np.trace(laplacian))


def _eigenvalues(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """In falling order, without the last digits, which depend on the machine."""
    from scipy.linalg import eigvalsh

    found = eigvalsh(matrix)[::-1]
    found[np.abs(found) < NOTHING * np.abs(found).max()] = 0
    return np.array([float(f"{value:.6g}") for value in found])


def _row(kernel: Kernel, n: int) -> dict[str, str]:
    row = {"Loss": loss_label(kernel.loss), "N": f"{n:,}", "σ": kernel.sigma}
    row |= {"A": kernel.formula, "α": number(kernel.alpha, 4)}
    both = {"K": kernel.kernel_eigenvalues, "A": kernel.form_eigenvalues}
    for name, eigenvalues in both.items():
        row[f"Largest of {name}"] = number(eigenvalues.max(), 3)
        above = eigenvalues[eigenvalues > 0]
        row[f"Smallest of {name}"] = f"{above.min():.2g}" if len(above) else DASH
        row[f"Above 0 of {name}"] = f"{len(above):,}"
    return row


def _data(drawn: list[Kernel]) -> pd.DataFrame:
    """loss, matrix, what (entry or eigenvalue), row, column (from 0), value."""
    parts = []
    for kernel in drawn:
        of = {
            "K": (kernel.kernel, kernel.kernel_eigenvalues),
            "A": (kernel.form, kernel.form_eigenvalues),
        }
        for name, (matrix, eigenvalues) in of.items():
            corner = matrix[:CORNER, :CORNER]
            i, j = (x.ravel() for x in np.indices(corner.shape))
            values = [float(f"{value:.9g}") for value in corner.ravel()]
            entries = pd.DataFrame({"row": i, "column": j, "value": values}).assign(what="entry")
            ranks = pd.DataFrame({"row": np.arange(len(eigenvalues)), "value": eigenvalues})
            part = pd.concat([entries, ranks.assign(what="eigenvalue")], ignore_index=True)
            parts.append(part.assign(loss=kernel.loss, matrix=name))
    data = pd.concat(parts, ignore_index=True).astype({"column": "Int64"})
    return data[["loss", "matrix", "what", "row", "column", "value"]]


def _figure(drawn: list[Kernel]) -> Figure:
    figure = new_figure(WIDTH, 0.2 + 2.9 * len(drawn))
    axes = figure.subplots(len(drawn), 3, squeeze=False)
    for row, kernel in zip(axes, drawn, strict=True):
        row[0].set_ylabel(folded(loss_label(kernel.loss), 26))
        random = "" if kernel.sigma == DASH else f", σ = {kernel.sigma}"
        _heat_map(figure, row[0], kernel.kernel, f"K{random}")
        alpha = "" if kernel.alpha is None else f", α = {kernel.alpha:.3g}"
        _heat_map(figure, row[1], kernel.form, f"A = {kernel.formula}{alpha}")
        _spectrum(row[2], kernel)
    return figure


def _heat_map(figure: Figure, axis: Axes, matrix: NDArray[np.float64], title: str) -> None:
    n, corner = len(matrix), matrix[:CORNER, :CORNER]
    most, negative = float(np.abs(corner).max()), bool((corner < 0).any())
    image = axis.imshow(
        corner,
        cmap="PuOr_r" if negative else "cividis",
        vmin=-most if negative else 0,
        vmax=most,
    )
    figure.colorbar(image, ax=axis, shrink=0.85)
    if n <= WRITTEN:
        for (i, j), value in np.ndenumerate(corner):
            red, green, blue, _ = np.asarray(image.to_rgba(np.array(value)))
            light = 0.3 * red + 0.6 * green + 0.1 * blue > 0.5
            text = f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")
            text = {".00": "0", "−.00": "0", "1.00": "1", "−1.00": "−1"}.get(text, text)
            axis.text(
                j, i, text, ha="center", va="center", fontsize=5.5,
                color="black" if light else "white",
            )  # fmt: skip
        axis.set_xticks(range(n))
        axis.set_yticks(range(n))
    axis.grid(visible=False)
    axis.set_title(title if n <= CORNER else f"{title}\n0 to {CORNER - 1} of {n:,} numbers")


def _spectrum(axis: Axes, kernel: Kernel) -> None:
    few = len(kernel.kernel) <= CORNER
    drawings = (
        ("K", kernel.kernel_eigenvalues, BLUE, "o", "-"),
        (f"A = {kernel.formula}", kernel.form_eigenvalues, VERMILION, "s", (0, (4, 1.5))),
    )
    for label, eigenvalues, colour, marker, line in drawings:
        above = eigenvalues[eigenvalues > 0]
        zeros = int((eigenvalues == 0).sum())
        axis.plot(
            np.arange(1, len(above) + 1),
            above,
            color=colour,
            marker=marker,
            fillstyle="none",
            linestyle=line,
            markevery=1 if few else max(1, len(above) // 8),
            label=label + (f" (zero: {zeros})" if zeros else ""),
        )
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    if high < 200 * low:
        plain_ticks(axis)
    axis.set_title("Eigenvalues")
    axis.set_xlabel("rank")
    axis.legend(fontsize=8)
