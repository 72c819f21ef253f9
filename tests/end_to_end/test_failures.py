"""What goes wrong is recorded, the rest goes on, and a mistake of the user's is one sentence."""

import dataclasses
import errno
import json
import os
from pathlib import Path

import pytest
from filelock import FileLock

from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.run.preflight import preflight
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.files import write_json

from .conftest import SMALL, CommandLine

PLAIN = Experiment(tasks=("arithmetic",), losses=("ce",))

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
def test_a_cell_that_fails_is_recorded_and_the_others_go_on(
    smmd_bench: CommandLine, tmp_path: Path
) -> None:
    for name, when, factor in (("raises", "True", "0.0"), ("diverges", "False", "float('nan')")):
        source = BROKEN.format(name=name, when=when, factor=factor)
        (tmp_path / f"{name}.py").write_text(source)
    out = tmp_path / "run"
    result = smmd_bench(
        "train-eval",
        "--task",
        "arithmetic",
        "--losses",
        "raises,diverges,ce",
        *SMALL,
        "--engine",
        "transformers",
        "--no-base",
        "--out",
        str(out),
        "--plugin",
        str(tmp_path / "raises.py"),
        "--plugin",
        str(tmp_path / "diverges.py"),
    )
    assert result.returncode == 1, result.stdout + result.stderr
    assert "this loss is broken on purpose" in result.stderr
    assert "became nan at step 1" in result.stderr
    assert "2 of 3 cells failed" in result.stderr
    failed = {}
    for file in out.glob("cells/*/cell.json"):
        failed[json.loads(file.read_text())["loss"]] = file.with_name("FAILED.json")
    assert "Traceback" in json.loads(failed["raises"].read_text())["traceback"]
    assert not failed["ce"].exists()
    assert failed["ce"].with_name("metrics.json").exists()


def test_a_folder_of_another_experiment_is_left_alone(
    smmd_bench: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run = RunDirectory(out)
    with run.locked():
        run.claim([PLAIN])
    before = (out / "manifest.json").read_bytes()
    result = smmd_bench("train-eval", "--task", "arithmetic", "--losses", "smmd", "--out", str(out))
    assert result.returncode == 2
    assert "belongs to another experiment" in result.stderr
    assert "--extend" in result.stderr
    assert (out / "manifest.json").read_bytes() == before
    with run.locked():
        run.claim([dataclasses.replace(PLAIN, losses=("ce", "smmd"))])
    assert len(json.loads((out / "manifest.json").read_text())["cells"]) == 3


def test_a_mistake_found_before_training_leaves_the_folder_to_other_settings(
    smmd_bench: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    sizes = ("--train-examples", "64", "--validation-examples", "8", "--test-examples", "8")
    asked = ("train-eval", "--task", "arithmetic", "--losses", "ce", *sizes, "--out", str(out))
    result = smmd_bench(*asked, "--set", "max_length=12")
    assert result.returncode == 2
    assert "--set max_length=" in result.stderr
    assert [file.name for file in out.iterdir()] == [".lock"]


def test_a_folder_that_is_no_run_is_left_alone(smmd_bench: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    result = smmd_bench(
        "train-eval", "--task", "arithmetic", "--losses", "ce", "--out", str(tmp_path)
    )
    assert result.returncode == 2
    assert "holds no run (thesis.tex)" in result.stderr


def test_two_processes_on_one_run(smmd_bench: CommandLine, tmp_path: Path) -> None:
    with FileLock(tmp_path / ".lock"):
        result = smmd_bench(
            "train-eval", "--task", "arithmetic", "--losses", "ce", "--out", str(tmp_path)
        )
    assert result.returncode == 2
    assert "Another process is working on" in result.stderr


def test_a_full_disk_is_one_sentence_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(tmp_path / "a.json", {"old": 1})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"The disk is full while writing .*a\.json"):
        write_json(tmp_path / "a.json", {"new": 2})
    monkeypatch.undo()
    assert json.loads((tmp_path / "a.json").read_text()) == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_tokenizer_without_numbers_is_found_before_anything_starts(tmp_path: Path) -> None:
    import shutil

    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from smmd_bench.models.cards import model_card

    folder = tmp_path / "wordy"
    shutil.copytree(model_card("builtin/tiny").folder, folder)
    words = Tokenizer(models.WordLevel({"<eos>": 0, "word": 1, "<unk>": 2}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>").save_pretrained(folder)
    experiment = dataclasses.replace(
        PLAIN,
        models=(str(folder),),
        recipe={"train_examples": 9, "validation_examples": 9, "test_examples": 9},
    )
    with pytest.raises(UserError) as error:
        preflight(experiment.cells, lambda *_: None)
    assert "wordy" in str(error.value)
    assert "\n" not in str(error.value)
