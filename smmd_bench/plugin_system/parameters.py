"""The parameters of a plugin class, and the `name[param=value,...]` spelling."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Literal

from ..errors import UserError, did_you_mean

_SPEC = re.compile(r"^\s*([A-Za-z][\w-]*)\s*(?:\[(.*)\])?\s*$", re.DOTALL)
_PLUS = re.compile(r"(?<!\d[eE])(?<!\.[eE])\+")
"""The plus between numbers, not that of an exponent as in `1e+20`."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A plugin parameter as people see it."""

    name: str
    field: str
    type: str
    default: Any
    help: str


def why_unusable(plugin: Any) -> str | None:
    """Why a plugin cannot be made from a spelling, and the remedy; None: it can."""
    if not (isinstance(plugin, type) and dataclasses.is_dataclass(plugin)):
        return "it is not a dataclass (put @dataclass(frozen=True) on the class)"
    try:
        hints = typing.get_type_hints(plugin)
    except Exception as error:
        return f"its annotations cannot be read ({error})"
    for item in dataclasses.fields(plugin):
        if item.init and item.default is MISSING:
            return f"its parameter {item.name} has no default (give it one)"
        if item.init and not _is_supported(hints[item.name]):
            return (
                f"its parameter {item.name} has the type {_type_name(hints[item.name])} (use int, "
                "float, bool, str, Literal of texts, tuple[float, ...] or tuple[int, int])"
            )
    return None


def parameters_of(plugin: type) -> dict[str, Parameter]:
    """The parameters of a plugin class, by public name."""
    hints = typing.get_type_hints(plugin)
    found = {}
    for item in dataclasses.fields(plugin):
        if item.init:
            name = item.metadata.get("name") or item.name
            found[name] = Parameter(
                name,
                item.name,
                _type_name(hints[item.name]),
                item.default,
                item.metadata.get("help", ""),
            )
    return found


def split_spec(text: str) -> tuple[str, dict[str, str]]:
    """`"smmd[sigma=2,lambda=5]"` -> `("smmd", {"sigma": "2", "lambda": "5"})`."""
    match = _SPEC.match(text)
    if not match:
        raise UserError(f"'{text}' is not of the form name or name[param=value,...].")
    values: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in (match[2] or "").split(","))):
        key, equals, value = (s.strip() for s in part.partition("="))
        if not (key and equals and value):
            raise UserError(f"'{part}' in '{text}' is not of the form param=value.")
        if key in values:
            raise UserError(f"Parameter '{key}' stands twice in '{text}'.")
        values[key] = value
    return match[1], values


def split_list(text: str) -> list[str]:
    """Split on the commas that stand outside brackets: `"ce,smmd[sigma=1,lambda=2]"`."""
    parts = re.split(r",(?![^\[]*\])", text)
    return [part.strip() for part in parts if part.strip()]


def build(plugin: type, name: str, values: Mapping[str, str]) -> Any:
    """Make the plugin with the given spelled values.

    Raises UserError for an unknown parameter, an unreadable value or a failed check.
    """
    known = parameters_of(plugin)
    hints = typing.get_type_hints(plugin)
    arguments = {}
    for key, text in values.items():
        if key not in known:
            raise UserError(
                f"Unknown parameter '{key}' of {name}: "
                + (did_you_mean(key, known) if known else f"{name} takes none.")
            )
        try:
            arguments[known[key].field] = _read(hints[known[key].field], text)
        except ValueError:
            raise UserError(
                f"'{text}' is no valid value of {name}[{key}]: expected {known[key].type}."
            ) from None
    checks = {f.name: f.metadata.get("check") for f in dataclasses.fields(plugin)}
    for key, value in arguments.items():
        check = checks[key]
        complaint = check(value) if check is not None and value is not None else None
        if complaint:
            public = next(p.name for p in known.values() if p.field == key)
            raise UserError(f"{name}[{public}={spell(value)}]: {public} {complaint}.")
    try:
        return plugin(**arguments)
    except ValueError as error:
        raise UserError(
            f"{name}[{','.join(f'{k}={v}' for k, v in values.items())}]: {error}"
        ) from None


def canonical(plugin: Any) -> str:
    """The plugin's spelling with every parameter that differs from its default, sorted."""
    changed = [
        f"{p.name}={spell(getattr(plugin, p.field))}"
        for p in sorted(parameters_of(type(plugin)).values(), key=lambda p: p.name)
        if getattr(plugin, p.field) != p.default
    ]
    return f"{plugin.name}[{','.join(changed)}]" if changed else str(plugin.name)


def spell(value: Any) -> str:
    """A value as it is written between brackets."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case tuple() if len(value) == 2 and all(isinstance(v, int) for v in value):
            return f"{value[0]}..{value[1]}"
        case tuple():
            return "+".join(spell(v) for v in value)
        case float():
            return repr(value).removesuffix(".0").replace("e+", "e")
        case _:
            return str(value)


def _read(hint: Any, text: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if text == "none" and type(None) in arguments:
            return None
        return _read(next(a for a in arguments if a is not type(None)), text)
    if origin is Literal:
        if text not in arguments:
            raise ValueError(text)
        return text
    if hint == tuple[int, int]:
        low, dots, high = text.partition("..")
        return (int(low), int(high if dots else low))
    if origin is tuple:
        return tuple(_read(arguments[0], part) for part in _PLUS.split(text))
    if hint is bool:
        return (
            {"true": True, "false": False}[text.lower()]
            if text.lower() in ("true", "false")
            else _fail(text)
        )
    if hint in (int, float, str):
        return hint(text)
    raise TypeError(f"parameters of type {hint} cannot be spelled")


def _is_supported(hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        others = [a for a in arguments if a is not type(None)]
        return len(others) == 1 and _is_supported(others[0])
    if origin is Literal:
        return all(isinstance(a, str) for a in arguments)
    return hint in (int, float, bool, str, tuple[float, ...], tuple[int, int])


def _fail(text: str) -> Any:
    raise ValueError(text)


def _type_name(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("none" if a is type(None) else _type_name(a) for a in arguments)
    if origin is Literal:
        return "|".join(map(str, arguments))
    if hint == tuple[int, int]:
        return "range such as 1..2"
    if hint == tuple[float, ...]:
        return f"{_type_name(arguments[0])} or a sum such as 1+2"
    return {bool: "true|false", int: "integer", float: "number", str: "text"}.get(
        hint, getattr(hint, "__name__", "") if isinstance(hint, type) else str(hint)
    )
