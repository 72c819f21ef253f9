"""YAML that says what it looks like: the only reader and writer of YAML here.

PyYAML follows YAML 1.1, where `no` is false, `010` is 8, `1:30` is 90, `2026-01-02` is a date, and
of two keys of one name the last one counts. Here the plain words are those of JSON: true, false,
null and decimal numbers, also as `2e-4` and `.inf`. Everything else is text as it is written, and a
key that stands twice is refused.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_PLAIN = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "int": (r"0|-?[1-9][0-9]*", "-0123456789"),
    "float": (
        r"-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
        r"|-?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-.0123456789",
    ),
    "merge": (r"<<", "<"),
}
"""By type, the plain texts of it, and with which characters they begin."""


class DuplicateKeyError(ValueError):
    """A mapping has a key twice."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose the mapping of a text, before `<<` merges others into it."""
        mapping: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in mapping.value:
            name = str(key.value)
            line = key.start_mark.line + 1  # which PyYAML counts from 0
            if name in lines:
                raise DuplicateKeyError(
                    f"the key {name} stands in line {lines[name]} and in line {line}: keep one"
                )
            lines[name] = line

        return mapping


class _Dumper(yaml.SafeDumper):
    """Quotes what is a text here and no text in YAML 1.1, and the other way round."""


_Loader.yaml_implicit_resolvers = {}  # none of YAML 1.1
# What is written has quotes wherever YAML 1.1 or this reader would see no text.
for _type, (_pattern, _first) in _PLAIN.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(
            f"{_TAG}{_type}", re.compile(rf"^(?:{_pattern})$"), [*_first]
        )


def read_yaml(text: str | bytes) -> Any:
    """Read what a YAML text holds. Raises an error of PyYAML, or DuplicateKeyError."""
    # `_Loader` is a SafeLoader: no tag of a stranger makes an object.
    return yaml.load(text, _Loader)


def write_yaml(content: Any) -> str:
    """Write the YAML of plain data, which any reader of YAML reads as it was."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False)
