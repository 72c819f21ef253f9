"""Do the tests notice a change of the code? Mutation testing of one folder by mutmut.

    python scripts/try_mutants.py scoring tests/scoring [more tests] [--sample 500 --seed 0]
    python scripts/try_mutants.py scoring --show

mutmut copies the code, changes one place at a time, and runs the tests that reach the function of
that place. Here it also negates conditions, deletes statements, returns None, and reaches into
properties and context managers. Of strings it changes only those without a space, as the others
are prose. Only lines that the tests run in their own process are changed. Tests that start another
process in another folder cannot be given: name them in `--without`. Everything is in
runs/mutants/FOLDER: remove that to begin again. `--show` prints the mutants there that survived,
as diffs.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COPIED = (
    "tests", "tasks", "plugins", "reports", "docs", "experiments", "examples", "scripts",
    "benchmarks", "README.md", "CHANGELOG.md", "requirements-cpu.lock",
)  # fmt: skip
WRAPPERS = {"property", "cached_property", "contextmanager", "remembered", "cache", "lru_cache"}
SETTINGS = """[mutmut]
source_paths=smmd_bench/
only_mutate=smmd_bench/{folder}/*
mutate_only_covered_lines=true
timeout_constant=10
track_dependencies=false
use_git_change_detection=false
also_copy=
    {copied}
pytest_add_cli_args_test_selection=
    {tests}
pytest_add_cli_args=
    --hypothesis-seed=0
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="a folder of smmd_bench")
    parser.add_argument("tests", nargs="*", help="the tests that should notice a change")
    parser.add_argument("--without", nargs="*", default=(), help="names of tests among them")
    parser.add_argument("--sample", type=int, help="try so many mutants; without it, all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if importlib.util.find_spec("mutmut") is None:
        sys.exit("This needs mutmut, which is not installed: install it with pip install mutmut.")
    if asked.here:
        show() if asked.show else run(asked)
        return
    work = ROOT / "runs" / "mutants" / asked.folder
    (work / "mutants").mkdir(parents=True, exist_ok=True)  # or Python would not look there later
    for name in ("smmd_bench", "pyproject.toml", *COPIED):
        if not (work / name).is_symlink():
            (work / name).symlink_to(ROOT / name)
    if asked.tests:
        tests = [*asked.tests, *(f"--deselect={name}" for name in asked.without)]
        lines = {"copied": "\n    ".join(COPIED), "tests": "\n    ".join(tests)}
        (work / "setup.cfg").write_text(SETTINGS.format(folder=asked.folder, **lines))
    path = os.pathsep.join([str(work / "mutants"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-P", __file__, *sys.argv[1:], "--here"]
    sys.exit(subprocess.run(command, cwd=work, env={**os.environ, "PYTHONPATH": path}).returncode)


def run(asked: argparse.Namespace) -> None:
    """Try the mutants in the folder where this process is, and print what became of them."""
    from _pytest import unraisableexception
    from mutmut import __main__ as mutmut

    extend()
    unraisableexception.gc_collect_harder = lambda _: None  # five times over all that is loaded
    if asked.sample is not None:
        every = mutmut.collect_source_file_mutation_data

        def some(*, mutant_names: Any) -> Any:
            mutants, by_path = every(mutant_names=mutant_names)
            print(f"{len(mutants)} mutants")
            chosen = random.Random(asked.seed).sample(
                sorted(mutants, key=lambda m: m[1]), len(mutants)
            )
            return chosen[: asked.sample], by_path

        mutmut.collect_source_file_mutation_data = some
    mutmut._run((), max_children=1)
    print(dict(Counter(status for _, _, status in results())))


def show() -> None:
    """Print the mutants that no test noticed, as diffs."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    for path, name, status in results():
        if status not in ("killed", "not checked"):
            print(f"# {name}: {status}")
            print(get_diff_for_mutant(name, path=path))


def results() -> Iterator[tuple[Path, str, str]]:
    from mutmut.__main__ import walk_mutatable_files
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.stats import status_by_exit_code

    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            yield path, name, status_by_exit_code[code]


def extend() -> None:
    """Give mutmut the operators of this file, and have it change decorated functions."""
    import libcst as cst
    from mutmut.mutation import file_mutation, mutators

    def change_string(node: Any) -> Iterator[Any]:
        if isinstance(node, cst.SimpleString) and " " not in node.value:
            yield from list(mutators.operator_string(node))[:1]

    def negate(node: Any) -> Iterator[Any]:
        test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))

    def delete(node: Any) -> Iterator[Any]:
        if not isinstance(node.value, (cst.BaseString, cst.Yield)):
            yield cst.Pass()

    def return_none(node: Any) -> Iterator[Any]:
        if node.value is not None and not (
            isinstance(node.value, cst.Name) and node.value.value == "None"
        ):
            yield node.with_changes(value=cst.Name("None"))

    mine: list[tuple[type, Callable[[Any], Iterator[Any]]]] = [
        (cst.BaseString, change_string), (cst.If, negate), (cst.Expr, delete),
        (cst.Return, return_none), (cst.Raise, lambda _: iter([cst.Pass()])),
    ]  # fmt: skip
    theirs = [pair for pair in mutators.mutation_operators if pair[0] is not cst.BaseString]
    mutators.mutation_operators[:] = theirs + mine
    skip, arrange = (
        file_mutation.MutationVisitor._skip_node_and_children,
        file_mutation.function_trampoline_arrangement,
    )

    def skip_less(self: Any, node: Any) -> bool:
        if isinstance(node, cst.FunctionDef) and node.decorators and _names(node) <= WRAPPERS:
            return False
        return bool(skip(self, node))

    def arrange_decorated(function: Any, mutants: Any, class_name: Any) -> Any:
        before, nodes, after, names = arrange(function, mutants, class_name)
        if _names(function) & WRAPPERS:
            nodes = [nodes[0], *(node.with_changes(decorators=[]) for node in nodes[1:])]
        return before, nodes, after, names

    file_mutation.MutationVisitor._skip_node_and_children = skip_less
    file_mutation.function_trampoline_arrangement = arrange_decorated


def _names(function: Any) -> set[str]:
    called = (getattr(d.decorator, "func", d.decorator) for d in function.decorators)
    return {getattr(getattr(d, "attr", d), "value", "") for d in called}


if __name__ == "__main__":
    main()
