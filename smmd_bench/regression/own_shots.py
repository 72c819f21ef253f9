"""How many shots lm-eval's own task files say, read without loading any data."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def task_manager() -> Any:
    """lm-eval's index of its tasks, groups and tags; it reads thousands of files for it."""
    from lm_eval.tasks import TaskManager

    return TaskManager()


def own_shots(name: str, given: int | None = None) -> set[int | None]:
    """The numbers in the files of a task, or of the tasks of a group or tag; None: none is there.

    `given` is what a group says for its tasks.
    """
    from lm_eval.tasks._yaml_loader import load_yaml

    entry = task_manager().task_index.get(name)
    if entry is None:  # a task that stands in its group's file alone
        return {given}
    if entry.tags and entry.yaml_path is None:
        return {own for task in sorted(entry.tags) for own in own_shots(task, given)}
    if entry.yaml_path is None:
        return {given}
    content = load_yaml(entry.yaml_path, resolve_func=False)
    number = content.get("num_fewshot") if given is None else given
    if not isinstance(content.get("task"), list):
        return {number}
    return {own for member in content["task"] for own in _of_member(member, number)}


def _of_member(member: Any, given: int | None) -> set[int | None]:
    if isinstance(member, str):
        return own_shots(member, given)
    number = member.get("num_fewshot", given)
    if isinstance(member.get("task"), list):
        return {own for inner in member["task"] for own in _of_member(inner, number)}
    return own_shots(str(member.get("task") or member.get("group")), number)
