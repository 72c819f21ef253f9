"""What counts as a change of a module, and which modules it is taken to import."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from smmd_bench.plugin_system.module_source import _read, module_digests

Write = Callable[[str, str], Path]
SOURCE = '''
"""A docstring."""
import math
from collections import abc

RATE: float = 0.5
"""What a rate is."""


class Thing:
    """A class."""

    size = 3

    def area(self, side: float) -> float:
        """A method."""
        # a comment
        return self.size * side ** 2 + math.pi


async def wait(): ...
'''


def digest_of(file):
    return _read(file, file.stat().st_size, file.stat().st_mtime_ns)[0]


NOT_COUNTED = [
    ("# a comment", "# another, longer comment\n"),
    ('"""A docstring."""', ""),
    ('"""What a rate is."""', '"""Something else."""'),
    ('"""A method."""', "'''Two\n        lines.'''"),
    ("0.5", "5e-1"),
    ("self.size * side ** 2 + math.pi", "(\n    (self.size*side**2) + math.pi\n)"),
    ("(): ...", "():\n    '''Nothing.'''\n    pass"),
    ("\n\n\n", "\n"),
    ("\n", "\r\n"),
]
COUNTED = [
    ("0.5", "0.25"),
    *[("= 3", new) for new in ("= 3.0", "= True", "= '3'", "= b'3'")],
    ("** 2", "** -2"),
    ("side ** 2 + math.pi", "(side ** 2 + math.pi)"),
    ("return ", ""),
    (": float = 0.5", " = 0.5"),
    ("async def", "def"),
    ("(self, side: float)", "(self, side: float = 1.0)"),
    ("    def area", "    @staticmethod\n    def area"),
    ("import math", "import cmath as math"),
]


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [(*change, counts) for counts in (False, True) for change in (NOT_COUNTED, COUNTED)[counts]],
)
def test_constants_and_statements_count_and_comments_and_formatting_do_not(
    tmp_path, old, new, counts
):
    assert old in SOURCE
    digests = []
    for name, text in (("a.py", SOURCE), ("b.py", SOURCE.replace(old, new))):
        (tmp_path / name).write_text(text, encoding="utf-8")
        digests.append(digest_of(tmp_path / name))
    assert None not in digests
    assert (digests[0] != digests[1]) == counts


def test_the_digest_is_the_same_with_every_python(tmp_path):
    """`ast.dump` writes another text in Python 3.12 and 3.13. The value holds what it does not."""
    file = tmp_path / "module.py"
    file.write_text(SOURCE, encoding="utf-8")
    assert digest_of(file) == "f107aca75583850c"


def test_what_is_no_python_is_read_as_bytes(tmp_path):
    digests = set()
    for content in (b"def broken(:\n", b"def broken(: \n", b"\x7fELF\x00\x01", b"\x7fELF\x00\x02"):
        file = tmp_path / f"{len(digests)}.so"
        file.write_bytes(content)
        digests.add(digest_of(file))
    assert len(digests) == 4


def test_a_file_that_would_warn_is_read_without_a_warning(tmp_path):
    file = tmp_path / "regex.py"
    file.write_text('PATTERN = "\\d"\nassert (1, "always true")\n')
    assert digest_of(file)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package `mylab` that is on the import path, and never imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mylab" / "parts").mkdir(parents=True)
    for folder in ("mylab", "mylab/parts"):
        (tmp_path / folder / "__init__.py").write_text('"""Nothing."""\n')

    def write(name, text):
        file = tmp_path / "mylab" / name
        file.write_text(text)
        return file

    return write


def reached(file: Path, name: str = "mylab.loss") -> set[str]:
    found = module_digests(name, file, lambda module, _: module.partition(".")[0] == "mylab")
    assert "mylab" not in sys.modules
    return {module.removeprefix("mylab.") for module in found}


@pytest.mark.parametrize(
    "statement",
    [
        "import mylab.parts.kernel",
        "import mylab.parts.kernel as k",
        "from mylab.parts import kernel",
        "from mylab.parts.kernel import WIDTH",
        "from mylab.parts.kernel import *",
        "from .parts import kernel as k",
        "from .parts.kernel import WIDTH",
        "def later():\n    from .parts import kernel",
        "class Late:\n    def bind(self):\n        import mylab.parts.kernel",
        "try:\n    import no_such_module\nexcept ImportError:\n    from .parts import kernel",
    ],
)
def test_every_spelling_of_an_import_is_followed(package, statement):
    package("parts/kernel.py", "from . import width\n")
    package("parts/width.py", "from ..shared import WIDTH\n")
    package("shared.py", "WIDTH = 1\n")
    package("never.py", "WIDTH = 2\n")
    assert reached(package("loss.py", f"{statement}\n")) == {
        "loss", "parts.kernel", "parts.width", "shared",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"shared": "from .loss import SIZE\nfrom . import loss\n",
             "loss": "SIZE = 3\nfrom . import shared\n"},
            {"loss", "shared"},
        ),
        ({"patches": "VALUE = 1\n", "loss": "SIZE = 3\n"}, {"loss"}),
        (
            {"patches": "VALUE = 1\n", "__init__": "from . import patches\n", "loss": "SIZE = 3\n"},
            {"loss", "mylab", "patches"},
        ),
        (
            {"shared": "from . import never\ndef broken(:\n", "loss": "from . import shared\n"},
            {"loss", "shared"},
        ),
        ({"loss": "from ... import shared\n"}, {"loss"}),
    ],
    ids=["a circle", "an unused module", "what the package runs", "a broken module", "outside"],
)  # fmt: skip
def test_what_is_imported_with_a_module_is_read_once(package, files, expected):
    for name, text in files.items():
        file = package(f"{name}.py", text)
    assert reached(file) == expected
