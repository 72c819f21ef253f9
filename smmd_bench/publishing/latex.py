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

from . import tables

if TYPE_CHECKING:
    import pandas as pd

COLUMN, PAGE = 48, 100
"""About how many characters, with two between columns, a column and a page of a two-column paper
take at `\\small`; what is wider after all is scaled."""
ROWS, FEWEST = 44, 8
"""Rows of a float, less one for each line of its caption, and of how few it is never less."""
PREAMBLE = "% \\usepackage{booktabs,graphicx}\n"
_SIGNS = {
    "→": r"$\rightarrow$", "←": r"$\leftarrow$", "≈": r"$\approx$", "∞": r"$\infty$",
    "≠": r"$\neq$", "√": r"$\surd$", "∈": r"$\in$", "·": r"$\cdot$", "∑": r"$\sum$",
    "‘": "`", "’": "'", "“": "``", "”": "''", "\u2009": " ", "\u202f": "~", "\xa0": "~",
    "✓": r"$\surd$", "✗": r"$\times$", "⁻": "$^-$",
}  # fmt: skip
_GREEK = {"LAMDA": r"\lambda", "OMICRON": "o"}
_SIZED = (
    "\\small\n\\setlength{\\tabcolsep}{4pt}\n"
    "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
)


def to_page(frame: pd.DataFrame, title: str, caption: str, label: str) -> str:
    """The floats of a table; they need booktabs and graphicx."""
    if _characters(frame) > PAGE:
        frame, fixed = _without_fixed(frame)
        caption = f"{fixed} {caption}" if fixed else caption
    text = tables.to_latex(frame, f"{title}. {caption}", label)
    head, rows, foot = _parts(text)
    wide = _characters(frame) > COLUMN
    lines = 1.1 * len(f"{title}. {caption}") / (PAGE if wide else COLUMN)
    first = max(FEWEST, ROWS - math.ceil(lines))
    floats = [_sized(head + "".join(rows[:first]) + foot, wide=wide)]
    top = _parts(tables.to_latex(frame, f"{title}, continued.", ""))[0]
    for start in range(first, len(rows), ROWS):
        floats.append(_sized(top + "".join(rows[start : start + ROWS]) + foot, wide=wide))
    return PREAMBLE + re.sub(r"[^\x00-\x7f]", _sign, "\n".join(floats))


def _sign(found: re.Match[str]) -> str:
    """A sign that is not ASCII, as every LaTeX knows it; its number where LaTeX has none."""
    letter = found[0]
    if letter in _SIGNS:
        return _SIGNS[letter]
    name, code = unicodedata.name(letter, ""), ord(letter)
    if greek := re.fullmatch(r"GREEK SMALL LETTER ([A-Z]+)", name):
        return f"${_GREEK.get(greek[1], chr(92) + greek[1].lower())}$"
    if 0xC0 <= code <= 0x17E and letter.isalpha():
        return letter
    power = unicodedata.normalize("NFKC", letter)
    return f"$^{power}$" if "SUPERSCRIPT" in name and power.isascii() else f"U+{code:04X}"


def _sized(text: str, *, wide: bool) -> str:
    text = text.replace("\\begin{tabular}", _SIZED + "\\begin{tabular}")
    text = text.replace("\\end{tabular}\n", "\\end{tabular}}\n")
    return text.replace("{table}", "{table*}") if wide else text


def _parts(text: str) -> tuple[str, list[str], str]:
    """What stands before the rows of a table, the rows, and what stands after them."""
    before, _, after = text.partition("\\midrule\n")
    rows, _, rest = after.partition("\\bottomrule\n")
    return f"{before}\\midrule\n", rows.splitlines(keepends=True), f"\\bottomrule\n{rest}"


def _without_fixed(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Without the columns that never change, and a sentence that says what they hold."""
    text = tables.as_text(frame)
    stay = {str(name) for name in frame.attrs.get("values", ())}
    fixed = [
        name
        for name in text.columns
        if name not in stay and len(text) > 1 and text[name].nunique() == 1
    ]
    said = [f"{name} {text[name].iloc[0]}" for name in fixed if text[name].iloc[0] != tables.DASH]
    kept = frame[[name for name in frame.columns if str(name) not in fixed]]
    return kept, f"{'; '.join(said)}." if said else ""


def _characters(frame: pd.DataFrame) -> int:
    text = tables.as_text(frame)
    widths = [max([len(name), *(len(cell) for cell in text[name])]) for name in text.columns]
    return sum(widths) + 2 * (len(widths) - 1)
