"""Which suites there are, what identifies their questions, and how lm-eval gets these.

`mmlu` (with its groups and subjects) and `samsum` take their data as everything here does; any
other name is a task, group or tag of lm-eval, which fetches its data itself. A local copy of MMLU
(`--data-dir DIR` or `$SMMD_BENCH_DATA`: `DIR/mmlu/cais/mmlu`, `DIR/cais/mmlu`, `DIR/mmlu` or DIR)
has the hub's layout: README.md, and a folder for each of the 57 subjects with Parquet files.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import UserError, did_you_mean
from ..plugin_system.registry import load_task
from ..storage.addresses import digest_of_files
from ..storage.data_files import VARIABLE, data_folder, fetch_snapshot

REPOSITORY = "cais/mmlu"
REVISION = "c30699e8356da336a370243923dbaf21066bb9fe"
PLACES = ("mmlu/cais/mmlu", "cais/mmlu", "mmlu", "")
SAMSUM = "samsum"
_GROUPS = ("mmlu_stem", "mmlu_humanities", "mmlu_social_sciences", "mmlu_other")
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
    """The suites of these names; `shots` in place of the default of each.

    Raises UserError for a name that lm-eval does not know, and where data are missing.
    """
    installed_version()
    others = [name for name in names if name != SAMSUM and not is_mmlu(name)]
    if others:
        from lm_eval.tasks import TaskManager

        known = TaskManager().all_tasks  # reads thousands of files: ten seconds
        for name in others:
            if name not in known:
                hint = did_you_mean(name, {*known, "mmlu", SAMSUM})
                raise UserError(f"Unknown suite '{name}': {hint} (`lm-eval ls tasks` lists all).")
    return [_suite(name, shots) for name in dict.fromkeys(names)]


def _suite(name: str, shots: int | None) -> Suite:
    if is_mmlu(name):
        folder, data = mmlu_folder()
        return Suite(name, 1, 5 if shots is None else shots, data, str(folder))
    if name != SAMSUM:
        return Suite(name, 0, shots, {"source": "lm-eval"})
    if shots:
        raise UserError(f"--shots {shots}: {SAMSUM} takes none: run it by itself, without.")
    task = load_task(SAMSUM)
    scorer = {
        "task": task.version,
        "metrics": {metric.name: metric.version for metric in task.metrics()},
        "rouge-score": installed_version("rouge-score"),
    }
    return Suite(name, 2, 0, {**task.identity("test", 0), "scorer": scorer})


@contextmanager
def lm_eval_tasks(suite: Suite) -> Iterator[dict[str, Any]]:
    """The arguments of `lm_eval.simple_evaluate` that name the tasks of a suite."""
    if suite.name == SAMSUM:
        yield {"tasks": [samsum_task()], "num_fewshot": 0}
        return
    from lm_eval.tasks import TaskManager

    arguments = {"tasks": [suite.name], "num_fewshot": suite.shots}
    if not is_mmlu(suite.name):
        yield arguments
        return
    import yaml

    with tempfile.TemporaryDirectory() as folder:
        content = {**_mmlu_config(suite.name), "dataset_path": suite.folder}
        (Path(folder) / "suite.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        manager = TaskManager(include_path=[_mmlu_files(), folder], include_defaults=False)
        yield {**arguments, "task_manager": manager}


def samsum_task() -> Any:
    """SAMSum for lm-eval, which has no such task: prompts, data and scores of the task plugin.

    A checkpoint gets the same ROUGE as in `train-eval`: without a chat template, as there.
    """
    from datasets import Dataset
    from lm_eval.api.task import ConfigurableTask

    task: Any = load_task(SAMSUM)
    rows = [{"prompt": e.prompt, "target": e.target} for e in task.examples("test", 0)]

    def rouge(document: Mapping[str, str], results: Sequence[str]) -> Mapping[str, float]:
        found: Mapping[str, float] = task.annotate(results[0], document["target"])
        return found

    metrics = ("rouge1", "rouge2", "rougeL")
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
        "process_results": rouge,
        "metric_list": [
            {"metric": name, "aggregation": "mean", "higher_is_better": True} for name in metrics
        ],
    }  # fmt: skip
    return ConfigurableTask(config=config)


def mmlu_folder() -> tuple[Path, Mapping[str, Any]]:
    """The folder with MMLU's questions, and what identifies them: digest, or the hub's commit.

    Raises UserError if the folder given for local copies lacks them, or they cannot be fetched.
    """
    given = data_folder()
    if given is None:
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it logs each retry
        unneeded = ["all/*", "auxiliary_train/*"]
        options = {"repo_type": "dataset", "revision": REVISION, "ignore_patterns": unneeded}
        folder = fetch_snapshot(f"MMLU ({REPOSITORY})", _FETCH, REPOSITORY, **options)
        return folder, {"source": REPOSITORY, "commit": REVISION}
    names = subjects()
    places = (given / place for place in PLACES)
    found = next((place for place in places if (place / names[0]).is_dir()), None)
    if found is None:
        raise UserError(
            f"The data folder {given} has no {PLACES[0]}/{names[0]}: {_FETCH}, or leave out "
            f"--data-dir (and {VARIABLE}) to fetch MMLU from the hub."
        )
    files = []
    for pattern in (f"{name}/{split}-*.parquet" for name in names for split in ("test", "dev")):
        files += (own := sorted(found.glob(pattern)))
        if not own:
            raise UserError(f"The copy of MMLU in {found} has no {pattern}: {_FETCH}.")
    return found, {"source": "mmlu", "digest": digest_of_files(files, found)}


def subjects() -> list[str]:
    """The names of MMLU's 57 subjects, as lm-eval's own task files list them."""
    return sorted(file.stem.removeprefix("mmlu_") for file in _mmlu_files().glob("mmlu_*.yaml"))


def is_mmlu(name: str) -> bool:
    """Whether a suite is MMLU, one of its four groups, or one of its subjects."""
    if not name.startswith("mmlu"):
        return False
    return name in {file.stem.removeprefix("_") for file in _mmlu_files().glob("*.yaml")}


def installed_version(package: str = "lm-eval") -> str:
    """The installed version of a package of the extra; raises UserError if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise UserError(f"{package} is not installed: pip install 'smmd-bench[lm-eval]'.") from None


def _mmlu_files() -> Path:
    """The folder of lm-eval's MMLU task files."""
    found = find_spec("lm_eval")
    if found is None or not found.submodule_search_locations:
        raise UserError("lm-eval is not installed: pip install 'smmd-bench[lm-eval]'.")
    return Path(found.submodule_search_locations[0]) / "tasks" / "mmlu" / "default"


def _mmlu_config(name: str) -> dict[str, Any]:
    """lm-eval hands `dataset_path` on to the subjects of a group from a file of the group only."""
    if name == "mmlu":
        mean = [{"metric": "acc", "weight_by_size": True}]
        return {"group": name, "task": [*_GROUPS], "aggregate_metric_list": mean}
    import yaml

    subject = _mmlu_files() / f"{name}.yaml"
    if subject.exists():
        return {"task": name, "include": str(subject)}
    return dict(yaml.safe_load((_mmlu_files() / f"_{name}.yaml").read_text(encoding="utf-8")))
