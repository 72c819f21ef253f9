"""Tables as LaTeX for two columns, compiled where there is a TeX."""

from __future__ import annotations

import re
import shutil
import subprocess

import pandas as pd
import pytest

import smmd_bench as sb
from smmd_bench.plugin_system.registry import entries
from smmd_bench.publishing.latex import PREAMBLE, ROWS, to_latex, to_page
from smmd_bench.publishing.make_report import build_report
from smmd_bench.results.frames import RunFrames

TEX = next(filter(None, map(shutil.which, ("pdflatex", "tectonic"))), None)
needs_tex = pytest.mark.skipif(TEX is None, reason="neither pdflatex nor tectonic is here")
LETTERS = [chr(code) for code in range(0x3000) if not 0xD800 <= code < 0xE000]
STARTS = ("[2cm]", "* x", "[", " [1, 2]", "\n\n", "\\input{x}", "%", "")
TABLES = ("math_table", "arithmetic_table", "scale_errors")


def table(columns, rows=3):
    return pd.DataFrame(
        {f"Column {at}": [f"{row}.{at} [0.0, 9.9]" for row in range(rows)] for at in range(columns)}
    )


def rows_of(text):
    return [line for line in text.splitlines() if line.endswith(r"\\") and "Column" not in line]


def test_it_is_booktabs_with_every_special_letter_escaped_and_bold_cells():
    frame = pd.DataFrame({"Loss": ["50%", "a|b_c"], "Acc": ["43.4 [42.4, 44.4]", "–"], "n": [9, 2]})
    frame.attrs["bold"] = [(0, "Loss")]
    text = to_latex(frame, "50 % of x_1 & more: ±", "tab:x")
    assert text.isascii()
    assert r"\caption{50 \% of x\_1 \& more: $\pm$}" in text
    rules = (r"\begin{tabular}{lrr}", r"\toprule", r"\midrule", r"\bottomrule")
    rows = (r"\textbf{50\%} & 43.4 [42.4, 44.4] & 9 \\", r"a\textbar{}b\_c & -- & 2 \\")
    assert [part for part in (*rules, *rows) if part not in text] == []


def test_a_table_goes_over_both_columns_only_where_it_is_wide():
    assert r"\begin{table}" in to_page(table(2), "T", "C.", "tab:x")
    assert r"\begin{table*}" in to_page(table(5), "T", "C.", "tab:x")


def test_what_never_changes_goes_to_the_caption_of_a_table_wider_than_the_page():
    frame = table(7).assign(Model="some/model", Paper="–", Metric="Acc")
    frame.attrs.update(values=["Metric"], bold=[(1, "Column 0")])
    text = to_page(frame, "T", "C.", "tab:x")
    assert re.findall(r"\\textbf{([^}]*)}", text) == ["1.0 [0.0, 9.9]"]
    assert r"\caption{T. Model some/model. C.}" in text
    assert "& Metric" in text
    assert "Paper" not in text
    assert "& Model" in to_page(table(2).assign(Model="m"), "T", "C.", "tab:x")


def test_a_long_table_goes_on_in_further_floats():
    text = to_page(table(2, rows=2 * ROWS + 1), "A title", "C.", "tab:x")
    assert [line.split()[0] for line in rows_of(text)] == [f"{at}.0" for at in range(2 * ROWS + 1)]
    assert text.count(r"\begin{table}") == text.count(r"\bottomrule") == 3
    assert text.count("A title, continued.") == 2
    assert text.count(r"\label") == 1


def test_a_table_without_rows_is_still_a_table():
    assert r"\bottomrule" in to_page(table(2, rows=0), "T", "C.", "tab:x")


def test_the_output_is_letters_that_every_latex_has():
    text = to_page(table(2), "ŷ → β", "“a’ 10⁻³ é 漢 ≈ λ", "tab:x")
    assert r"ŷ $\rightarrow$ $\beta$" in text
    assert r"``a' 10$^-$$^3$ é U+6F22 $\approx$ $\lambda$" in text


def test_a_cell_that_begins_a_row_is_no_option_of_the_command_before_it():
    text = to_latex(pd.DataFrame({"[n]": ["[0.0, 9.9]", "* x"], "m": ["[a]", "*"]}), "C.", "tab:x")
    assert r"{[}n] & m \\" in text
    assert r"{[}0.0, 9.9] & [a] \\" in text
    assert r"{*} x & * \\" in text


def test_what_latex_does_not_know_becomes_a_space_or_its_number():
    frame = pd.DataFrame({"n": ["a\n\nb\x0cc", "\x00\x1b\x7f", "þĄŋ", "ϛ ς"]})
    text = to_latex(frame, "C.", "tab:x")
    for row in ("a  b c", "U+0000U+001BU+007F", "U+00FEU+0104U+014B", "U+03DB U+03C2"):
        assert f"{row} \\\\\n" in text


def compiled(folder, texts):
    """The log of a two-column document of these tables."""
    body = "\\clearpage\n".join(texts)
    uses = PREAMBLE.removeprefix("% ")
    document = rf"\documentclass[twocolumn]{{article}}{uses}\begin{{document}}Text.{body}"
    (folder / "main.tex").write_text(document + "\\end{document}\n", encoding="utf-8")
    assert TEX is not None
    options = ["-interaction=nonstopmode", "-halt-on-error"] if "pdflatex" in TEX else ["-p"]
    done = subprocess.run([TEX, *options, "main.tex"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout + done.stderr


@needs_tex
def test_every_letter_of_a_name_compiles(tmp_path):
    letters = [chr(code) for code in range(0x3000)]
    letters += [chr(code) for code in range(0x1D400, 0x1D800)] + ["\ufeff", "\uffff", "漢", "😀"]
    words = ["".join(letters[start : start + 16]) for start in range(0, len(letters), 16)]
    first = [f"{letter}1pt]" for letter in letters[:0x180]]  # a row's end looks for an argument
    frame = pd.DataFrame({"Loss": first + words, "x": "a"})
    compiled(tmp_path, [to_page(frame, "\n\n[", " \t\n\n[*", "tab:x")])


@needs_tex
def test_tables_of_a_run_compile_and_fit_a_page_of_two_columns(run_folder, tmp_path):
    run: RunFrames = sb.read_run(run_folder)
    reports = [entry.plugin() for entry in entries("reports") if entry.name in TABLES]
    texts = [
        to_page(section.artefact.table, section.title, section.artefact.caption, section.name)
        for section in (build_report(run, report) for report in reports)
        if section.artefact is not None and section.artefact.table is not None
    ]
    assert texts
    wide = table(12, rows=100)
    wide.attrs["bold"] = [(3, "Column 4")]
    texts.append(
        to_page(wide, "Wide & long_ñ ŷ", "10⁻³ → 漢, 5 %, #1 {x} ~ ^ \\ β. " * 20, "tab:w")
    )
    log = compiled(tmp_path, texts)
    assert not re.findall(r"Overfull.*|.*too large.*", log)


@needs_tex
def test_whatever_a_name_holds_the_table_compiles(tmp_path):
    long = ["".join(LETTERS[at : at + 64]) for at in range(0, len(LETTERS), 64)]
    frames = [pd.DataFrame({"a": STARTS, "b": STARTS}), pd.DataFrame({"n": long})]
    frames += [pd.DataFrame({name: STARTS[:2], "b": STARTS[:2]}) for name in (*STARTS, *long[:6])]
    texts = [to_page(frame, "T", STARTS[at % 8], "tab:x") for at, frame in enumerate(frames)]
    compiled(tmp_path, texts)
