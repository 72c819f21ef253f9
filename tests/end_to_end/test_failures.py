"""What goes wrong is recorded, the rest goes on, and a mistake of the user's leaves no trace."""

import contextlib
import dataclasses
import errno
import os
import shutil

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import ExperimentFile
from smmd_bench.models.cards import model_card
from smmd_bench.run.pipeline import run_file
from smmd_bench.run.preflight import preflight
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import read_json, write_json

from ..conftest import read_files
from .conftest import SMALL, cells

SIZES = {"train_examples": 64, "validation_examples": 8, "test_examples": 8}
PLAIN = Experiment(tasks=("arithmetic",), losses=("ce",), recipe=SIZES)
BROKEN = '''
from dataclasses import dataclass
from typing import ClassVar
from smmd_bench.contracts import NumericLoss

class _Term(NumericLoss):
    def forward(self, numeric):
        if {when}:
            raise RuntimeError("this loss is broken on purpose")
        return numeric.logits.sum() * {factor}, numeric.target.numel()

@dataclass(frozen=True)
class Broken:
    """A loss that fails."""
    name: ClassVar[str] = "{name}"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: float = 1.0
    def bind(self, vocabulary):
        return _Term(self, vocabulary)
'''


@pytest.mark.engine
@pytest.mark.slow
def test_a_cell_that_fails_is_recorded_and_the_others_go_on(smmd_bench, tmp_path):
    plugins = []
    for name, when, factor in (("raises", "True", "0.0"), ("diverges", "False", "float('nan')")):
        plugins += ["--plugin", tmp_path / f"{name}.py"]
        plugins[-1].write_text(BROKEN.format(name=name, when=when, factor=factor))
    words = f"train-eval --task arithmetic --losses raises,diverges,ce {SMALL} --no-base"
    out = tmp_path / "run"
    result = smmd_bench(f"{words} --engine transformers --out", out, *plugins)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "this loss is broken on purpose" in result.stderr
    assert "became nan at step 1" in result.stderr
    assert "2 of 3 cells failed" in result.stderr
    stored = cells(out)
    assert "Traceback" in stored["tiny", "raises"].failure["traceback"]
    assert stored["tiny", "diverges"].failure["stage"] == "train"
    assert stored["tiny", "ce"].failure == {}
    assert stored["tiny", "ce"].metrics is not None


def refused(experiment, out):
    """The sentence that a run is refused with; the folder holds then what it held before."""

    before, silent = read_files(out), contextlib.nullcontext(lambda *_: None)
    with pytest.raises(UserError) as error:
        run_file(ExperimentFile(None, (experiment,)), out, lambda: silent)
    assert "\n" not in str(error.value)
    assert read_files(out) == before
    return str(error.value)


def test_a_folder_of_another_experiment_is_left_alone(tmp_path):
    run = RunDirectory(tmp_path / "run")
    with run.locked():
        run.claim([PLAIN])
    said = refused(dataclasses.replace(PLAIN, losses=("smmd",)), run.path)
    assert "belongs to another experiment" in said
    assert "--extend" in said
    with run.locked():
        run.claim([dataclasses.replace(PLAIN, losses=("ce", "smmd"))])
    assert len(run.manifest["cells"]) == 3


def test_a_mistake_found_before_training_leaves_the_folder_to_other_settings(tmp_path):
    short = dataclasses.replace(PLAIN, recipe={**SIZES, "max_length": 12})
    assert "--set max_length=" in refused(short, tmp_path)


def test_a_folder_that_is_no_run_or_is_being_worked_on_is_left_alone(tmp_path):
    with RunDirectory(tmp_path / "run").locked():
        assert "Another process is working on" in refused(PLAIN, tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    assert "holds no run (thesis.tex)" in refused(PLAIN, tmp_path / "mine")


def test_a_full_disk_is_one_sentence_and_leaves_the_old_file(tmp_path, monkeypatch):
    write_json(tmp_path / "a.json", {"old": 1})

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"The disk is full while writing .*a\.json"):
        write_json(tmp_path / "a.json", {"new": 2})
    monkeypatch.undo()
    assert read_json(tmp_path / "a.json") == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_tokenizer_without_numbers_is_found_before_anything_starts(tmp_path):
    folder = tmp_path / "wordy"
    shutil.copytree(model_card("builtin/tiny").folder, folder)
    words = Tokenizer(models.WordLevel({"<eos>": 0, "word": 1, "<unk>": 2}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>").save_pretrained(folder)
    experiment = dataclasses.replace(PLAIN, models=(str(folder),))
    with pytest.raises(UserError, match="wordy") as error:
        preflight(experiment.cells, lambda *_: None)
    assert "\n" not in str(error.value)
