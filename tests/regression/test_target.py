"""Which checkpoints of a run are evaluated."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smmd_bench.errors import UserError
from smmd_bench.models.cards import model_card
from smmd_bench.regression.find_targets import find_targets
from smmd_bench.storage.files import read_json, write_json


def test_the_base_once_and_every_selected_checkpoint(make_run, checkpoints):
    run = make_run()
    targets, notes = find_targets(run)
    assert [t.label for t in targets] == ["base", "ce seed 0", "smmd seed 0"]
    assert [t.kind for t in targets] == ["base", "lora", "lora"]
    assert [t.task for t in targets] == [None, "gsm8k", "gsm8k"]
    assert [t.epoch for t in targets] == [None, 4, 4]
    assert targets[0].path == targets[1].base == str(checkpoints.base)
    rivals = [[name for name, _ in t.canary["rivals"]] for t in targets if t.canary is not None]
    assert rivals == [["ce seed 0", "smmd seed 0"], ["base", "smmd seed 0"], ["base", "ce seed 0"]]
    assert not notes
    assert [t.loss for t in find_targets(run, ["base", "smmd"])[0]] == ["base", "smmd"]


def test_another_epoch_is_another_checkpoint(make_run):
    run = make_run()
    before = find_targets(run)[0][1]
    update(run / "cells" / str(before.cell) / "selection.json", best_epoch=3)
    assert find_targets(run)[0][1].identity != before.identity
    assert replace(before, of="Qwen2.5-0.5B gsm8k").label == "Qwen2.5-0.5B gsm8k ce seed 0"


def test_what_has_no_weights_is_left_out_with_a_note(make_run):
    run = make_run()
    (ce, smmd) = find_targets(run)[0][1:]
    shutil.rmtree(Path(ce.path))
    (run / "cells" / str(smmd.cell) / "metrics.json").unlink()
    targets, notes = find_targets(run)
    assert [t.loss for t in targets] == ["base"]
    assert "no weights" in notes[0]
    assert "is pending" in notes[1]


def test_checkpoints_from_elsewhere(make_run, checkpoints):
    run = make_run()
    folders = [checkpoints.adapters["smmd"], checkpoints.short]
    found = find_targets(run, ["base"], folders)[0][1:]
    assert [(t.loss, t.kind) for t in found] == [
        ("checkpoint smmd", "lora"), ("checkpoint short", "full"),
    ]  # fmt: skip
    assert [t.base for t in found] == [str(checkpoints.base), str(checkpoints.short)]
    assert found[0].identity != found[1].identity
    assert found[0].model == str(checkpoints.base)
    assert found[1].model == str(checkpoints.short)  # not the run's: it has fewer positions
    assert found[1].identity == model_card(str(checkpoints.short)).identity


def test_a_whole_checkpoint_of_the_runs_shape_is_compared_with_its_base(
    make_run, checkpoints, tmp_path
):
    (tmp_path / "other").mkdir()
    folder = Path(shutil.copytree(checkpoints.base, tmp_path / "other" / "base"))
    again = tmp_path / "other" / ".." / "other" / "base"
    base, found = find_targets(make_run(), ["base"], [folder, again])[0]
    assert (found.model, found.loss) == (base.model, "checkpoint base")
    assert found.identity != base.identity  # or one would overwrite the other


def test_folders_with_one_last_name_are_told_apart(make_run, checkpoints, tmp_path):
    folders = [tmp_path / parent / "final" for parent in "ab"]
    for folder, loss in zip(folders, checkpoints.adapters.values(), strict=True):
        shutil.copytree(loss, folder)
    found = find_targets(make_run(), ["base"], folders)[0][1:]
    assert [t.label for t in found] == ["checkpoint a/final", "checkpoint b/final"]


def update(file: Path, **content: Any) -> None:
    """Write other values into a JSON file."""
    write_json(file, {**(read_json(file) or {}), **content})


def test_a_model_that_has_changed_is_refused(make_run, checkpoints):
    run, name = make_run(), str(checkpoints.base)
    update(run / "manifest.json", models={name: dict(model_card(name).identity)})
    assert len(find_targets(run)[0]) == 3
    update(run / "manifest.json", models={name: {"digest": "of other weights"}})
    with pytest.raises(UserError, match=r"has changed since .*: put the old files back"):
        find_targets(run, ["smmd"])


def test_a_model_of_the_hub_is_that_of_the_runs_commit(make_run, checkpoints, monkeypatch):
    run, name = make_run(), str(checkpoints.base)
    then = {"hub": "org/name", "commit": "abc"}
    update(run / "manifest.json", models={name: then})
    asked = []

    def hub(name):
        asked.append(name)
        return replace(model_card(str(checkpoints.base)), identity=then)

    monkeypatch.setattr("smmd_bench.results.run_model.model_card", hub)
    assert {t.model for t in find_targets(run)[0]} == {name}
    assert asked == ["org/name@abc"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"base_model_name_or_path": "org/other"}, "trained from org/other, which is not a model"),
        ("{", "adapter_config.json is not valid JSON .*: save or copy it again"),
    ],
)
def test_an_adapter_of_another_model_is_refused(content, message, make_run, checkpoints, tmp_path):
    folder = Path(shutil.copytree(checkpoints.adapters["ce"], tmp_path / "adapter"))
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "adapter_config.json").write_text(text)
    with pytest.raises(UserError, match=message):
        find_targets(make_run(), ["base"], [folder])


@pytest.mark.parametrize(
    ("losses", "folders", "message"),
    [
        (["smd"], [], r"has the loss 'smd': did you mean smmd\?"),
        (["base"], ["."], r"has no \*\.safetensors"),
        (["base"], ["nowhere"], "nowhere does not exist"),
        ([], [], "holds no checkpoint"),  # of predictions made elsewhere
    ],
)
def test_mistakes(make_run, tmp_path, losses, folders, message):
    run = make_run()
    if not losses:
        update(run / "manifest.json", predictions=1)
    with pytest.raises(UserError, match=message):
        find_targets(run, losses, [tmp_path / folder for folder in folders])
