"""What docs/my-run-says.md explains is what the code says."""

import ast
import re

import pytest

from .documents import ROOT

PAGE = (ROOT / "docs/my-run-says.md").read_text(encoding="utf-8")
FIRST_CELLS = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
QUOTES = [quote for cell in FIRST_CELLS for quote in re.findall("`([^`]+)`", cell)]
FOLDERS = ("smmd_bench", "plugins", "tasks", "reports")


def texts_of(file):
    """The texts of a file's code, with `…` for what an f-string fills in."""
    texts = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = [
                part.value if isinstance(part, ast.Constant) else "…"
                for part in node.values
            ]
            texts.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant):
            texts.append(str(node.value))
    return texts


@pytest.fixture(scope="module")
def source():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    return "\n".join(text for file in files for text in texts_of(file))


def test_the_page_has_sentences():
    assert len(QUOTES) > 30


@pytest.mark.parametrize("quote", QUOTES)
def test_a_quoted_sentence_stands_in_the_code(quote, source):
    missing = [part for part in quote.split("…") if part.strip() not in source]
    assert not missing
