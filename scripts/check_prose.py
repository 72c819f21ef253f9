"""Fail on turns of phrase that a native reader stumbles over: `check_prose.py [--code]`.

It reads the pages; with `--code` also docstrings, errors, captions and help texts.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RULES = {
    r"(?<!there )\b(is|are|was|were|be) no (?!longer|more|less|need|way|different|better|worse)": (
        "is not a"
    ),
    r"\bwished for\b": "expected",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bno word of\b|\bwithout a word\b|\bin silence\b": "silently",
    r"\b(is|are|was|were|to be|can be) had\b": "is available",
    r"[,;] for (it|they|there|nobody|its|their|vLLM|addresses|that is)\b": "because",
    r"\bbut for\b": "except",
    r"\bany more\b": "no longer",
    r"\banew\b": "again",
    r"\b(is|are|was|were) said\b(?! to)": "the command prints, a note names",
    r"\bgo(es|ing)? on with\b": "continue",
    r"\bof the user's\b": "a user's",
    r"\bwants? (an?|the|it|one|all|other|another|more)\b": "needs",
    r"\b(held|holds?) [\w ]{0,30}\bagainst\b": "compare with",
    r"\bhas not (a|one|the|any|such)\b": "does not have",
    r"(?<=[.!?] )What [^.?!:|]{3,90} (is|are) [^.?!:|]+\.": "begin with the subject",
    r"\b([A-Za-z]{2,}) \1\b(?!-)": "a word twice",
}
_NO_PROSE = re.compile(r"^ *(```|~~~).*?^ *\1|<!--.*?-->|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
_GENERATED = ("docs/api.md", "docs/cli.md")


def prose(file: Path) -> list[str]:
    """The strings of a Python file, or the text of a page, with a dash for code."""
    texts = [_NO_PROSE.sub("–", file.read_text(encoding="utf-8"))]
    if file.suffix == ".py":
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        strings = [n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is str]
        texts = [re.sub(r"(?m)^    .*$", "", inspect.cleandoc(text)) for text in strings]
    return [re.sub(r"`[^`]{,120}`|\$[^$]{,120}\$", "–", " ".join(text.split())) for text in texts]


def main() -> None:
    names = ["*.md", "*.py"] if "--code" in sys.argv else ["*.md"]
    command = ["git", "ls-files", *names, ":!tests", ":!scripts/check_prose.py"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found = [
        f"{name}: …{text[max(0, match.start() - 40) : match.end() + 20]}… ({better})"
        for name in listed.stdout.split()
        for text in (() if name in _GENERATED else prose(ROOT / name))
        for rule, better in RULES.items()
        for match in re.finditer(rule, text, re.IGNORECASE)
    ]
    sys.exit("\n".join(found) if found else 0)


if __name__ == "__main__":
    main()
