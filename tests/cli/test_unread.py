"""An option that nothing selected reads is an error that names it, for every command."""

import pytest

from tests.conftest import DATA

from ..plugin_system.loss_file import LOSS
from .conftest import run_here

JOB = (
    "train-eval --losses ce --dry-run --train-examples 8 --validation-examples 2 --test-examples 2"
)
TEXT = f"{JOB} --task arithmetic"
DRAWN = "clock_time[source=synthetic]"
PARTS = """
name: parts
losses: [ce]
data_seed: 3
recipe: {RECIPE, train_examples: 8, validation_examples: 2, test_examples: 2}
parts:
  - {tasks: [arithmetic]}
  - {tasks: ['clock_time[source=synthetic]']}
"""


@pytest.mark.parametrize(
    ("words", "named"),
    [
        # data
        (f"{TEXT} --data-dir DATA", "--data-dir"),
        (f"{JOB} --task gsm8k --data-dir DATA", "--data-dir"),
        (f"{JOB} --task gsm8k[source=synthetic] --data-dir DATA", "--data-dir"),
        (f"{JOB} --task {DRAWN} --data-dir DATA", "--data-dir"),
        ("sample arithmetic --data-dir DATA", "--data-dir"),
        ("prepare clock_time[source=synthetic] --data-dir DATA -q", "--data-dir"),
        ("validate ce --data-dir DATA", "--data-dir"),
        ("score --task arithmetic --predictions F.jsonl --limit 1 --data-dir DATA", "--data-dir"),
        ("plan --power RUN --data-dir DATA", "--data-dir"),
        ("export RUN --out x --data-dir DATA", "--data-dir"),
        (f"{JOB} --task samsum[source=corpus] --data-seed 7 --data-dir DATA", "--data-seed 7"),
        ("sample svamp --split test --seed 7 --data-dir DATA", "--seed 7"),
        # recipe
        (f"{TEXT} --set min_pixels=4096", "min_pixels"),
        (f"{TEXT} --set max_pixels=4096", "max_pixels"),
        (f"{TEXT} --set lora_rank=8", "lora_rank"),
        (f"{TEXT} --set lora_alpha=16 --method full", "lora_alpha"),
        (f"{TEXT} --set lora_targets=q_proj", "lora_targets"),
        (f"{TEXT} --set probe_examples=0 --set probe_vectors=9", "probe_vectors"),
        ("run recipe: lora_dropout: 0.1 PARTS", "lora_dropout"),
        (f"{TEXT} --tune-trials 2", "--tune-trials"),
        (f"{TEXT} --tune lora_rank=4,8", "lora_rank"),
        (f"{TEXT} --no-transfers", "--no-transfers"),
        (f"{JOB} --task gsm8k --decoders mean", "--decoders mean"),
        # modes
        (f"{TEXT} --print-yaml", "--dry-run"),
        ("train-eval --task arithmetic --losses ce --print-yaml --out x", "--out"),
        ("train-eval --task arithmetic --losses ce --print-yaml --executor ray", "--executor"),
        ("run PLAIN --print-flags --track tensorboard", "--track"),
        ("plan --power RUN --out x", "--out"),
        ("plan PLAIN --metric exact_match", "--metric"),
        ("compare RUN RUN --losses ce,smmd", "--losses"),
        ("clean RUN --what logs --yes --dry-run", "--yes"),
        ("show RUN --run RUN", "--run"),
        ("validate ce --run RUN", "--run"),
        ("regress RUN --suite samsum --shots 3 --data-dir DATA", "--shots 3"),
        # plugins
        (f"{TEXT} --plugin idle.py", "idle.py"),
        ("run PLUGIN --dry-run", "idle.py"),
        ("sample arithmetic --plugin idle.py", "idle.py"),
        ("prepare arithmetic --plugin idle.py", "idle.py"),
        ("overhead --losses ce --plugin idle.py", "idle.py"),
    ],
)
def test_what_nothing_reads_is_refused(words, named, run_folder, tmp_path):
    ended = invoke(words, run_folder, tmp_path)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert named in " ".join(ended.stderr.split())
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "words",
    [
        f"{TEXT} --task gsm8k[source=corpus] --data-dir DATA --no-transfers --set max_length=4096",
        f"{TEXT} --task {DRAWN} --set min_pixels=4096 --data-seed 3 --model builtin/tiny-vl",
        f"{TEXT} --method lora --set lora_rank=8",
        f"{TEXT} --task gsm8k",  # whose data are named by the environment alone
        "run recipe: min_pixels: 4096 PARTS",  # read by one part
        "sample svamp --split test --data-dir DATA",
        "sample arithmetic --seed 7",
        f"{TEXT.replace('ce', 'ce,mine')} --plugin idle.py",
    ],
)
def test_what_one_of_several_reads_is_accepted(words, run_folder, tmp_path):
    ended = invoke(words, run_folder, tmp_path, SMMD_BENCH_DATA=str(DATA))
    assert ended.returncode == 0, ended.stderr


def invoke(words, run_folder, folder, **environment):
    """Run the command in a folder with the files that the words name."""
    recipe = words.partition("recipe: ")[2].partition(" PARTS")[0]
    words = words.replace(f"recipe: {recipe} PARTS", "parts.yaml --dry-run").split()
    (folder / "parts.yaml").write_text(PARTS.replace("RECIPE", recipe))
    (folder / "plain.yaml").write_text("{tasks: [arithmetic], losses: [ce]}")
    (folder / "plugin.yaml").write_text("{tasks: [arithmetic], losses: [ce], plugins: [idle.py]}")
    (folder / "idle.py").write_text(LOSS)
    (folder / "F.jsonl").write_text('{"completion": "4"}\n')
    places = {"DATA": DATA, "RUN": run_folder, "PLAIN": "plain.yaml"}
    places["PLUGIN"] = "plugin.yaml"
    return run_here(*(places.get(word, word) for word in words), cwd=folder, **environment)
