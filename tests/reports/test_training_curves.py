import shutil
from pathlib import Path

from smmd_bench.reports.training_curves import TrainingCurves

import smmd_bench as sb
from tests.publishing.published import publish
from tests.runs import write_failure, write_run


def test_of_many_losses_those_that_differ_at_sight_are_drawn(tmp_path):
    losses = ("ce", "smmd", *(f"smmd[lambda={at}]" for at in range(4, 12)))
    write_run(tmp_path, losses=losses, seeds=(0,), n=5, steps=5, resamples=5)
    artefact = TrainingCurves().build(sb.read_run(tmp_path))
    first, *_ = artefact.figure.axes
    assert first.get_legend_handles_labels()[1] == [
        "CE", "SMMD", *(f"SMMD[lambda={at}]" for at in range(4, 10))
    ]  # fmt: skip
    assert "in the CSV: SMMD[lambda=10], SMMD[lambda=11] (builtin/tiny on" in artefact.caption
    assert set(artefact.data["loss"]) == {*losses}


def test_the_caption_names_seeds_steps_and_validation_examples(run_folder):
    caption = TrainingCurves().build(sb.read_run(run_folder)).caption
    assert "Seeds 0, 1; optimiser steps: 240. n = 100 validation examples." in caption


def test_steps_are_those_of_each_model_and_task_where_they_differ(tmp_path):
    for task, steps in (("gsm8k", 7), ("arithmetic", 1200)):
        write_run(tmp_path, tasks=(task,), losses=("ce",), seeds=(0,), n=9, steps=steps,
                  resamples=5)  # fmt: skip
    caption = TrainingCurves().build(sb.read_run(tmp_path)).caption
    assert "Seed 0; optimiser steps: " in caption
    assert "1,200 (builtin/tiny on arithmetic)" in caption
    assert "7 (builtin/tiny on gsm8k)" in caption


def test_a_run_that_has_not_decoded_yet_says_so_in_place(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    for file in folder.glob("cells/*/selection.json"):
        file.unlink()
    *_, validation = TrainingCurves().build(sb.read_run(folder)).figure.axes
    assert [text.get_text() for text in validation.texts] == ["no checkpoint is scored yet"]


def test_a_failed_cell_is_named(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    cell = next(c for c in sb.read_run(folder).cells.itertuples() if c.loss == "ntl")
    (folder / "cells" / cell.address / "metrics.json").unlink()
    failure = {"stage": "decode", "error": "no memory"}
    write_failure(folder / "cells" / cell.address, failure)
    caption = TrainingCurves().build(sb.read_run(folder)).caption
    assert "Without a result: builtin/tiny ntl seed 0 (failed in decode)." in caption


def test_publishing_again_gives_the_same_bytes(run_folder, tmp_path):
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))

    def published():
        files = publish(sb.read_run(folder), [TrainingCurves()])
        return [file.read_bytes() for file in files if file.name != "index.html"]

    assert published() == published()
