"""How dense code is to read: tokens, and what a reader meets in a line of a function."""

import ast
import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
SAY_NOTHING = frozenset(
    re.findall(
        r"\w+",
        """found known own said mine theirs this that these those here there now left given held
        taken made done whole none both same shown later asked coming like one others what such
        part usual near fewer most rest before after""",
    )
)
"""Names of locals for their grammar, not for what they hold."""
LONG = 8  # lines of code, from which on a function has a density
BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.IfExp,
    ast.comprehension,
    ast.ExceptHandler,
    ast.Assert,
)


@dataclass
class Density:
    """What is counted over files. nodes: of each long function, AST nodes a line of code."""

    tokens: int = 0
    code_lines: int = 0
    comments: int = 0
    lines_inside: int = 0
    blank_inside: int = 0
    locals: int = 0
    say_nothing: Counter[str] = field(default_factory=Counter)
    nodes: dict[str, float] = field(default_factory=dict)
    branches: dict[str, int] = field(default_factory=dict)


def measure_density(files: list[Path]) -> Density:
    """The density of Python files together."""
    density = Density()
    for file in files:
        source = file.read_text(encoding="utf-8")
        tree = ast.parse(source)
        docstrings = _docstring_lines(tree)
        code_lines = _count_tokens(density, source, docstrings)
        lines = enumerate(source.split("\n"), 1)
        blank_lines = {number for number, line in lines if not line.strip()}

        place = f"{file.parent.name}/{file.name}"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{place}:{node.lineno} {node.name}"
                _count_function(
                    density, name, node, code_lines, blank_lines, docstrings
                )
    return density


def count_tokens(source: str) -> int:
    """The tokens of code: comments, docstrings, blank lines and layout are free."""
    density = Density()
    _count_tokens(density, source, _docstring_lines(ast.parse(source)))
    return density.tokens


def _docstring_lines(tree: ast.AST) -> set[int]:
    lines = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            lines |= {*range(node.lineno, (node.end_lineno or 0) + 1)}
    return lines


def _count_tokens(density: Density, source: str, docstrings: set[int]) -> set[int]:
    """Count tokens and comments; the lines with code."""
    code_lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        density.comments += token.type == tokenize.COMMENT
        if token.type not in LAYOUT and token.start[0] not in docstrings:
            density.tokens += 1
            code_lines |= {*range(token.start[0], token.end[0] + 1)}
    density.code_lines += len(code_lines)
    return code_lines


def _count_function(
    density: Density,
    name: str,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    code_lines: set[int],
    blank_lines: set[int],
    docstrings: set[int],
) -> None:
    lines = {*range(function.lineno, (function.end_lineno or 0) + 1)}
    density.lines_inside += len(lines)
    density.blank_inside += len(lines & blank_lines)

    # Its lines of code, without its signature and its docstring.
    body = [
        statement for statement in function.body if statement.lineno not in docstrings
    ]
    first = body[0].lineno if body else 0
    body_lines = [line for line in lines & code_lines if line >= first]
    if len(body_lines) >= LONG:
        nodes = 0
        for statement in body:
            nodes += sum(1 for _ in ast.walk(statement))
        density.nodes[name] = nodes / len(body_lines)

    density.branches[name] = 1
    for node in ast.walk(function):
        density.branches[name] += isinstance(node, BRANCHES)
        if isinstance(node, ast.BoolOp):
            density.branches[name] += len(node.values) - 1
        assigned = _assigned_names(node)
        density.locals += len(assigned)
        density.say_nothing.update(SAY_NOTHING.intersection(assigned))


def _assigned_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        targets = [node.target]
    else:
        return []
    names = [inner for target in targets for inner in ast.walk(target)]
    return [
        n.id for n in names if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
