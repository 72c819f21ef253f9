"""A table as LaTeX: a float in booktabs rules that is never wider than its column.

A table that is wider than a column goes over both columns of the page (`table*`), and is scaled to
the page where it has to be. The document needs `\\usepackage{booktabs,graphicx}`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .tables import as_text, bold_cells, is_numeric, width_of

if TYPE_CHECKING:
    import pandas as pd

COLUMN = 48
"""About how many characters a column of a two-column paper takes at `\\small`."""
PREAMBLE = "% \\usepackage{booktabs,graphicx}\n"
_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\n": " ",
    "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "Δ": r"$\Delta$",
    "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$", "√": r"$\surd$", "∈": r"$\in$",
    "→": r"$\rightarrow$", "σ": r"$\sigma$", "λ": r"$\lambda$", "β": r"$\beta$", "μ": r"$\mu$",
    "²": "$^2$", "³": "$^3$", "⁻": "$^-$", "–": "--", "—": "---", "…": r"\ldots{}",
    "‘": "`", "’": "'", "“": "``", "”": "''", "\xa0": "~",
}  # fmt: skip
_ESCAPED = str.maketrans(_SIGNS)
_SIZED = (
    "\\small\n\\setlength{\\tabcolsep}{4pt}\n"
    "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n\\begin{tabular}"
)


def to_latex(frame: pd.DataFrame, caption: str, label: str) -> str:
    """The table with its caption and label; bold cells are bold."""
    text = as_text(frame)
    bold = bold_cells(frame)
    weights = text.copy()
    for name in text.columns:
        weights[name] = ["textbf:--rwrap;" if (at, name) in bold else "" for at in text.index]
    styler = text.style.format(escape).format_index(escape, axis="columns").hide(axis="index")
    written = styler.apply(lambda _: weights, axis=None).to_latex(
        column_format="".join("r" if is_numeric(text[name]) else "l" for name in text.columns),
        hrules=True,
        position="t",
        position_float="centering",
        caption=escape(caption),
        label=label,
        environment="table*" if width_of(text) > COLUMN else None,
    )
    sized = str(written).replace("\\begin{tabular}", _SIZED)
    return PREAMBLE + sized.replace("\\end{tabular}\n", "\\end{tabular}}\n")


def escape(text: object) -> str:
    """Text as LaTeX sets it; letters that it may not know, such as Greek ones, stay as they are.

    A first `[` or `*` would be an option of the row's end before it.
    """
    return re.sub(r"^\s*([\[*])", r"{\1}", str(text).translate(_ESCAPED))
