"""A suite as lm-eval's own objects: its tasks with their data, ready for any checkpoint."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import datasets
import yaml
from lm_eval.tasks import TaskManager

from ..errors import UserError, reason_of
from .evaluation import Suite
from .mmlu_data import is_mmlu, lm_eval_mmlu, load_subject

_OURS = Path(__file__).parent / "suites"
_FETCH = (
    "check the network, or load the data set once where there is one, so that it is in the cache "
    "of the datasets library"
)


def load_tasks(suite: Suite) -> dict[str, Any]:
    """lm-eval's task dictionary of a suite. Raises UserError if its data cannot be loaded."""
    datasets.disable_progress_bars()
    try:
        loaded = _load(suite)
    except UserError:
        raise
    except ImportError as error:
        raise UserError(
            f"The suite {suite.name} needs a Python package that is not installed "
            f"({reason_of(error)}): install it with pip, or `pip install 'lm-eval[EXTRA]'` if "
            "lm-eval names an extra."
        ) from error
    except Exception as error:  # of the network, the hub or the files
        remedy = "copy it again" if suite.folder else _FETCH
        where = f" in {suite.folder}" if suite.folder else ""
        raise UserError(
            f"The data of the suite {suite.name}{where} cannot be loaded ({reason_of(error)}): "
            f"{remedy}."
        ) from error
    for task in loaded["tasks"].values():
        own = task.get_config("num_fewshot")
        if own is None or (suite.shots is not None and own != 0):  # 0 in a file allows no other
            task.set_config(key="num_fewshot", value=suite.shots or 0)
    return loaded


def _load(suite: Suite) -> dict[str, Any]:
    if not is_mmlu(suite.name):
        ours = suite.version > 0
        manager = TaskManager(include_path=[_OURS] if ours else None, include_defaults=not ours)
        return dict(manager.load([suite.name]))
    place = Path(str(suite.folder))

    def subject_of(path: str, name: str, **_: Any) -> Any:
        return load_subject(place, name)

    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(datasets, "load_dataset", subject_of),  # it asks for each split of README.md
    ):
        content = {**_mmlu(suite.name), "dataset_path": suite.folder}
        (Path(folder) / "suite.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        manager = TaskManager(include_path=[lm_eval_mmlu(), folder], include_defaults=False)
        return dict(manager.load([suite.name]))


def _mmlu(name: str) -> dict[str, Any]:
    """Our file of the whole, lm-eval's of a group, or one that includes lm-eval's of a subject."""
    subject = lm_eval_mmlu() / f"{name}.yaml"
    if subject.exists():
        return {"task": name, "include": str(subject)}
    file = _OURS / "mmlu.yaml" if name == "mmlu" else lm_eval_mmlu() / f"_{name}.yaml"
    return dict(yaml.safe_load(file.read_text(encoding="utf-8")))
