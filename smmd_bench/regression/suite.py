"""Which suites there are, how many shots each has by default, and what identifies its data.

`mmlu` and `samsum` are in `suites/`, with data that is found as everywhere here; any other name is
a task, group or tag of lm-eval, which fetches its data itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..plugin_system.registry import load_task
from .mmlu_data import is_mmlu, mmlu_folder
from .own_shots import own_shots, task_manager

SAMSUM = "samsum"
VERSIONS = {"mmlu": 1, SAMSUM: 2}
"""Our own suites, with MMLU's groups and subjects as `mmlu`. Raise one when its file in `suites/`
asks or scores otherwise."""
_SHOTS = {"mmlu": 5, SAMSUM: 0}


@dataclass(frozen=True)
class Suite:
    """A suite as it is to be run.

    version: of our own file; 0 for a task of lm-eval's. shots: examples before each question; None:
    as the task says. data: what identifies the questions. folder: where they are, where we know.
    """

    name: str
    version: int
    shots: int | None
    data: Mapping[str, Any]
    folder: str | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it has a file in `suites/`."""
        return self.version > 0

    def identity(self) -> dict[str, Any]:
        """What of the suite can change a result."""
        return {
            "name": self.name,
            "version": self.version,
            "shots": self.shots,
            "data": dict(self.data),
        }


@dataclass(frozen=True)
class Setting:
    """How the suites of one call are run.

    limit: questions of each subject or task (None: all). engine: hf or vllm, with the versions of
    its libraries. batch_size: no part of an address.
    """

    limit: int | None
    engine: str
    versions: Mapping[str, str]
    batch_size: int | None = field(default=None, compare=False)

    def identity(self) -> dict[str, Any]:
        """What of the setting can change a result."""
        return {"limit": self.limit, "engine": self.engine, "versions": dict(self.versions)}


def find_suites(names: Sequence[str], shots: int | None) -> list[Suite]:
    """The suites of these names; `shots` in place of the default of each.

    Raises UserError for an unknown name, or where the data of one of ours is nowhere.
    """
    if not names:
        raise UserError("--suite names no suite: give some, such as mmlu,samsum.")
    families = {name: "mmlu" if is_mmlu(name) else name for name in names}
    others = [name for name, family in families.items() if family not in VERSIONS]
    if others:
        _require_known(others)
    found = []
    for name, family in families.items():
        folder, data = _data(family)
        found.append(
            Suite(name, VERSIONS.get(family, 0), _shots(name, family, shots), data, folder)
        )
    return found


def shots_notes(suites: Sequence[Suite], shots: int | None) -> list[str]:
    """A sentence for each suite in which a number of shots that was asked for changes nothing."""
    ignored = [s.name for s in suites if shots and s.shots != shots and _is_fixed(s.name)]
    return [f"--shots {shots} is ignored: {name} is always 0-shot." for name in ignored]


def lm_eval_version() -> str:
    """The installed version of lm-eval; raises UserError if there is none."""
    return _version("lm-eval")


def suites_folder() -> Path:
    """The folder of our own task files."""
    return Path(__file__).parent / "suites"


def _shots(name: str, family: str, asked: int | None) -> int | None:
    """None for a task of lm-eval's that is to be run with its own number, or knows no other."""
    if asked is None or family == SAMSUM:
        return _SHOTS.get(family)
    if family in VERSIONS:
        return asked
    same = {number or 0 for number in own_shots(name)} == {asked}
    return None if same or _is_fixed(name) else asked


def _is_fixed(name: str) -> bool:
    """Whether a task file of its own says 0: lm-eval allows no other number then."""
    if is_mmlu(name):
        return False
    return name == SAMSUM or own_shots(name) == {0}


def _data(name: str) -> tuple[str | None, Mapping[str, Any]]:
    if name == "mmlu":
        folder, identity = mmlu_folder()
        return str(folder), identity
    if name == SAMSUM:
        task = load_task(name)
        scorer = {
            "task": task.version,
            "metrics": {metric.name: metric.version for metric in task.metrics()},
            "rouge-score": _version("rouge-score"),
        }
        return None, {**task.identity("test", 0), "scorer": scorer}
    return None, {"source": "lm-eval"}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise UserError(f"{package} is not installed: pip install 'smmd-bench[lm-eval]'.") from None


def _require_known(names: Sequence[str]) -> None:
    lm_eval_version()
    known = [*task_manager().all_tasks, *VERSIONS]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.5)
            hint = "known are mmlu, samsum and what `lm-eval ls tasks` lists."
            if near:
                hint = f"did you mean {' or '.join(near)}?"
            raise UserError(f"Unknown suite '{name}': {hint}")
