"""A cell that several processes train, killed in the middle: what it leaves is that of one run."""

import contextlib
import time

import psutil
import pytest
from safetensors.torch import load_file

import smmd_bench as sb
from smmd_bench.models.cards import model_card
from smmd_bench.storage.files import read_json

from .conftest import cells

pytestmark = [pytest.mark.engine, pytest.mark.slow]
ASKED = (
    "train-eval --task arithmetic --losses smmd --train-examples 500 --epochs 3 --no-base "
    "--validation-examples 4 --test-examples 8 --set probe_examples=2 --engine transformers "
    "--executor local[gpus_per_cell=2,threads=1]"
)
BUILTIN = model_card("builtin/tiny").folder / "model.safetensors"


@pytest.mark.parametrize(
    ("strategy", "method"), [("ddp", "full"), ("fsdp2", "full"), ("fsdp2", "lora")]
)
def test_a_run_in_two_processes_that_is_killed_goes_on_bit_for_bit(
    smmd_bench, finish, tmp_path, strategy, method
):
    undisturbed, killed, alone = (
        tmp_path / name for name in ("whole", "killed", "alone")
    )
    words = (
        ASKED.replace("threads=1", f"threads=1,strategy={strategy}")
        + f" --set method={method}"
    )
    finish(f"{words} --out", undisturbed)
    workers = smmd_bench.kill_when(
        lambda: [*killed.glob("train/.*.part/epochs/1/canary.json")],
        f"{words} --out",
        killed,
    )
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert alive == []

    (state, *_) = killed.glob("train/.*.part/training/checkpoint-*/trainer_state.json")
    seconds = read_json(state)["log_history"][0]["seconds"]
    finish(f"{words} --out", killed)
    # the first epoch stays
    assert sb.read_run(killed).train_log["seconds"].iloc[0] == seconds

    finish(
        f"{ASKED} --set method={method} --out".replace("gpus_per_cell=2,", ""), alone
    )
    cell, again, other = (
        cells(run)["tiny", "smmd"] for run in (undisturbed, killed, alone)
    )
    assert again.weights == cell.weights
    made_with = cell.receipt["made_with"]
    assert made_with["processes"] == "2"
    assert made_with.get("strategy", "ddp") == strategy
    names = {path.name for path in (undisturbed / "logs").glob("train-*.log")}
    assert names == {f"train-{cell.address}.log", f"train-{cell.address}-rank1.log"}
    log, of_one = sb.read_run(undisturbed).train_log, sb.read_run(alone).train_log
    assert log["step"].tolist() == [*range(1, len(log) + 1)]
    assert log["tokens"].tolist() == of_one["tokens"].tolist()
    expected = pytest.approx(of_one["cross_entropy"].to_numpy(), rel=0.02)
    assert log["cross_entropy"].to_numpy() == expected
    assert_learned_alike(cell.checkpoint, other.checkpoint)


def assert_learned_alike(folder, other):
    """The saved weights differ by far less than training changed them."""
    name = next(folder.glob("*.safetensors")).name
    weights = load_file(folder / name)
    other_weights = load_file(other / name)
    initial = load_file(BUILTIN) if name == "model.safetensors" else {}
    assert weights.keys() == other_weights.keys()
    # which begins at zero
    trained = [key for key in weights if key in initial or "lora_B" in key]
    assert trained

    change = distance = 0.0
    for key in trained:
        change += float((other_weights[key] - initial.get(key, 0)).abs().sum())
        distance += float((other_weights[key] - weights[key]).abs().sum())
    assert distance < 0.05 * change


def test_a_process_that_dies_ends_the_training_in_a_sentence(smmd_bench, tmp_path):
    process, victim = smmd_bench.start(f"{ASKED} --out", tmp_path / "run"), None
    while victim is None:
        assert process.poll() is None, process.stdout.read()
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended since
                victim = child if "-rank1.json" in " ".join(child.cmdline()) else victim
        time.sleep(0.2)
    time.sleep(8)
    victim.kill()
    output, _ = process.communicate(timeout=120)

    assert process.returncode == 1
    assert (
        "process 1 of the training failed: the process was killed by SIGKILL" in output
    )
