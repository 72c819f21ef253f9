"""Names for new plugins."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from pathlib import Path

from ...errors import UserError
from ..registry import Group, names, singular

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def check_name(group: Group, name: str, *, in_package: bool) -> None:
    """Raises UserError for a name that no new plugin of the group can have."""
    kind = singular(group)
    if not _is_usable(name):
        nearest = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        remedy = f", such as {nearest}" if _is_usable(nearest) else ""
        raise UserError(
            f"'{name}' cannot name a {kind}: take lower-case letters, digits and underscores, a "
            f"letter first{remedy}."
        )
    if name in names(group):
        others = (f"my_{name}", *(f"my_{name}_{n}" for n in range(2, 100)))
        free = next(other for other in others if other not in names(group))
        raise UserError(
            f"There is a {kind} '{name}' already (see `smmd-bench ls {group}`): choose another "
            f"name, such as {free}."
        )
    if not in_package and hides_a_module(name):
        raise UserError(
            f"{name}.py would hide the module {name} from the files beside it: choose another "
            f"name, such as my_{name}."
        )


def _is_usable(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and not keyword.iskeyword(name)


def is_module_name(name: str) -> bool:
    """Whether an import statement can name it."""
    return name.isidentifier() and not keyword.iskeyword(name)


def hides_a_module(name: str, own: Path | None = None) -> bool:
    """Whether a module of this name can be imported already, from elsewhere than `own`."""
    if name in sys.stdlib_module_names or name == "__main__":
        return True
    found = importlib.util.find_spec(name)
    if found is None or own is None:
        return found is not None
    places = [*(found.submodule_search_locations or ()), found.origin or ""]
    return not any(Path(place).resolve().is_relative_to(own.resolve()) for place in places if place)


def class_name(name: str) -> str:
    """`boiling_point` -> `BoilingPoint`."""
    return "".join(part.capitalize() for part in name.split("_"))
