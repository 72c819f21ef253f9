"""The parameters of a plugin class, and the `name[param=value,...]` spelling. A text with a comma
or a bracket stands in double quotes.

A tuned loss is spelled `smmd[tuned]` or `smmd[sigma=1,tuned]`, which no spec is.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from ..errors import UserError, did_you_mean

_SPEC = re.compile(r"^\s*([A-Za-z][\w-]*)\s*(?:\[(.*)\])?\s*$", re.DOTALL)
_PART = re.compile(r'(?:"[^"]*"|[^,])+')
_ITEM = re.compile(r'(?:\[(?:"[^"]*"|[^"\]])*\]|[^,])+')
"""What commas separate within the brackets of a spec, and in a list of specs."""
_PLUS = re.compile(r"(?<!\d[eE])(?<!\.[eE])\+")
"""The plus between numbers, not that of an exponent as in `1e+20`."""
TUNED = "tuned"
# A plan of thousands of cells spells as many plugins.
_type_hints = cache(typing.get_type_hints)


class Kind(NamedTuple):
    """A type that parameters may have: its name for people, and how a text of it is read."""

    name: str
    read: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A plugin parameter as people see it; `check` says what is wrong with a value, or None."""

    name: str
    field: str
    kind: Kind
    default: Any
    help: str
    check: Callable[[Any], str | None] | None
    added_later: bool


def why_unusable(plugin: Any) -> str | None:
    """Why a plugin cannot be made from a spelling, and the remedy; None: it can."""
    if not (isinstance(plugin, type) and dataclasses.is_dataclass(plugin)):
        return "it is not a dataclass (put @dataclass(frozen=True) on the class)"
    try:
        hints = typing.get_type_hints(plugin)
    except Exception as error:
        return f"its annotations cannot be read ({error})"

    # A spelling gives some parameters as texts: the others have defaults, and each a kind.
    for item in dataclasses.fields(plugin):
        if item.init and (
            item.default is MISSING or _kind_of(hints[item.name]) is None
        ):
            return (
                f"its parameter {item.name} needs a default and one of the types int, float, bool, "
                "str, Literal of texts, tuple[float, ...] or tuple[int, int]"
            )
    return None


def parameters_of(plugin: type) -> dict[str, Parameter]:
    """The parameters of a usable plugin class, by public name."""
    hints = _type_hints(plugin)
    parameters = {}
    for item in dataclasses.fields(plugin):
        kind = _kind_of(hints[item.name])
        # What a class computes for itself is no parameter.
        if not item.init or kind is None:
            continue

        metadata = item.metadata
        # `lambda` is a word of Python, so that its field has another name than people write.
        name = metadata.get("name") or item.name
        parameters[name] = Parameter(
            name=name,
            field=item.name,
            kind=kind,
            default=item.default,
            help=metadata.get("help", ""),
            check=metadata.get("check"),
            added_later=metadata.get("added_later", False),
        )
    return parameters


def split_spec(text: str) -> tuple[str, dict[str, str]]:
    """`"smmd[sigma=2,lambda=5]"` -> `("smmd", {"sigma": "2", "lambda": "5"})`."""
    match = _SPEC.match(text)
    if not match:
        raise UserError(f"'{text}' is not of the form name or name[param=value,...].")
    assignments = map(str.strip, _PART.findall(match[2] or ""))
    values: dict[str, str] = {}
    for assignment in filter(None, assignments):
        key, equals, value = map(str.strip, assignment.partition("="))
        if not (key and equals and value):
            raise UserError(
                f"'{assignment}' in '{text}' is not of the form param=value; a list is written "
                "with +, such as sigma=1+2+3."
            )
        if key in values:
            raise UserError(f"Parameter '{key}' stands twice in '{text}'.")

        # Quotes protect commas and brackets; they are no part of the value.
        is_quoted = re.fullmatch('"[^"]*"', value, re.DOTALL)
        values[key] = value[1:-1] if is_quoted else value
    return match[1], values


def split_list(text: str) -> list[str]:
    """Split on the commas outside brackets: `"ce,smmd[sigma=1,lambda=2]"`."""
    return [*filter(None, map(str.strip, _ITEM.findall(text)))]


def build(plugin: type, name: str, values: Mapping[str, str]) -> Any:
    """Make the plugin with the given spelled values. Raises UserError for an unknown parameter, an
    unreadable value or a failed check."""
    parameters = parameters_of(plugin)
    arguments = {}
    for key, text in values.items():
        if key not in parameters:
            remedy = (
                did_you_mean(key, parameters) if parameters else f"{name} takes none."
            )
            raise UserError(f"Unknown parameter '{key}' of {name}: {remedy}")

        parameter = parameters[key]
        try:
            value = parameter.kind.read(text)
        except (ValueError, KeyError):
            raise UserError(
                f"'{text}' is not a valid value of {name}[{key}]: expected {parameter.kind.name}."
            ) from None

        # None is a value of its own, which no check of numbers understands.
        complaint = None
        if parameter.check is not None and value is not None:
            complaint = parameter.check(value)
        if complaint:
            raise UserError(f"{name}[{key}={spell(value)}]: {key} {complaint}.")
        arguments[parameter.field] = value

    # What two parameters must fulfil together, a plugin says when it is made.
    try:
        return plugin(**arguments)
    except ValueError as error:
        spec = ",".join(f"{key}={value}" for key, value in values.items())
        raise UserError(f"{name}[{spec}]: {error}") from None


def canonical(plugin: Any) -> str:
    """The plugin's spelling with every parameter that differs from its default, sorted."""
    # Defaults are left out, so that a new parameter renames no cell.
    changed = []
    for name, parameter in sorted(parameters_of(type(plugin)).items()):
        value = getattr(plugin, parameter.field)
        if value != parameter.default:
            changed.append(f"{name}={spell(value)}")
    return f"{plugin.name}[{','.join(changed)}]" if changed else str(plugin.name)


def spell(value: Any) -> str:
    """A value as people write it between brackets."""
    match value:
        case None:
            return "none"
        case bool():  # before the numbers, since a truth value is an int
            return str(value).lower()
        case tuple() if len(value) == 2 and all(isinstance(v, int) for v in value):
            return f"{value[0]}..{value[1]}"
        case tuple():
            return "+".join(spell(v) for v in value)
        case str() if value != value.strip() or re.search(r"[][,]", value) or not value:
            return f'"{value}"'
        case float():
            # The shortest text that reads back as the number: one value has one spelling.
            return repr(value).removesuffix(".0").replace("e+", "e")
        case _:
            return str(value)


def tuned_label(loss: str) -> str:
    """The row of a loss whose setting a tuning chose."""
    name, bracket, parameters = loss.partition("[")
    return f"{name}[{parameters[:-1]},{TUNED}]" if bracket else f"{name}[{TUNED}]"


def untuned_label(loss: str) -> str:
    """The loss that was tuned, as its published row is spelled; other labels as they are."""
    if loss.endswith(f",{TUNED}]"):
        return loss.removesuffix(f",{TUNED}]") + "]"
    return loss.removesuffix(f"[{TUNED}]")


def is_tuned(loss: str) -> bool:
    """Whether a label is that of a tuned loss."""
    return untuned_label(loss) != loss


def _read_range(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    return int(low), int(high if dots else low)


_KINDS = {
    int: Kind("integer", int),
    float: Kind("number", float),
    str: Kind("text", str),
    bool: Kind("true|false", lambda text: {"true": True, "false": False}[text.lower()]),
    tuple[int, int]: Kind("range such as 1..2", _read_range),
    tuple[float, ...]: Kind(
        "number or a sum such as 1+2", lambda text: tuple(map(float, _PLUS.split(text)))
    ),
}


def _kind_of(hint: Any) -> Kind | None:
    """The kind of an annotation: one of `_KINDS`, a choice of texts, or either or None."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is Literal and all(isinstance(text, str) for text in arguments):
        choices = {text: text for text in arguments}
        return Kind("|".join(arguments), choices.__getitem__)
    if origin not in (typing.Union, types.UnionType):
        return _KINDS.get(hint)

    # Of unions, only that of one kind with None can be read from a text without a guess.
    kinds = [_kind_of(one) for one in arguments if one is not type(None)]
    if len(arguments) != 2 or len(kinds) != 1 or kinds[0] is None:
        return None
    inner = kinds[0]
    # In the order in which the author of the plugin wrote them.
    words = (inner.name, "none")
    if arguments[0] is type(None):
        words = ("none", inner.name)
    name = " or ".join(words)
    return Kind(name, lambda text: None if text == "none" else inner.read(text))
