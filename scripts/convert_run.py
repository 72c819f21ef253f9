"""Convert a run folder of format 2 into a new folder of the format that this version reads.

    python scripts/convert_run.py OLD_FOLDER NEW_FOLDER

The old folder stays as it is. Results, training logs and weights come along; what the old folder
held of replaced cells does not.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from smmd_bench.results.frames import read_run
from smmd_bench.storage.cell import StoredCell, stored_cell
from smmd_bench.storage.files import write_json
from smmd_bench.storage.manifest import FORMAT

_DERIVED = ("experiment", "models", "data", "generation", "plugins", "trials", "checksum", "flags")
_GONE = ("checksum", "address", "against", "against_loss")


def main(old: Path, new: Path) -> None:
    """Convert one folder."""
    if new.exists() and any(new.iterdir()):
        sys.exit(f"{new} is not empty: name another folder.")
    manifest = _read(old / "manifest.json")
    if manifest.get("format") != 2:
        sys.exit(f"{old} is in the format {manifest.get('format')}, and this converts format 2.")
    described = {f.parent.name: _read(f) for f in sorted(old.glob("cells/*/cell.json"))}
    cells = []
    for address in manifest["cells"]:
        if described[address].get("trial") is None:
            cells.append(_content(described, address))
            _convert(old, new, cells[-1])
    derived = () if "predictions" not in manifest else ("experiment", "data")
    kept = {k: v for k, v in manifest.items() if k not in _DERIVED or k in derived}
    write_json(new / "manifest.json", {**kept, "format": FORMAT, "cells": cells})
    for name in ("regression", "plugins", "overhead"):
        if (old / name).is_dir():
            shutil.copytree(old / name, new / name)
    run = read_run(new)
    for pair in run.compared:
        found = _read(old / "cells" / pair.mine["address"] / f"{pair.kind}.json")
        if found.get("against") == pair.other["address"]:
            mine, other = (run.current(cell["address"]) for cell in (pair.mine, pair.other))
            write_json(mine.compared_with(other) / "comparison.json", _without(found))


def _content(described: Mapping[str, Any], address: str) -> dict[str, Any]:
    """What the new manifest says of a cell."""
    said = dict(described[address])
    stages = said.pop("addresses")
    trials, source = said.pop("trials", None), said.pop("source", None)
    said.pop("trial_stages", None), said.pop("checksum", None)
    without = {"train", "validate"} if trials else set()
    if source is not None:
        without = {"train", "validate", "select"}
    elif "validate" not in stages:  # completions made elsewhere
        without = {"train"}
    elif said["loss"] == "base":
        without = {"validate", "select"}
    said |= {"address": address, "parts": {k: v for k, v in stages.items() if k not in without}}
    if source is not None:
        inner = _content(described, source)
        said["source"] = {k: inner[k] for k in ("address", "parts", "trials") if k in inner}
    if trials:
        keys = ("train", "validate", "select")
        parts = ({k: described[at]["addresses"][k] for k in keys} for at in trials)
        said["trials"] = [{"address": a, "parts": p} for a, p in zip(trials, parts, strict=True)]
    return said


def _convert(old: Path, new: Path, content: Mapping[str, Any]) -> None:
    """Put the files of a cell, and of its trials, where the new format has them."""
    for trial in content.get("trials", ()):
        _convert(old, new, trial)
    home, cell = old / "cells" / content["address"], stored_cell(new, content)
    if "train" in cell.parts and (receipt := _read(home / "train.json")):
        canaries = {str(e["epoch"]): e.pop("canary") for e in receipt["epochs"] if "canary" in e}
        base = {"base": receipt.pop("base")} if "base" in receipt else {}
        write_json(cell.trained / "canaries.json", {"epochs": canaries, **base})
        write_json(cell.trained / "receipt.json", _without(receipt))
        _copy(home / "train_log.parquet", cell.trained / "log.parquet")
        cell = _again(cell)
    if cell.validated is not None:
        _copy(home / "validation.parquet", cell.validated / "validation.parquet")
    chosen = _read(home / ("choice.json" if cell.trials else "selection.json"))
    if chosen and cell.selected is not None:
        if cell.trials:
            names = [trial.address for trial in cell.trials]
            chosen["chosen"] = names.index(chosen["chosen"])
        write_json(cell.selected / "selection.json", _without(chosen))
        cell = _again(cell)
    if cell.tested is not None and (home / "checkpoint").is_dir() and "train" in cell.parts:
        shutil.copytree(home / "checkpoint", cell.epoch(cell.tested.epoch), dirs_exist_ok=True)
    _results(home, cell)
    failure = _read(home / "FAILED.json")
    if failure and cell.metrics is None:
        write_json(new / "failed" / f"{cell.key}.json", _without(failure))


def _results(home: Path, cell: StoredCell) -> None:
    completions = home / "completions.parquet"
    if "decode" not in cell.parts or cell.decoded is None or not completions.exists():
        return
    metadata = pq.read_schema(completions).metadata or {}
    made_with = json.loads(metadata.get(b"smmd_bench.made_with", b"{}"))
    receipt = {**_without(_read(home / "decode.json")), "made_with": made_with}
    write_json(cell.decoded / "decode.json", receipt)
    for name in ("completions", "probes"):
        _copy(home / f"{name}.parquet", cell.decoded / f"{name}.parquet")
    if cell.beamed is not None:
        _copy(home / "beams.parquet", cell.beamed / "beams.parquet")
    metrics = _read(home / "metrics.json")
    if metrics and cell.measured is not None:
        _copy(home / "scores.parquet", cell.measured / "scores.parquet")
        write_json(cell.measured / "metrics.json", _without(metrics))


def _again(cell: StoredCell) -> StoredCell:
    """The cell as its files are now."""
    return StoredCell(cell.run, cell.address, cell.parts, cell.is_base, cell.source, cell.trials)


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def _without(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in _GONE}


def _copy(source: Path, target: Path) -> None:
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
