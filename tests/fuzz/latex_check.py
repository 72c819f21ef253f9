"""Whether LaTeX could read a table, by its signs: no compiler is needed, and none is replaced."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\([A-Za-z]+\*?|.)|(.)", re.DOTALL)
_WORDS = {
    "text": (
        r"textbackslash textasciitilde textasciicircum textless textgreater textbar textbf ldots"
        r" & % $ # _ { } begin end centering caption label toprule midrule bottomrule \ small"
        " setlength tabcolsep resizebox ifdim width linewidth else fi"
    ),
    "math": (
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau"
        " upsilon phi chi psi omega pm times cdot Delta leq geq approx neq infty surd in sum"
        " rightarrow leftarrow"
    ),
}
_COMMANDS = {mode: frozenset(words.split()) for mode, words in _WORDS.items()}
_LETTERS = re.compile(r"[\n -~À-ž]")
_UNKNOWN = frozenset("ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲų")


def check_latex(text: str, rows: int, columns: int | None) -> None:
    """Fail where the text of a table is not one that LaTeX reads.

    Braces and dollars are in pairs, every command is one of every LaTeX, no letter is one that it
    does not know, and nothing that begins a row reads as an option of the command before it.
    `columns`: how many, where no column may be left out.
    """
    depth, math, ends, cells = 0, False, 0, 0
    body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("% \\"))
    last = ""
    for match in _TOKEN.finditer(body):
        command, letter = match[1], match[2]
        if command is not None:
            assert command in _COMMANDS["math" if math else "text"], f"\\{command}"
            ends += command == "\\"
        else:
            fine = _LETTERS.fullmatch(letter) and letter not in _UNKNOWN
            assert fine, f"U+{ord(letter):04X}"
            depth += (letter == "{") - (letter == "}")
            assert depth >= 0
            math ^= letter == "$"
            assert math or letter not in "^_#", letter
            assert letter != "~" or not math
            cells += letter == "&"
        last = match[0]
    assert (depth, math, last) == (0, False, "\n")
    assert not re.search(r"\n[ \t]*\n", body), "a paragraph ends in an argument"
    assert not re.search(r"(?:\\\\|rule)\s*[\[*]", body), "a cell reads as an option"
    assert ends >= rows + 1
    if columns is not None:
        assert cells == ends * (columns - 1)
