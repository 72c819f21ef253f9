"""Which checkpoints of a run are evaluated."""

import shutil
from pathlib import Path

import pytest

from smmd_bench.errors import UserError
from smmd_bench.regression.target import find_targets
from smmd_bench.results.files import read_json, write_json

from .conftest import Checkpoints, MakeRun


def test_the_base_once_and_every_selected_checkpoint(
    make_run: MakeRun, checkpoints: Checkpoints
) -> None:
    run = make_run()
    targets, notes = find_targets(run)
    assert [t.label for t in targets] == ["base", "ce seed 0", "smmd seed 0"]
    assert [t.kind for t in targets] == ["base", "lora", "lora"]
    assert [t.task for t in targets] == [None, "gsm8k", "gsm8k"]
    assert [t.epoch for t in targets] == [None, 4, 4]
    assert targets[0].path == targets[1].base == str(checkpoints.base)
    assert all(t.canary is not None for t in targets)
    assert not notes
    assert [t.loss for t in find_targets(run, ["base", "smmd"])[0]] == ["base", "smmd"]


def test_another_epoch_is_another_checkpoint(make_run: MakeRun) -> None:
    run = make_run()
    before = find_targets(run)[0][1]
    file = run / "cells" / str(before.cell) / "selection.json"
    write_json(file, {**(read_json(file) or {}), "best_epoch": 3})
    assert find_targets(run)[0][1].identity != before.identity


def test_what_has_no_weights_is_left_out_with_a_note(make_run: MakeRun) -> None:
    run = make_run()
    (ce, smmd) = find_targets(run)[0][1:]
    shutil.rmtree(Path(ce.path))
    (run / "cells" / str(smmd.cell) / "metrics.json").unlink()
    targets, notes = find_targets(run)
    assert [t.loss for t in targets] == ["base"]
    assert "no weights" in notes[0]
    assert "is pending" in notes[1]


def test_checkpoints_from_elsewhere(make_run: MakeRun, checkpoints: Checkpoints) -> None:
    run = make_run()
    folders = [checkpoints.adapters["smmd"], checkpoints.short]
    found = find_targets(run, ["base"], folders)[0][1:]
    assert [(t.loss, t.kind) for t in found] == [
        ("checkpoint smmd", "lora"), ("checkpoint short", "full"),
    ]  # fmt: skip
    assert [t.base for t in found] == [str(checkpoints.base), str(checkpoints.short)]
    assert found[0].identity != found[1].identity


def test_mistakes(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run()
    with pytest.raises(UserError, match="has the loss 'smd': did you mean smmd"):
        find_targets(run, ["smd"])
    with pytest.raises(UserError, match=r"has no \*\.safetensors"):
        find_targets(run, ["base"], [tmp_path])
    write_json(
        run / "manifest.json", {**(read_json(run / "manifest.json") or {}), "predictions": 1}
    )
    with pytest.raises(UserError, match="holds no checkpoint"):
        find_targets(run)
