"""ChartQA's official folder, found in the folder of local copies (--data-dir).

`ChartQA Dataset/SPLIT/{SPLIT_human.json, SPLIT_augmented.json, png/}`, SPLIT one of train, val,
test; rows such as {"imgname": "166.png", "query": "...?", "label": "62"}.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from smmd_bench.contracts import UserError
from smmd_bench.storage.data_files import VARIABLE, read_rows

from ._charts_rows import OFFICIAL_NAMES, ChartSource, Row

FOLDERS = ("ChartQA Dataset", "chartqa/ChartQA Dataset", "chartqa", ".")


def data_folder_given() -> bool:
    """Whether there is a folder of local copies (--data-dir)."""
    return bool(os.environ.get(VARIABLE))


class OfficialCharts(ChartSource):
    """Two files of questions a split, the human ones first."""

    name = "official"
    remedy = "copy the official folder again"
    local: ClassVar[Mapping[str, tuple[str, ...]]] = {
        ours: (f"{theirs}/{theirs}_human.json", f"{theirs}/{theirs}_augmented.json")
        for ours, theirs in OFFICIAL_NAMES.items()
    }

    def files(self, split: str) -> list[Path]:
        """The split's two files of questions. Raises UserError if one of them is missing."""
        folder = self._folder(split)
        files = [folder / name for name in self.local[split]]
        for file in files:
            if not file.is_file():
                raise UserError(
                    f"ChartQA's file {file} is missing, and without it the {split} split is not "
                    "whole: copy the official folder again."
                )
        return files

    def rows(self, split: str) -> Iterator[Row]:
        """All rows of a split, human questions first. Raises UserError for a broken file."""
        for file, origin in zip(self.files(split), ("human", "augmented"), strict=True):
            for number, row in enumerate(read_rows(file, ("imgname", "query", "label"))):
                name, query = str(row["imgname"]), " ".join(str(row["query"]).split())
                if Path(name).name != name:
                    raise UserError(
                        f"Row {number + 1} of {file} names the image {name!r}, which is not a "
                        "plain file name: copy the file again."
                    )
                yield Row(file.parent / "png" / name, query, str(row["label"]), origin, number)

    def _folder(self, split: str) -> Path:
        given = os.environ.get(VARIABLE)
        if not given:
            raise UserError(
                "chartqa[source=official] needs the folder that holds 'ChartQA Dataset': give it "
                "with --data-dir, or ask for drawn charts with chartqa[source=synthetic]."
            )
        for folder in (Path(given) / name for name in FOLDERS):
            if any((folder / file).is_file() for file in self.local[split]):
                return folder
        raise UserError(
            f"The data folder {given} has no ChartQA Dataset/{self.local[split][0]}: put the "
            "official folder there, or ask for drawn charts with chartqa[source=synthetic]."
        )
