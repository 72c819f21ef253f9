"""The folder with MMLU's questions: a local copy, or what the hub has at a pinned commit.

`--data-dir DIR` (or `$SMMD_BENCH_DATA`) may hold the copy as `DIR/mmlu/cais/mmlu`, `DIR/cais/mmlu`,
`DIR/mmlu` or be it. A copy has the hub's layout: a folder for each of the 57 subjects with
`test-*.parquet` and `dev-*.parquet`; nothing else of it is read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..storage.addresses import digest_of_files
from ..storage.data_files import VARIABLE, data_folder, fetch_snapshot

REPOSITORY = "cais/mmlu"
REVISION = "c30699e8356da336a370243923dbaf21066bb9fe"
PLACES = ("mmlu/cais/mmlu", "cais/mmlu", "mmlu", "")
_SPLITS = ("test", "dev")
_FETCH = (
    f"fetch it where there is a network with `hf download {REPOSITORY} --repo-type dataset "
    f'--revision {REVISION} --exclude "auxiliary_train/*" --local-dir DIR/mmlu` and give '
    "--data-dir DIR"
)


def mmlu_folder() -> tuple[Path, Mapping[str, Any]]:
    """The folder with the questions, and what identifies them: digest, or the hub's commit.

    Raises UserError if the folder given for local copies lacks them, or they cannot be fetched.
    """
    given = data_folder()
    if given is not None:
        folder = _local(given)
    else:
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it logs each retry
        unneeded = ["all/*", "auxiliary_train/*"]
        options = {"repo_type": "dataset", "revision": REVISION, "ignore_patterns": unneeded}
        folder = fetch_snapshot(f"MMLU ({REPOSITORY})", _FETCH, REPOSITORY, **options)
    files = []
    for subject in subjects():
        for split in _SPLITS:
            found = _files(folder, subject, split)
            if not found:
                raise UserError(
                    f"The copy of MMLU in {folder} has no {subject}/{split}-*.parquet: it must "
                    f"have all {len(subjects())} subjects; {_FETCH}."
                )
            files += found
    if given is not None:
        return folder, {"source": "mmlu", "digest": digest_of_files(files, folder)}
    return folder, {"source": REPOSITORY, "commit": REVISION}


def load_subject(folder: Path, subject: str) -> Any:
    """The questions and shots of one subject, as `datasets` gives a data set with two splits."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Dataset, DatasetDict

    tables = {split: map(pq.read_table, _files(folder, subject, split)) for split in _SPLITS}
    return DatasetDict({split: Dataset(pa.concat_tables(each)) for split, each in tables.items()})


def subjects() -> list[str]:
    """The names of the 57 subjects, as lm-eval's own task files list them."""
    return sorted(file.stem.removeprefix("mmlu_") for file in lm_eval_mmlu().glob("mmlu_*.yaml"))


def is_mmlu(name: str) -> bool:
    """Whether a suite is MMLU, one of its four groups, or one of its subjects."""
    if not name.startswith("mmlu"):
        return False
    return name in {file.stem.removeprefix("_") for file in lm_eval_mmlu().glob("*.yaml")}


def lm_eval_mmlu() -> Path:
    """The folder of lm-eval's MMLU task files. Raises UserError if lm-eval is not installed."""
    return lm_eval_tasks() / "mmlu" / "default"


def lm_eval_tasks() -> Path:
    """The folder of lm-eval's task files. Raises UserError if lm-eval is not installed."""
    found = find_spec("lm_eval")
    if found is None or not found.submodule_search_locations:
        raise UserError("lm-eval is not installed: pip install 'smmd-bench[lm-eval]'.")
    return Path(found.submodule_search_locations[0]) / "tasks"


def _local(given: Path) -> Path:
    first = subjects()[0]
    folder = next((given / p for p in PLACES if (given / p / first).is_dir()), None)
    if folder is None:
        raise UserError(
            f"The data folder {given} has no {PLACES[0]}/{first}: {_FETCH}, or leave out "
            f"--data-dir (and {VARIABLE}) to fetch MMLU from the hub."
        )
    return folder


def _files(folder: Path, subject: str, split: str) -> list[Path]:
    return sorted((folder / subject).glob(f"{split}-*.parquet"))
