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


def find_suites(names: Sequence[str], shots: int | None) -> list[Suite]:
    """The suites of these names; `shots` in place of the default of each.

    Raises UserError for an unknown name, or if the data of one of ours is nowhere.
    """
    if not names:
        raise UserError("--suite names no suite: give some, such as mmlu,samsum.")
    if others := [name for name in names if name != SAMSUM and not is_mmlu(name)]:
        _require_known(others)
    return [_suite(name, shots) for name in dict.fromkeys(names)]


def _suite(name: str, shots: int | None) -> Suite:
    """Raise the version of a suite of ours when its file in `suites/` asks or scores otherwise."""
    if is_mmlu(name):
        folder, data = mmlu_folder()
        return Suite(name, 1, 5 if shots is None else shots, data, str(folder))
    if name == SAMSUM:
        task = load_task(name)
        scorer = {
            "task": task.version,
            "metrics": {metric.name: metric.version for metric in task.metrics()},
            "rouge-score": installed_version("rouge-score"),
        }
        return Suite(name, 2, 0, {**task.identity("test", 0), "scorer": scorer})
    own = {0} if shots is None else _own_shots(name)
    if own == {0} or {number or 0 for number in own} == {shots}:
        shots = None  # its own number: a file that says 0 allows no other
    return Suite(name, 0, shots, {"source": "lm-eval"})


def shots_notes(suites: Sequence[Suite], shots: int | None) -> list[str]:
    """A sentence for each suite that ignores the number of shots that was asked for."""
    ignored = [s.name for s in suites if shots and s.shots != shots]
    fixed = [name for name in ignored if name == SAMSUM or _own_shots(name) == {0}]
    return [f"--shots {shots} is ignored: {name} is always 0-shot." for name in fixed]


def installed_version(package: str = "lm-eval") -> str:
    """The installed version of a package of the extra; raises UserError if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise UserError(f"{package} is not installed: pip install 'smmd-bench[lm-eval]'.") from None


def _own_shots(member: str | Mapping[str, Any], given: int | None = None) -> set[int | None]:
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


def _require_known(names: Sequence[str]) -> None:
    installed_version()
    known = {*_task_manager().all_tasks, "mmlu", SAMSUM}
    for name in names:
        if name not in known:
            near = get_close_matches(name, sorted(known), n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?"
            every = "known are mmlu, samsum and what `lm-eval ls tasks` lists."
            raise UserError(f"Unknown suite '{name}': {hint if near else every}")
