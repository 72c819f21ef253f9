"""Write docs/api.md from the code itself; `--check` fails if it is out of date."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ForwardRef

from _generated_file import write_or_check

import smmd_bench
from smmd_bench import contracts
from smmd_bench.conformance import suite
from smmd_bench.objective import objective
from smmd_bench.plugin_system import registry
from smmd_bench.results import frames as run

SECTIONS: dict[str, tuple[Any, ...]] = {
    "import smmd_bench as sb": tuple(
        getattr(smmd_bench, name) for name in smmd_bench.__all__ if name != "__version__"
    ),
    "What these functions give": (
        contracts.NumericVocabulary,
        objective.ObjectiveOutput,
        run.RunFrames,
    ),
    "Tasks": (
        contracts.Task,
        contracts.Example,
        contracts.Answer,
        contracts.Metric,
        contracts.Modality,
        contracts.parse_number,
        contracts.first_number,
        contracts.last_number,
    ),
    "Losses": (
        contracts.Loss,
        contracts.NumericTargets,
        contracts.NumericPlaces,
        contracts.NumericLoss,
    ),
    "Plugins by name": (registry.load, registry.load_plugin_file, registry.names),
    "Parameters of a plugin": (contracts.parameter,),
    "Reports": (contracts.Report, contracts.Artefact),
    "Engines": (
        contracts.Engine,
        contracts.EngineSession,
        contracts.EngineSettings,
        contracts.Completion,
        contracts.Checkpoint,
        contracts.Canary,
    ),
    "Executors": (
        contracts.Executor,
        contracts.Job,
        contracts.JobQueue,
        contracts.JobResult,
        contracts.Resources,
    ),
    "Tests of your own": (suite.violations,),
}
_INTRO = """# API reference

Made by `make docs` from the code itself: signatures and docstrings of the stable API and of the
contracts. How it fits together is in [Python API](python-api.md) and [Extending](extending.md)."""
_STABLE = """The names are in `smmd_bench` itself and resolve lazily: `import smmd_bench` brings in
neither torch nor pandas. `sb.__version__` is the version, a string."""


def render() -> str:
    parts = [_INTRO]
    for title, things in SECTIONS.items():
        parts.append(f"## {title}")
        if title.startswith("import"):
            parts.append(_STABLE)
        for thing in things:
            parts += _entry(thing, stable=title.startswith("import"))
    return "\n\n".join(parts) + "\n"


def _entry(thing: Any, stable: bool) -> Iterator[str]:
    place = "sb" if stable else thing.__module__
    yield f"### {thing.__name__}"
    if not inspect.isclass(thing):
        yield _code(f"{place}.{thing.__name__}{_signature(thing)}")
        yield _prose(thing)
        return
    yield _code("\n".join([f"class {place}.{thing.__name__}", *_attributes(thing)]))
    yield _prose(thing)
    for name, member in vars(thing).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property | cached_property):
            yield f"**`{name}`** · {_prose(member)}"
        elif inspect.isfunction(member):
            yield _code(f"{name}{_signature(member)}")
            yield _prose(member)


def _attributes(thing: type) -> Iterator[str]:
    """Fields with their defaults, class attributes, and members of an enumeration."""
    fields = getattr(thing, "__dataclass_fields__", {})
    for name, annotation in thing.__annotations__.items():
        if name.startswith("_"):
            continue
        default = getattr(fields.get(name), "default", vars(thing).get(name, dataclasses.MISSING))
        factory = getattr(fields.get(name), "default_factory", dataclasses.MISSING)
        line = f"    {name}: {_plain(annotation)}"
        if factory is not dataclasses.MISSING:
            line += f" = {factory.__name__}()"
        elif default is not dataclasses.MISSING and not inspect.ismemberdescriptor(default):
            line += f" = {default!r}"
        yield line
    for name, member in getattr(thing, "__members__", {}).items():
        yield f"    {name} = {member.value!r}"


def _signature(function: Any) -> str:
    """As it is written, a parameter a line where one line would be long."""
    signature = inspect.signature(function)
    given = [
        p.replace(annotation=_Plain(p.annotation))
        for p in signature.parameters.values()
        if p.name != "self"
    ]
    result = signature.replace(
        parameters=given, return_annotation=_Plain(signature.return_annotation)
    )
    line = str(result)
    if len(function.__name__) + len(line) <= 88:
        return line
    lines = [str(parameter) for parameter in given]
    for at, parameter in enumerate(given):
        if parameter.kind is parameter.KEYWORD_ONLY:
            lines.insert(at, "*")
            break
    written = "".join(f"    {line},\n" for line in lines)
    return f"(\n{written}) -> {_plain(signature.return_annotation)}"


class _Plain:
    """An annotation that prints as it is written in the source."""

    def __init__(self, annotation: Any) -> None:
        self.text = _plain(annotation)

    def __repr__(self) -> str:
        return self.text


def _plain(annotation: Any) -> str:
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _prose(thing: Any) -> str:
    text = inspect.getdoc(thing)
    assert text, f"{thing} has no docstring"
    return re.sub(r"(?<![`<\w])<(?=[A-Za-z/])", "&lt;", text)


if __name__ == "__main__":
    write_or_check("api.md", render())
