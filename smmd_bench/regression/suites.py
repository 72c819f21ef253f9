"""Which suites there are, what identifies their questions, and how lm-eval gets these.

`mmlu` (with its groups and subjects) and `samsum` take their data as everything here does; any
other name is a task, group or tag of lm-eval, which fetches its data itself. A local copy of MMLU
(`--data-dir DIR` or `$SMMD_BENCH_DATA`: `DIR/mmlu/cais/mmlu`, `DIR/cais/mmlu`, `DIR/mmlu` or DIR)
has the hub's layout: README.md, and a folder for each of the 57 subjects with Parquet files.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..errors import UserError, did_you_mean
from ..plugin_system.registry import load_task
from ..storage.addresses import digest_of_files
from ..storage.data_files import VARIABLE, data_folder, fetch_snapshot

REPOSITORY = "cais/mmlu"
# Pinned: the hub's authors may change questions, and their results with them.
REVISION = "c30699e8356da336a370243923dbaf21066bb9fe"
# --data-dir may be the folder of all data sets, or that of MMLU itself.
PLACES = ("mmlu/cais/mmlu", "cais/mmlu", "mmlu", "")
SAMSUM = "samsum"
_FETCH = (
    f"fetch it where there is a network with `hf download {REPOSITORY} --repo-type dataset "
    f'--revision {REVISION} --exclude "auxiliary_train/*" --local-dir DIR/mmlu` and give '
    "--data-dir DIR"
)


@dataclass(frozen=True)
class Suite:
    """A suite as it is to be run.

    version: of our own definition; 0 for a task of lm-eval. shots: examples before each question;
    None: as the task says. data: what identifies the questions. folder: where they are, if known.
    """

    name: str
    version: int
    shots: int | None
    data: Mapping[str, Any]
    folder: str | None = None


def find_suites(names: Sequence[str], shots: int | None) -> list[Suite]:
    """Find the suites of these names; `shots` replaces the default of each. Raises UserError for a
    name that lm-eval does not know, and where data are missing."""
    # First of all: without the extra, every other error would mislead.
    installed_version()
    of_lm_eval = [name for name in names if name != SAMSUM and not is_mmlu(name)]
    if of_lm_eval:
        _require_tasks(of_lm_eval)
    return [_make_suite(name, shots) for name in dict.fromkeys(names)]


def _require_tasks(names: Sequence[str]) -> None:
    from lm_eval.tasks import TaskManager

    tasks = TaskManager().all_tasks  # reads thousands of files: ten seconds
    for name in names:
        if name not in tasks:
            hint = did_you_mean(name, {*tasks, "mmlu", SAMSUM})
            raise UserError(
                f"Unknown suite '{name}': {hint} (`lm-eval ls tasks` lists all)."
            )


def _make_suite(name: str, shots: int | None) -> Suite:
    if is_mmlu(name):
        folder, data = mmlu_folder()
        return Suite(name, 1, 5 if shots is None else shots, data, str(folder))
    if name != SAMSUM:
        return Suite(name, 0, shots, {"source": "lm-eval"})
    if shots:
        raise UserError(
            f"--shots {shots}: {SAMSUM} takes none: run it by itself, without."
        )

    # What scores the summaries is a part of what is measured, as its data are.
    task = load_task(SAMSUM)
    scorer = {
        "task": task.version,
        "rouge-score": installed_version("rouge-score"),
        "metrics": {metric.name: metric.version for metric in task.metrics()},
    }
    return Suite(name, 2, 0, {**task.identity("test", 0), "scorer": scorer})


@contextmanager
def lm_eval_tasks(suite: Suite) -> Iterator[dict[str, Any]]:
    """Make the arguments of `lm_eval.simple_evaluate` that name the tasks of a suite."""
    if suite.folder is None:
        task = samsum_task() if suite.name == SAMSUM else suite.name
        yield {"tasks": [task], "num_fewshot": suite.shots}
        return
    from lm_eval.tasks import TaskManager

    # lm-eval's task files name the hub's data: a copy of them names the folder instead.
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(_mmlu_files(), copy, dirs_exist_ok=True)
        template = Path(copy) / "_default_template_yaml"
        text = template.read_text("utf-8")
        on_hub = f"dataset_path: {REPOSITORY}"
        on_disk = f"dataset_path: {json.dumps(suite.folder)}"
        template.write_text(text.replace(on_hub, on_disk), "utf-8")
        # Without the defaults, which have the same names and take seconds to read.
        manager = TaskManager(include_path=copy, include_defaults=False)
        yield {
            "tasks": [suite.name],
            "num_fewshot": suite.shots,
            "task_manager": manager,
        }


def samsum_task() -> Any:
    """Make SAMSum for lm-eval, which has no such task, of prompts, data and scores of the plugin. A
    checkpoint gets the same ROUGE as in `train-eval`: without a chat template, as there."""
    from datasets import Dataset
    from lm_eval.api.task import ConfigurableTask

    task: Any = load_task(SAMSUM)
    rows = [{"prompt": e.prompt, "target": e.target} for e in task.examples("test", 0)]
    config = {
        "task": SAMSUM,
        "output_type": "generate_until",
        "custom_dataset": lambda **_: {"test": Dataset.from_list(rows)},
        "test_split": "test",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": "{{target}}",
        "target_delimiter": "",
        "num_fewshot": 0,
        "generation_kwargs": {
            "until": [], "max_gen_toks": 128, "do_sample": False, "temperature": 0,
        },
        "process_results": lambda row, results: task.annotate(results[0], row["target"]),
        "metric_list": [
            {"metric": name, "aggregation": "mean", "higher_is_better": True}
            for name in ("rouge1", "rouge2", "rougeL")
        ],
    }  # fmt: skip
    return ConfigurableTask(config=config)


def mmlu_folder() -> tuple[Path, Mapping[str, Any]]:
    """Find the folder with MMLU's questions, and what identifies them: digest, or hub's commit.
    Raises UserError if the folder given for local copies lacks them, or they cannot be fetched."""
    local_data = data_folder()
    if local_data is None:
        return _fetch_mmlu(), {"source": REPOSITORY, "commit": REVISION}

    for place in PLACES:
        folder = local_data / place
        # The digest covers what is read: the other splits may be absent.
        files: list[Path] = []
        for subject in subjects():
            files += sorted(folder.glob(f"{subject}/test-*.parquet"))
            files += sorted(folder.glob(f"{subject}/dev-*.parquet"))
        if files:
            return folder, {"source": "mmlu", "digest": digest_of_files(files, folder)}
    raise UserError(
        f"The data folder {local_data} has no {PLACES[0]}/{subjects()[0]}: {_FETCH}, or leave out "
        f"--data-dir (and {VARIABLE}) to fetch MMLU from the hub."
    )


def _fetch_mmlu() -> Path:
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it logs each retry
    return fetch_snapshot(
        f"MMLU ({REPOSITORY})",
        _FETCH,
        REPOSITORY,
        repo_type="dataset",
        revision=REVISION,
        # The questions of all subjects once more, and a training split.
        ignore_patterns=["all/*", "auxiliary_train/*"],
    )


def subjects() -> list[str]:
    """List the names of MMLU's 57 subjects, as lm-eval's own task files do."""
    return sorted(
        file.stem.removeprefix("mmlu_") for file in _mmlu_files().glob("mmlu_*.yaml")
    )


def is_mmlu(name: str) -> bool:
    """Check whether a suite is MMLU, one of its four groups, or one of its subjects."""
    # `mmlu`, `mmlu_stem`, `mmlu_anatomy`: each has a file of its own.
    return name in {
        file.stem.removeprefix("_") for file in _mmlu_files().glob("*mmlu*.yaml")
    }


def installed_version(package: str = "lm-eval") -> str:
    """Read the version of a package of the extra; raises UserError if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise UserError(
            f"{package} is not installed: pip install 'smmd-bench[lm-eval]'."
        ) from None


def _mmlu_files() -> Path:
    """The folder of lm-eval's MMLU task files."""
    import lm_eval

    return Path(lm_eval.__file__).parent / "tasks" / "mmlu" / "default"
