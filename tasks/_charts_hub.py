"""ChartQA from the hub: its questions as JSON lines, its pictures as files named by their content.

Both are kept in the cache folder, `data/chartqa/REVISION/`, and never fetched again. The hub's rows
have the columns image, query, label (a list of one) and human_or_machine.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock

from smmd_bench.contracts import UserError, cache_folder
from smmd_bench.errors import reason_of
from smmd_bench.storage.data_files import read_rows
from smmd_bench.storage.files import atomic, write_text

from ._charts_rows import OFFICIAL_NAMES, ChartSource, Row

REPOSITORY, REVISION = "HuggingFaceM4/ChartQA", "main"


class HubCharts(ChartSource):
    """The hub's copy; what was fetched is identified by its content, not by its revision."""

    name = "hub"
    remedy = f"delete the cache folder's data/chartqa/{REVISION} to have it fetched again"
    local: ClassVar[Mapping[str, tuple[str, ...]]] = {
        split: (f"{split}.jsonl",) for split in OFFICIAL_NAMES
    }

    def files(self, split: str) -> list[Path]:
        """The file with the rows of a split, fetched where it is not in the cache.

        Raises UserError if that fails.
        """
        file = (cache_folder() / "data" / "chartqa" / REVISION / f"{split}.jsonl").absolute()
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(file.with_suffix(".lock")):
                if not file.is_file():
                    _fetch(file, split)
        return [file]

    def rows(self, split: str) -> Iterator[Row]:
        file = self.file(split)
        for number, row in enumerate(read_rows(file)):
            image = file.parent / row["image"]
            yield Row(image, row["query"], row["label"], row["origin"], number)


def _fetch(file: Path, split: str) -> None:
    from datasets import Image, load_dataset

    try:
        found = load_dataset(REPOSITORY, split=OFFICIAL_NAMES[split], revision=REVISION)
        names = found.features["human_or_machine"]
        rows = []
        for row in found.cast_column("image", Image(decode=False)):
            label, maker = row["label"], row["human_or_machine"]
            maker = names.int2str(maker) if isinstance(maker, int) else maker
            rows.append(
                {
                    "image": _keep_picture(row["image"], file.parent),
                    "query": " ".join(str(row["query"]).split()),
                    "label": ", ".join(map(str, label)) if isinstance(label, list) else str(label),
                    "origin": "human" if maker == "human" else "augmented",  # the official words
                }
            )
    except Exception as error:  # whatever lies between here and the hub
        raise UserError(
            f"The data {REPOSITORY} cannot be fetched from the hub ({reason_of(error)}): run "
            "`smmd-bench prepare 'chartqa[source=hub]'` where there is a network, or give a folder "
            "that holds 'ChartQA Dataset' with --data-dir."
        ) from error
    lines = (json.dumps(row, ensure_ascii=True) for row in rows)
    write_text(file, "".join(f"{line}\n" for line in lines))


def _keep_picture(image: Mapping[str, Any], folder: Path) -> str:
    """Write the picture's bytes as they are; returns its name within the folder."""
    from PIL import Image

    content = image["bytes"] or Path(image["path"]).read_bytes()
    with Image.open(io.BytesIO(content)) as picture:
        ending = str(picture.format).lower()
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    name = f"images/{digest[:2]}/{digest}.{ending}"
    file = folder / name
    if not file.is_file():
        with atomic(file) as temporary:
            temporary.write_bytes(content)
    return name
