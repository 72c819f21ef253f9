"""Whether lm-eval can know a suite, from the text of its task files.

lm-eval's own index parses all of them, and takes ten seconds; reading them takes half of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from ..errors import UserError, did_you_mean
from .mmlu_data import is_mmlu, lm_eval_tasks

SAMSUM = "samsum"
_NAMED = re.compile(
    rb"""^["']?(?:task|group|tag)["']?[ \t]*:[ \t]*
    (?:["']?([\w.+-]+)["']?,?[ \t]*(?:\#.*)?$  |  ((?:\n[ \t]*-[ \t]+.*)+))""",
    re.MULTILINE | re.VERBOSE,
)
_ITEM = re.compile(rb"""-[ \t]+["']?([\w.+-]+)["']?[ \t]*$""", re.MULTILINE)


def require_suites(names: Iterable[str]) -> None:
    """Raise UserError for the first name that is no suite of ours, and that no file of lm-eval has.

    What it lets pass may still be unknown: a word of a file need not be a name.
    """
    others = [name for name in names if name != SAMSUM and not is_mmlu(name)]
    if not others:
        return
    installed_version()
    files = sorted(lm_eval_tasks().rglob("*.yaml"))
    text = b"\n".join(file.read_bytes() for file in files)
    for name in others:
        word = re.escape(name.encode())
        if not re.search(rb"(?<![\w.+-])%b(?![\w.+-])" % word, text):
            raise unknown_suite(name, _names_in(text))


def unknown_suite(name: str, known: Iterable[str]) -> UserError:
    """The error for a name, with the nearest of those that lm-eval knows."""
    near = did_you_mean(name, {*known, "mmlu", SAMSUM})
    every = "known are mmlu, samsum and what `lm-eval ls tasks` lists."
    return UserError(f"Unknown suite '{name}': {near if near.startswith('did') else every}")


def installed_version(package: str = "lm-eval") -> str:
    """The installed version of a package of the extra; raises UserError if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise UserError(f"{package} is not installed: pip install 'smmd-bench[lm-eval]'.") from None


def _names_in(text: bytes) -> set[str]:
    """Names of tasks, groups and tags: nearly all of them, which is enough to suggest some."""
    found = set()
    for match in _NAMED.finditer(text):
        found |= {match[1]} if match[1] else {*_ITEM.findall(match[2])}
    return {name.decode() for name in found}
