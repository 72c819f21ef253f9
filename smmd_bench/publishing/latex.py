"""A table as LaTeX for a page of two columns: booktabs rules, and no wider or longer than the page.

A table that is wider than a column goes over both (`table*`). One that is wider than the page loses
the columns that never change to its caption, and is then scaled to the page where it has to be. One
that is longer than a page goes on in further floats.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING

from .tables import DASH, as_text, is_numeric, mark_bold

if TYPE_CHECKING:
    import pandas as pd

COLUMN, PAGE = 48, 100
"""About how many characters, with two between columns, a column and a page of a two-column paper
take at `\\small`; what is wider after all is scaled."""
ROWS, FEWEST = 44, 8
"""Rows of a float, less one for each line of its caption, and of how few it is never less."""
PREAMBLE = "% \\usepackage{booktabs,graphicx}\n"
_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "Δ": r"$\Delta$",
    "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$", "≠": r"$\neq$", "∞": r"$\infty$",
    "√": r"$\surd$", "∈": r"$\in$", "∑": r"$\sum$", "→": r"$\rightarrow$", "←": r"$\leftarrow$",
    "✓": r"$\surd$", "✗": r"$\times$", "⁻": "$^-$", "–": "--", "—": "---", "…": r"\ldots{}",
    "‘": "`", "’": "'", "“": "``", "”": "''", "\u2009": " ", "\u202f": "~", "\xa0": "~",
}  # fmt: skip
_SMALL = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa mu nu xi pi rho sigma tau upsilon"
    " phi chi psi omega"
)
_GREEK = {name.upper(): f"\\{name}" for name in _SMALL.split()}
_GREEK |= {"LAMDA": r"\lambda", "OMICRON": "o"}
_NOT_IN_OT1 = frozenset("ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲų")
"""Letters that LaTeX's default encoding of fonts lacks: each is an error there."""
_SIZED = (
    "\\small\n\\setlength{\\tabcolsep}{4pt}\n"
    "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n\\begin{tabular}"
)


def to_latex(frame: pd.DataFrame, caption: str, label: str) -> str:
    """A floating table in booktabs rules; needs nothing but `\\usepackage{booktabs}`."""
    return _float(_cells(frame), _form(frame), caption, label)


def to_page(frame: pd.DataFrame, title: str, caption: str, label: str) -> str:
    """The floats of a table; they need booktabs and graphicx."""
    if _characters(frame) > PAGE:
        frame, fixed = _without_fixed(frame)
        caption = f"{fixed} {caption}" if fixed else caption
    caption = f"{title}{'' if title.endswith('?') else '.'} {caption}"
    cells, form, wide = _cells(frame), _form(frame), _characters(frame) > COLUMN
    lines = 1.1 * len(caption) / (PAGE if wide else COLUMN)
    first = max(FEWEST, ROWS - math.ceil(lines))
    floats = [_float(cells[:first], form, caption, label, wide=wide)]
    for start in range(first, len(cells), ROWS):
        rows = cells[start : start + ROWS]
        floats.append(_float(rows, form, f"{title}, continued.", wide=wide))
    sized = "\n".join(floats).replace("\\begin{tabular}", _SIZED)
    return PREAMBLE + sized.replace("\\end{tabular}\n", "\\end{tabular}}\n")


def _float(
    cells: pd.DataFrame, form: str, caption: str, label: str = "", *, wide: bool = False
) -> str:
    text = cells.style.hide(axis="index").to_latex(
        column_format=form,
        hrules=True,
        position="t",
        position_float="centering",
        caption=escape(caption),
        label=label,
        environment="table*" if wide else None,
    )
    return str(text)


def _cells(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells and headings as LaTeX."""
    text = mark_bold(as_text(frame).map(escape), "\\textbf{{{}}}".format)
    names = [escape(name) for name in text.columns]
    for first in text.columns[:1]:
        text[first] = text[first].map(_at_the_start)
        names[0] = _at_the_start(names[0])
    return text.set_axis(names, axis="columns")


def _at_the_start(cell: str) -> str:
    """The first cell of a row, which LaTeX must not take for an option of the command before it."""
    return re.sub(r"^\s*([\[*])", r"{\1}", cell)


def _form(frame: pd.DataFrame) -> str:
    """A letter for each column: numbers are right-aligned."""
    text = as_text(frame)
    return "".join("r" if is_numeric(text[name]) else "l" for name in text.columns)


def escape(text: str) -> str:
    """Text as every LaTeX sets it, whatever it holds."""
    return "".join(_SIGNS.get(letter) or _sign(letter) for letter in text)


def _sign(letter: str) -> str:
    """A letter as every LaTeX knows it; its number where LaTeX has none."""
    if letter.isspace():
        return " "
    name, code = unicodedata.name(letter, ""), ord(letter)
    if greek := _GREEK.get(name.removeprefix("GREEK SMALL LETTER ")):
        return f"${greek}$"
    known = 0xC0 <= code <= 0x17E and letter.isalpha() and letter not in _NOT_IN_OT1
    if known or (letter.isascii() and letter.isprintable()):
        return letter
    power = unicodedata.normalize("NFKC", letter)
    return f"$^{power}$" if "SUPERSCRIPT" in name and power.isascii() else f"U+{code:04X}"


def _without_fixed(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Without the columns that never change, and a sentence that says what they hold."""
    text = as_text(frame)
    stay = {str(name) for name in frame.attrs.get("values", ())}
    fixed = [
        name
        for name in text.columns
        if name not in stay and len(text) > 1 and text[name].nunique() == 1
    ]
    said = [f"{name} {text[name].iloc[0]}" for name in fixed if text[name].iloc[0] != DASH]
    kept = frame[[name for name in frame.columns if str(name) not in fixed]]
    return kept, f"{'; '.join(said)}." if said else ""


def _characters(frame: pd.DataFrame) -> int:
    text = as_text(frame)
    widths = [max([len(name), *(len(cell) for cell in text[name])]) for name in text.columns]
    return sum(widths) + 2 * (len(widths) - 1)
