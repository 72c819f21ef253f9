"""Which suites there are, how many shots each has by default, and what identifies its data.

`mmlu` and `samsum` are in `suites/`, with data that is found as everywhere here; any other name is
a task, group or tag of lm-eval, which fetches its data itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import UserError
from ..plugin_system.registry import load_task
from .evaluation import Suite
from .mmlu_data import is_mmlu, mmlu_folder

SAMSUM = "samsum"
VERSIONS = {"mmlu": 1, SAMSUM: 2}
"""Our own suites, with MMLU's groups and subjects as `mmlu`. Raise one when its file in `suites/`
asks or scores otherwise."""
_SHOTS = {"mmlu": 5, SAMSUM: 0}


def find_suites(names: Sequence[str], shots: int | None) -> list[Suite]:
    """The suites of these names; `shots` in place of the default of each.

    Raises UserError for an unknown name, or if the data of one of ours is nowhere.
    """
    if not names:
        raise UserError("--suite names no suite: give some, such as mmlu,samsum.")
    families = {name: "mmlu" if is_mmlu(name) else name for name in names}
    if others := [name for name, family in families.items() if family not in VERSIONS]:
        _require_known(others)
    found = []
    for name, family in families.items():
        folder, data = _data(family)
        own = _shots(name, family, shots)
        found.append(Suite(name, VERSIONS.get(family, 0), own, data, folder))
    return found


def shots_notes(suites: Sequence[Suite], shots: int | None) -> list[str]:
    """A sentence for each suite that ignores the number of shots that was asked for."""
    ignored = [s.name for s in suites if shots and s.shots != shots and _is_fixed(s.name)]
    return [f"--shots {shots} is ignored: {name} is always 0-shot." for name in ignored]


def installed_version(package: str = "lm-eval") -> str:
    """The installed version of a package of the extra; raises UserError if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise UserError(f"{package} is not installed: pip install 'smmd-bench[lm-eval]'.") from None


def _shots(name: str, family: str, asked: int | None) -> int | None:
    """None for a task of lm-eval that is to be run with its own number, or allows no other."""
    if asked is None or family == SAMSUM:
        return _SHOTS.get(family)
    if family in VERSIONS:
        return asked
    same = {number or 0 for number in _own_shots(name, None)} == {asked}
    return None if same or _is_fixed(name) else asked


def _is_fixed(name: str) -> bool:
    """Whether a task file says 0: lm-eval allows no other number then."""
    return name == SAMSUM or (not is_mmlu(name) and _own_shots(name, None) == {0})


def _own_shots(member: str | Mapping[str, Any], given: int | None) -> set[int | None]:
    """The numbers in the files of a task, or of the tasks of a group or tag; None: none is there.

    `given` is what a group says for its tasks.
    """
    if isinstance(member, str):
        entry = _task_manager().task_index.get(member)
        config = {} if entry is None else entry.cfg or {"task": sorted(entry.tags)}
        number = config.get("num_fewshot") if given is None else given
    else:
        config, number = member, member.get("num_fewshot", given)
    if isinstance(config.get("task"), list):
        return {own for inner in config["task"] for own in _own_shots(inner, number)}
    if isinstance(member, str):
        return {number}
    return _own_shots(str(config.get("task") or config.get("group")), number)


@cache
def _task_manager() -> Any:
    """lm-eval's index of its tasks, groups and tags; it reads thousands of files for it."""
    from lm_eval.tasks import TaskManager

    return TaskManager()


def _data(name: str) -> tuple[str | None, Mapping[str, Any]]:
    if name == "mmlu":
        folder, identity = mmlu_folder()
        return str(folder), identity
    if name == SAMSUM:
        task = load_task(name)
        scorer = {
            "task": task.version,
            "metrics": {metric.name: metric.version for metric in task.metrics()},
            "rouge-score": installed_version("rouge-score"),
        }
        return None, {**task.identity("test", 0), "scorer": scorer}
    return None, {"source": "lm-eval"}


def _require_known(names: Sequence[str]) -> None:
    installed_version()
    known = {*_task_manager().all_tasks, *VERSIONS}
    for name in names:
        if name not in known:
            near = get_close_matches(name, sorted(known), n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?"
            every = "known are mmlu, samsum and what `lm-eval ls tasks` lists."
            raise UserError(f"Unknown suite '{name}': {hint if near else every}")
