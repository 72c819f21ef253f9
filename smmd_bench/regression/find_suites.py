"""Which suites there are, how many shots each has by default, and what identifies its data.

`mmlu` and `samsum` are in `suites/`, with data that is found as everywhere here; any other name is
a task, group or tag of lm-eval, which fetches its data itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ..errors import UserError
from ..plugin_system.registry import load_task
from .evaluation import Suite
from .mmlu_data import is_mmlu, mmlu_folder
from .suite_names import SAMSUM, installed_version, require_suites, unknown_suite


def find_suites(names: Sequence[str], shots: int | None) -> list[Suite]:
    """The suites of these names; `shots` in place of the default of each.

    Raises UserError for an unknown name, or if the data of one of ours is nowhere.
    """
    if not names:
        raise UserError("--suite names no suite: give some, such as mmlu,samsum.")
    require_suites(names)
    for name in names:
        if not (name == SAMSUM or is_mmlu(name) or name in _task_manager().task_index):
            raise unknown_suite(name, _task_manager().all_tasks)
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
    """A sentence for each suite that ignores the number of shots that was asked for.

    Raises UserError where all of them do.
    """
    ignored = [s.name for s in suites if shots and s.shots != shots]
    fixed = [name for name in ignored if name == SAMSUM or _own_shots(name) == {0}]
    if fixed and len(fixed) == len(suites):
        raise UserError(f"--shots {shots}: {', '.join(fixed)} take none: leave it out.")
    return [f"--shots {shots} is ignored: {name} is always 0-shot." for name in fixed]


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
