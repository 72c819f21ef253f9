"""SMMD's kernel K and what the loss makes of it, as heat maps, with the eigenvalues of both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from smmd_bench.contracts import Artefact, Run, UserError
from smmd_bench.publishing.style import BLUE, VERMILION, WIDTH, folded, loss_label, new_figure
from smmd_bench.publishing.tables import DASH, number

from ._caption import split_caption, when
from ._panels import plain_ticks
from ._probes import vocabulary_sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VARIANTS = 4
"""Losses drawn at most, those that Table 6 of the paper compares first; the table has all."""
CORNER = 40
"""Numbers to each side of a heat map at most."""
WRITTEN = 10
"""Up to so many numbers, the entries are written in the heat map."""
NOTHING = 1e-9
"""Eigenvalues below it, of the largest, are rounding: they count as 0."""
_FORMS = {"both": "K + αL", "mmd": "K", "smooth": "αL"}


@dataclass(frozen=True)
class Kernel:
    """The matrices [N, N] of one loss at one N, from the loss itself, and their eigenvalues.

    `K` is the kernel and `A` the matrix of the loss λ rᵀAr; `alpha` is None without a smoothness
    term. Eigenvalues are in falling order.
    """

    loss: str
    matrices: dict[str, NDArray[np.float64]]
    eigenvalues: dict[str, NDArray[np.float64]]
    formula: str
    sigma: str
    alpha: float | None


@dataclass(frozen=True)
class KernelSpectrum:
    """Which errors SMMD charges for: its kernel, and how fast its eigenvalues fall."""

    name: ClassVar[str] = "kernel_spectrum"
    title: ClassVar[str] = "The kernel of SMMD and its spectrum"
    paper: ClassVar[str] = "not in the paper"

    def skip(self, run: Run) -> str | None:
        """A loss with a kernel, the size of V_num and torch are needed."""
        if "predictions" in run.manifest:
            return "the completions were made elsewhere: their labels are no losses"
        if not find_spec("torch"):
            return "torch is not installed"
        if not _specs(run):
            return "no loss of the run has a kernel"
        return None if vocabulary_sizes(run) else "no cell has digit probes, which tell the size N"

    def build(self, run: Run) -> Artefact:
        """One row of panels a loss: K, the form of the loss, their eigenvalues."""
        sizes, specs = [*dict.fromkeys(vocabulary_sizes(run).values())], _specs(run)
        table = pd.DataFrame([_row(kernel) for n in sizes for kernel in kernels(specs, n)])
        table.attrs["title"] = self.title
        n = sizes[0]
        drawn = kernels(specs[:VARIANTS], n)
        entries = f"all {n} numbers" if n <= CORNER else f"the numbers 0 to {CORNER - 1} of {n:,}"
        several = " and ".join(f"{size:,}" for size in sizes)
        left = ", ".join(map(loss_label, specs[VARIANTS:]))
        caption = split_caption(
            f"Kernels and their eigenvalues for V_num the integers from 0 to {n - 1}, N = {n:,}. "
            "Left: K; middle: the matrix A of the loss λ rᵀAr, r the residual of prediction and "
            f"target, L the graph Laplacian of K (drawn: {entries}). Right: the eigenvalues of "
            "both; an error along an eigenvector is charged in proportion to its eigenvalue. Those "
            "below a billionth of the largest count as 0. All follow from the loss alone: no "
            "seeds, no examples.",
            when(len(sizes) > 1, f"The table has N = {several}."),
            when(left, f"Not drawn, but in the table: {left}."),
        )
        return Artefact(
            table=table,
            figure=_figure(drawn),
            data=pd.concat(_data(drawn), ignore_index=True),
            **caption,
        )


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
        smoothness = form if loss.term == "smooth" else form - kernel
        laplacian = np.diag(kernel.sum(axis=1)) - kernel
        ratio = float(np.trace(smoothness) / np.trace(laplacian))
        alpha = None if loss.term == "mmd" else ratio
        sigma = "+".join(f"{x:g}" for x in loss.sigma) if loss.kernel != "random" else DASH
        matrices = {"K": kernel, "A": form}
        eigenvalues = {name: _eigenvalues(matrix) for name, matrix in matrices.items()}
        found.append(Kernel(spec, matrices, eigenvalues, _FORMS[loss.term], sigma, alpha))
    return found


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
    return sorted(found.values(), key=_place)


def _place(spec: str) -> int:
    """The losses that Table 6 of the paper compares go first: the kernel of distances, the shuffled
    and the random one; then the terms of the loss, then other bandwidths."""
    if "sigma=" in spec or "alpha=" in spec:
        return 2
    return 0 if "kernel=" in spec or spec == "smmd" else 1


def _eigenvalues(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """In falling order, without the last digits, which depend on the machine."""
    from scipy.linalg import eigvalsh

    found = eigvalsh(matrix)[::-1]
    found[np.abs(found) < NOTHING * np.abs(found).max()] = 0
    return np.array([float(f"{value:.6g}") for value in found])


def _row(kernel: Kernel) -> dict[str, str]:
    row = {"Loss": loss_label(kernel.loss), "N": f"{len(kernel.matrices['K']):,}"}
    row |= {"σ": kernel.sigma, "A": kernel.formula, "α": number(kernel.alpha, 4)}
    for name, eigenvalues in kernel.eigenvalues.items():
        above = eigenvalues[eigenvalues > 0]
        row[f"Largest of {name}"] = number(eigenvalues.max(), 3)
        row[f"Smallest of {name}"] = f"{above.min():.2g}" if len(above) else DASH
        row[f"Above 0 of {name}"] = f"{len(above):,}"
    return row


def _data(drawn: list[Kernel]) -> Iterator[pd.DataFrame]:
    """loss, matrix, what (entry or eigenvalue), row, column (from 0), value."""
    columns = ["loss", "matrix", "what", "row", "column", "value"]
    for kernel in drawn:
        for name, matrix in kernel.matrices.items():
            entries = pd.DataFrame(matrix[:CORNER, :CORNER]).rename_axis("row").reset_index()
            entries = entries.melt("row", var_name="column").sort_values(["row", "column"])
            entries["value"] = [float(f"{value:.9g}") for value in entries["value"]]
            eigenvalues = pd.Series(kernel.eigenvalues[name], name="value").rename_axis("row")
            parts = {"entry": entries, "eigenvalue": eigenvalues.reset_index()}
            for what, part in parts.items():
                part = part.assign(loss=kernel.loss, matrix=name, what=what)
                yield part.reindex(columns=columns).astype({"column": "Int64"})


def _figure(drawn: list[Kernel]) -> Figure:
    figure = new_figure(WIDTH, 0.2 + 2.9 * len(drawn))
    axes = figure.subplots(len(drawn), 3, squeeze=False)
    for (left, middle, right), kernel in zip(axes, drawn, strict=True):
        random = "" if kernel.sigma == DASH else f", σ = {kernel.sigma}"
        alpha = "" if kernel.alpha is None else f", α = {kernel.alpha:.3g}"
        name = folded(loss_label(kernel.loss), 34)
        _heat_map(left, kernel.matrices["K"], f"{name}\nK{random}")
        _heat_map(middle, kernel.matrices["A"], f"A = {kernel.formula}{alpha}")
        _spectrum(right, kernel)
    return figure


def _heat_map(axis: Axes, matrix: NDArray[np.float64], title: str) -> None:
    n, corner = len(matrix), matrix[:CORNER, :CORNER]
    most, negative = float(np.abs(corner).max()), bool((corner < 0).any())
    colours: Any = {"cmap": "PuOr_r", "vmin": -most} if negative else {"cmap": "cividis", "vmin": 0}
    image = axis.imshow(corner, vmax=most, **colours)
    axis.figure.colorbar(image, ax=axis, shrink=0.85)
    if n <= WRITTEN:
        light = image.to_rgba(corner)[..., :3] @ [0.3, 0.6, 0.1] > 0.5
        for (i, j), value in np.ndenumerate(np.round(corner, 2) + 0.0):
            text = re.sub(r"^(-?)0\.", r"\1.", f"{value:g}").replace("-", "−")
            colour = "black" if light[i, j] else "white"
            axis.text(j, i, text, ha="center", va="center", color=colour, fontsize=5.5)
        axis.set(xticks=range(n), yticks=range(n))
    axis.grid(visible=False)
    axis.set_title(title if n <= CORNER else f"{title}\n0 to {CORNER - 1} of {n:,} numbers")


def _spectrum(axis: Axes, kernel: Kernel) -> None:
    labels = {"K": "K", "A": f"A = {kernel.formula}"}
    styles = ((BLUE, "o", "-"), (VERMILION, "s", (0, (4, 1.5))))
    for (name, label), (colour, marker, line) in zip(labels.items(), styles, strict=True):
        eigenvalues = kernel.eigenvalues[name]
        above, zeros = eigenvalues[eigenvalues > 0], int((eigenvalues == 0).sum())
        every = 1 if len(eigenvalues) <= CORNER else len(above) // 8 or 1
        how: Any = {"color": colour, "marker": marker, "linestyle": line, "fillstyle": "none"}
        label += f" (zero: {zeros})" * (zeros > 0)
        axis.plot(np.arange(1, len(above) + 1), above, markevery=every, label=label, **how)
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    if high < 200 * low:
        plain_ticks(axis)
    axis.set(title="Eigenvalues\n", xlabel="rank")  # the empty line is the legend's
    axis.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=2)
