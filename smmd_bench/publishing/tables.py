"""A table as CSV, Markdown and LaTeX, and the numbers in its cells as text.

Cells that are already text are written as they stand; numbers are written with up to six
significant digits, and what is missing as a dash (in CSV: in full, and as nothing).

`frame.attrs["bold"]` may name cells to set in bold, as a list of (row, column): the position of the
row from 0, and the column's name. CSV has none. `frame.attrs["links"]` gives cells of the page,
named alike, their links: {part of the text: fragment}, where " / " joins the parts. In a terminal
`frame.attrs["bold_means"]` stands below a table with bold cells, `frame.attrs["optional"]` names
columns in the order in which they go where it is too narrow, `frame.attrs["whole"]` columns of text
that never break, and `frame.attrs["values"]` those that stay though they never change.

In LaTeX a table is a float in booktabs rules. One that is wider than a column goes over both
columns of the page (`table*`), scaled to the page where it has to be. The document needs
`\\usepackage{booktabs,graphicx,multirow}`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

DASH = "–"
HOLES = ("failed", "skipped", "pending", "not run")
"""What stands in place of a value that is not there, and why; a column of numbers may have it."""
_NUMBER = re.compile(r"^[-+−]?[\d,.]+(e[+-]?\d+)?(\b|$)")
COLUMN = 48
"""About how many characters a column of a two-column paper takes at `\\small`."""
PREAMBLE = "% \\usepackage{booktabs,graphicx,multirow}\n"
SPANNING = ("Model", "Params", "Task", "Data")
"""Columns whose cells stand once for all of their rows."""
_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\n": " ",
    "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "≤": r"$\leq$",
    "≥": r"$\geq$", "≈": r"$\approx$", "√": r"$\surd$", "∈": r"$\in$", "→": r"$\rightarrow$",
    "–": "--", "—": "---", "…": r"\ldots{}", "‘": "`", "’": "'", "“": "``", "”": "''", "\xa0": "~",
}  # fmt: skip
_LETTERS = str.maketrans(_SIGNS)
_RAISED = {"<super": "^", "<sub": "_"}
_NOTES = "\\par\\smallskip\n\\parbox{{\\linewidth}}{{\\footnotesize {}}}\n"
_SIZED = (
    "\\small\n\\setlength{\\tabcolsep}{4pt}\n"
    "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n\\begin{tabular}"
)


def number(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """A number with that many decimals; large ones as `1.2e+39`, none as a dash."""
    if value is None or not math.isfinite(value):
        return DASH
    plus = "+" if sign else ""
    form = f"{plus}.{digits}f" if abs(value) < 1e6 else f"{plus}.2g"
    text = format(value, form)
    # A difference that rounds to nothing has no direction.
    if float(text) == 0:
        text = text.lstrip("+-")

    # The sign becomes a true minus; the hyphen of an exponent stays as programs write it.
    return text.replace("-", "−", 1) if text.startswith("-") else text


def with_interval(
    value: float | None,
    low: float | None,
    high: float | None,
    digits: int = 2,
    *,
    sign: bool = False,
) -> str:
    """`43.4 [42.4, 44.4]`; the value alone where there is no interval."""
    text = number(value, digits, sign=sign)
    bounds = [number(bound, digits, sign=sign) for bound in (low, high)]
    # One seed, or too few examples, have no interval.
    if DASH in bounds:
        return text
    return f"{text} [{', '.join(bounds)}]"


def with_deviation(mean: float, deviation: float | None, digits: int = 2) -> str:
    """`43.4 ± 0.5`; the mean alone where there is no deviation."""
    text = number(mean, digits)
    if deviation is None or not math.isfinite(deviation):
        return text
    return f"{text} ± {number(deviation, digits)}"


def count(value: int) -> str:
    """A number of parameters or tokens: `2.1M`, `494M`, `1.5B`."""
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return str(value)


def p_value(p: float) -> str:
    """`0.034`, and `<0.001` below that."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn every cell into the text that people read; the table keeps its `attrs`."""
    text = {str(name): [*map(_format_cell, frame[name])] for name in frame.columns}
    table = pd.DataFrame(text, index=range(len(frame)), dtype="str")
    table.attrs = frame.attrs
    return table


def is_numeric(column: pd.Series[str]) -> bool:
    """Whether every filled text cell reads as a number, so that the column is right-aligned."""
    filled = []
    for cell in column:
        if cell not in (DASH, "") and not cell.startswith(HOLES):
            filled.append(cell)

    # `<0.001` is a number, too.
    is_read = [cell[0] == "<" or _NUMBER.match(cell) for cell in filled]
    return bool(filled) and all(is_read)


def bold_cells(frame: pd.DataFrame) -> frozenset[tuple[int, str]]:
    """Read the cells that `frame.attrs["bold"]` names: position of the row, name of the column."""
    return frozenset(
        (int(row), str(column)) for row, column in frame.attrs.get("bold", ())
    )


def to_csv(frame: pd.DataFrame) -> str:
    """Write CSV with numbers in full; text keeps its words, with ASCII minus and no dashes."""
    # Numbers keep all their digits, and a program reads text as it is spelled on a keyboard.
    texts = frame.select_dtypes(include=["str", "object"]).columns
    plain = frame.assign(**{name: frame[name].map(_to_plain) for name in texts})
    plain = plain.rename(columns=_replace_returns)
    return str(plain.to_csv(index=False, lineterminator="\n"))


def to_markdown(frame: pd.DataFrame) -> str:
    """Write a GitHub table; columns of numbers are right-aligned."""
    text = as_text(frame).map(_escape_markdown)
    names = [_escape_markdown(name) for name in text.columns]
    rules = []
    for name in text.columns:
        rules.append("---:" if is_numeric(text[name]) else "---")
    lines = [names, rules, *mark_bold(text, "**{}**".format).to_numpy().tolist()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_latex(
    frame: pd.DataFrame, caption: str, label: str, notes: Iterable[str] = ()
) -> str:
    """Write a LaTeX table with its caption, label and notes; bold cells are bold."""
    text = as_text(frame)
    alignment = ""
    for name in text.columns:
        alignment += "r" if is_numeric(text[name]) else "l"

    # The styler sets bold what a frame of marks says, so that no escaped text is parsed again.
    marks = mark_bold(text.map(lambda _: ""), lambda _: "textbf:--rwrap;")
    styler = _span_rows(text.map(_escape)).style
    styler.format_index(_escape, axis="columns").hide(axis="index")
    styler.apply(lambda _: marks, axis=None)
    latex = styler.to_latex(
        column_format=alignment,
        hrules=True,
        position="t",
        position_float="centering",
        caption=_escape(caption),
        label=label,
        # In a float of one column it would be scaled until nobody can read it.
        environment="table*" if measure_width(text) > COLUMN else None,
    )

    below = _NOTES.format(_escape(" ".join(notes))) if notes else ""
    # pandas has no place for notes, nor for a box around its rows that scales them.
    latex = latex.replace("\\begin{tabular}", _SIZED)
    return PREAMBLE + latex.replace("\\end{tabular}\n", "\\end{tabular}}\n" + below)


def _span_rows(cells: pd.DataFrame) -> pd.DataFrame:
    """Write each model and task once, over all of its rows."""
    spanned = cells.copy()
    for name, is_first in find_first_rows(cells).items():
        block = is_first.cumsum()
        heights = block.map(block.value_counts())
        tall = [*map(_set_over_rows, cells[name], heights)]
        column = pd.Series(tall, cells.index)
        spanned[name] = column.where(is_first, "")
    return spanned


def find_first_rows(cells: pd.DataFrame) -> dict[str, pd.Series[bool]]:
    """Find the rows in which a model, task and so on is another one than in the row above."""
    # A cell ends where one to the left of it does: a task of another model stands again.
    is_first = pd.Series(data=False, index=cells.index)
    first_rows = {}
    for name in SPANNING:
        if name in cells:
            is_first = is_first | (cells[name] != cells[name].shift())
            first_rows[name] = is_first
    return first_rows


def _set_over_rows(cell: str, height: int) -> str:
    return cell if height == 1 else rf"\multirow[t]{{{height}}}{{*}}{{{cell}}}"


def _escape(text: object) -> str:
    """Spell text for LaTeX; letters that it may not know, such as Hebrew ones, stay as they are. A
    first `[` or `*` would be an option of the row's end before it."""
    spelled = re.sub(r"[^\x00-\x7f]", _set_letter, str(text).translate(_LETTERS))
    return re.sub(r"^\s*([\[*])", r"{\1}", spelled)


def _set_letter(match: re.Match[str]) -> str:
    """Spell a letter for LaTeX: Greek ones, those above the line such as ᵀ, and those below it."""
    letter = match[0]
    # Unicode says of ᵀ "<super> 0054": the plain letter, and where it stands.
    kind, _, code = unicodedata.decomposition(letter).partition("> ")
    if kind in _RAISED:
        plain = "".join(chr(int(point, 16)) for point in code.split())
        plain = plain.replace("−", "-")
        return f"${_RAISED[kind]}{{{plain}}}$"

    greek = re.fullmatch(
        "GREEK (SMALL|CAPITAL) LETTER ([A-Z]+)", unicodedata.name(letter, "")
    )
    if greek is None:
        return letter
    name = greek[2].replace("LAMDA", "LAMBDA")  # Unicode's own spelling
    command = name.lower() if greek[1] == "SMALL" else name.capitalize()
    return f"$\\{command}$"


def split_constant(text: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Take out the columns that never change, and say in a line what they hold: `Model builtin/tiny
    · Seeds 3`. A table that would lose all of its columns stays as it is.

    Those that `attrs["values"]` names stay, unless they hold only dashes.
    """
    # A value is worth showing though it never changes: it is the result.
    results = {*text.attrs.get("values", ())}
    varying = []
    for name in text.columns:
        has_result = name in results and (text[name] != DASH).any()
        if has_result or text[name].nunique() > 1:
            varying.append(name)
    if not varying:
        return text, ""

    first_row = text.drop(columns=varying).iloc[0]
    constant = first_row[first_row != DASH]
    cells = [f"{name} {cell}" for name, cell in constant.items()]
    return text[varying], " · ".join(cells)


def measure_width(text: pd.DataFrame) -> int:
    """Count the letters of the widest row, with two spaces between columns."""
    widths = [max([len(name), *map(len, text[name])]) for name in text.columns]
    return sum(widths) + 2 * (len(widths) - 1)


def mark_bold(text: pd.DataFrame, mark: Callable[[str], str]) -> pd.DataFrame:
    """Mark the bold cells in the text of a table."""
    marked = text.copy()
    bold = bold_cells(text)
    for name in text.columns:
        cells = []
        for row, cell in enumerate(text[name]):
            is_bold = (row, name) in bold
            cells.append(mark(cell) if is_bold else cell)
        marked[name] = cells
    return marked


def _escape_markdown(cell: str) -> str:
    return re.sub(r"[\r\n]", " ", cell.replace("|", "\\|"))


def _to_plain(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return "" if value == DASH else _replace_returns(value.replace("−", "-"))


def _replace_returns(value: Any) -> Any:
    """Replace carriage returns: pandas writes them bare, and a reader ends the row there."""
    return re.sub(r"\r\n?", "\n", value) if isinstance(value, str) else value


def _format_cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA:
        return DASH
    if isinstance(value, float):
        return DASH if math.isnan(value) else f"{value:.6g}"
    return str(value)
