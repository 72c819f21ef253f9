"""The weights of a cell as `from_pretrained` and vLLM load them: the adapter, or a whole model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ...errors import UserError
from ...results.run_model import again, card_of_run
from ...storage.files import read_given_json, write_text
from .exported_cell import ExportedCell

_OURS = ("canary.json", "README.md")


def write_weights(cell: ExportedCell, folder: Path, *, merged: bool) -> bool:
    """Write the selected checkpoint of a cell to a folder; returns whether there is one.

    merged: an adapter goes into its base first, so that the folder is a whole model. Else the
    adapter names its base on the hub, where that is one of the hub.

    Raises UserError for `merged` without weights, or where the base is not that of the run.
    """
    found = cell.now.checkpoint
    if found is None:
        if merged:
            raise UserError(
                f"{cell.title} has no weights in {cell.now.folder / 'checkpoint'} to merge: "
                f"{again(cell.run.path, cell.now)}; without --merged its results "
                "are exported alone."
            )
        return False
    if merged and cell.has_adapter:
        from ...models.loading import save_merged

        base = card_of_run(str(cell.row["model"]), cell.run).folder
        save_merged(base, found, str(cell.row["recipe"].get("dtype", "float32")), folder)
        return True
    for file in found.iterdir():
        if file.is_file() and not file.is_symlink() and file.name not in _OURS:
            shutil.copyfile(file, folder / file.name)  # not its mode, which may be private
    if cell.has_adapter and cell.hub_base is not None:
        config = folder / "adapter_config.json"
        repository, commit = cell.hub_base
        named = {"base_model_name_or_path": repository, "revision": commit}
        write_text(config, json.dumps(read_given_json(config) | named, indent=2) + "\n")
    return True
