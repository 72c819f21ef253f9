"""Settings that are checked when they are made: frozen, of strict types, nothing unknown."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import (
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from ..errors import UserError, did_you_mean, quoted
from ..storage.strict_yaml import read_yaml

_WORDS = {
    "a valid boolean": "true or false",
    "a valid integer": "an integer",
    ", unable to parse string as an integer": "",
    "a valid number": "a number",
    "a valid dictionary": "a mapping of names to values",
    "a valid string": "text",
    " after validation, not 0": "",
    r"match pattern '\S'": "name something",
}
"""What pydantic calls in Python's words, and ours."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Settings:
    """The base of settings that a user writes; a mistake raises a UserError of one sentence."""

    kind: ClassVar[str] = "setting"

    @classmethod
    def spell(cls, name: str) -> str:
        """A field's name as the user writes it."""
        return name

    @classmethod
    def read(cls, values: Mapping[Any, Any], origin: str) -> Self:
        """The settings that a file holds; `origin` names it in errors."""
        try:
            return cls(**{spelled(key): value for key, value in values.items()})
        except UserError as error:
            raise UserError(f"{origin}: {error}") from None

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, values: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        try:
            return handler(values)
        except ValidationError as error:
            raise UserError(_sentence(cls, error)) from None


def spelled(value: Any) -> str:
    """A name that YAML may read as a number or, by mistake, as a list."""
    return value if isinstance(value, str) else quoted(value)


def read_mapping(text: str | bytes, origin: str) -> dict[Any, Any]:
    """The mapping that a YAML file holds; `origin` names it in errors."""
    try:
        content = read_yaml(text)
    except Exception as error:  # also what PyYAML's readers of numbers raise
        reason = " ".join(str(error).split())
        raise UserError(f"{origin} is not valid YAML in UTF-8: {reason}.") from error

    if not isinstance(content, dict):
        raise UserError(
            f"{origin} must be a mapping of names to values, not {quoted(content)}."
        )
    return content


def _sentence(settings: type[Settings], error: ValidationError) -> str:
    """The first complaint, a misspelled name before any other: which setting, what it must be."""
    # A misspelled name is often why another one is missing.
    unknown = "unexpected_keyword_argument"
    complaints = error.errors(include_url=False)
    first = min(complaints, key=lambda complaint: complaint["type"] != unknown)
    fields = [field.name for field in dataclasses.fields(settings)]
    outer, *inner = first["loc"]
    # a number: of a positional argument
    name = fields[outer] if isinstance(outer, int) else outer
    if first["type"] == unknown:
        return f"Unknown {settings.kind} '{name}': {did_you_mean(name, fields)}"
    if first["type"] == "missing":
        return (
            f"The {settings.kind} {settings.spell(name)} is missing: give it a value."
        )

    keys = [f"[{key}]" for key in inner]
    place = settings.spell(name) + "".join(keys)
    expected = first["msg"].partition(" should ")[2]
    for pydantic_words, words in _WORDS.items():
        expected = expected.replace(pydantic_words, words)
    return f"The {settings.kind} {place} must {expected}, not {quoted(first['input'])}."
