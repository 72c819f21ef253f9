"""A JSON file of a run is read only where it has the shape that this package writes."""

import copy
from pathlib import Path
from typing import Any

import pytest

from smmd_bench.storage.files import DamagedError, write_json
from smmd_bench.storage.manifest import read_manifest
from smmd_bench.storage.shapes import require_shape

ADDRESSES = {"train": "a", "decode": "b", "measure": "c"}
CELL = {
    "address": "a", "addresses": ADDRESSES, "model": "m", "task": "t", "loss": "ce", "seed": 0,
    "params": None, "recipe": {}, "data": {"sizes": {"test": 4}}, "plugins": {"loss x": "d"},
}  # fmt: skip
MADE_HERE = {
    **CELL, "identity": {}, "generation": {},
    "data": {"licence": "MIT", "sizes": {}, "there": {"test": 4}, "identity": {}},
}  # fmt: skip
WHOLE: dict[str, list[dict[str, Any]]] = {
    "manifest": [{}, {"cells": ["a"], "experiment": {"a": None, "b": [1], "c": {}, "d": "x"}}],
    "cell": [CELL, MADE_HERE],
    "train": [{"epochs": []}, {"epochs": [{"epoch": 1, "weights": "w"}], "notes": 5}],
    "selection": [{"metric": "m", "best_epoch": 1, "epochs": [{"epoch": 1, "m": None, "n": 2.5}]}],
    "metrics": [{"metrics": {"m": {"value": 1, "low": None, "high": 2.5}}}],
    "comparison": [
        {"metrics": {"m": {"difference": -1, "low": 0.5, "high": None}}, "mcnemar": None},
        {"metrics": {}, "mcnemar": {"b": 1, "c": 2, "p": 0.5}},
    ],
    "FAILED": [{}, {"stage": "train", "error": "why"}],
    "canary": [{"epoch": 0, "weights": "base"}],
    "decode": [{"anything": [None]}],
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_this_package_writes_is_taken(name):
    for content in WHOLE[name]:
        require_shape(content, Path(f"{name}.json"))


@pytest.mark.parametrize(
    ("name", "change", "place"),
    [
        ("manifest", {"cells": "a"}, "cells"),
        ("manifest", {"cells": ["a", 7, 8]}, "cells[1]"),
        ("manifest", {"experiment": {"a": 1.5}}, "experiment[a]"),
        ("manifest", {"data": {"gsm8k": []}}, "data[gsm8k]"),
        ("cell", {"loss": None}, "loss"),
        ("cell", {"addresses": {"train": "a"}}, "addresses[decode]"),
        ("cell", {"addresses": {**ADDRESSES, "select": 1}}, "addresses[select]"),
        ("cell", {"seed": "0"}, "seed"),
        ("cell", {"seed": 2**63}, "seed"),
        ("cell", {"data": {"sizes": {"test": None}}}, "data[sizes][test]"),
        ("cell", {"plugins": {"loss x": None}}, "plugins[loss x]"),
        ("cell", {"identity": {}}, "data[licence]"),
        ("train", {"epochs": {}}, "epochs"),
        ("train", {"epochs": [{"epoch": 1, "weights": "w"}, 1]}, "epochs[1]"),
        ("train", {"epochs": [{"epoch": 1}]}, "epochs[0][weights]"),
        ("selection", {"epochs": [{"epoch": 1, "m": "2"}]}, "epochs[0][m]"),
        ("selection", {"epochs": [{"epoch": 1, "m": 2**63}]}, "epochs[0][m]"),
        ("metrics", {"metrics": {"m": {"value": 1, "low": float("inf"), "high": 1}}},
         "metrics[m][low]"),
        ("metrics", {"metrics": []}, "metrics"),
        ("comparison", {"mcnemar": {"b": 1, "c": 2, "p": "0"}}, "mcnemar[p]"),
        ("FAILED", {"error": ["why"]}, "error"),
        ("canary", {"weights": None}, "weights"),
    ],
)  # fmt: skip
def test_the_first_place_of_another_shape_is_named(name, change, place):
    content = {**copy.deepcopy(WHOLE[name][0]), **change}
    with pytest.raises(DamagedError) as error:
        require_shape(content, Path(f"run/{name}.json"))
    said = f"run/{name}.json is not what this package writes (see {place}): delete it to have it"
    assert str(error.value).startswith(said)


def test_the_largest_integers_of_a_frame_are_taken():
    for seed in (2**63 - 1, 1 - 2**63):
        require_shape({**CELL, "seed": seed}, Path("cell.json"))


def test_a_manifest_that_is_not_there_is_empty_and_one_of_cells_elsewhere_is_refused(tmp_path):
    assert read_manifest(tmp_path) == {}
    write_json(tmp_path / "manifest.json", {"cells": ["a", "../b"]})
    with pytest.raises(Exception, match=r"manifest\.json names '\.\./b', which is outside"):
        read_manifest(tmp_path)
    write_json(tmp_path / "manifest.json", {"cells": {"a": 1}})
    with pytest.raises(DamagedError, match=r"manifest\.json is not what .* \(see cells\)"):
        read_manifest(tmp_path)
    write_json(tmp_path / "manifest.json", {"cells": ["a", "b"], "name": "n"})
    assert read_manifest(tmp_path) == {"cells": ["a", "b"], "name": "n"}
