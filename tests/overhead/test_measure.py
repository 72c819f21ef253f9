"""Measurements with real processes and the real Trainer, and the arithmetic of the table."""

import copy
import os
import shutil
import signal
import statistics

import numpy as np
import pandas as pd
import pytest
import torch

import smmd_bench as sb
from smmd_bench.overhead import measure as module
from smmd_bench.overhead import worker
from smmd_bench.overhead.measure import COLUMNS, measure, overhead_frame, read_rows
from smmd_bench.overhead.settings import STOCK
from smmd_bench.overhead.worker import train_row
from smmd_bench.run.process import WorkerProcess
from smmd_bench.storage.files import write_json
from smmd_bench.training.trainer import ObjectiveTrainer
from tests.conftest import expect_user_error, silent
from tests.in_process import call
from tests.overhead.conftest import tiny_settings

ROWS = (STOCK, "ce", "smmd")
TWO = {"ce": 1, "smmd": 1}


@pytest.fixture(scope="session")
def measured_folder(tmp_path_factory):
    """Stock, ce and smmd, one repeat. Only to be read."""
    folder = tmp_path_factory.mktemp("overhead") / "tiny"
    measure(tiny_settings(losses=TWO), folder, silent)
    return folder


@pytest.mark.long
def test_a_measurement_is_a_run_without_cells_and_has_every_step(measured_folder):
    run = sb.read_run(measured_folder)
    assert run.manifest["overhead"]["losses"] == TWO
    assert run.cells.empty

    rows = read_rows(measured_folder)
    assert set(rows["row"]) == {*ROWS}
    assert rows["error"].isna().all()
    assert (rows["peak_bytes"] > 10**8).all()  # python and torch alone are that

    seconds = np.array(rows["steps"].tolist())
    assert seconds.shape == (3, 4, 2)  # wall and CPU of each step
    assert (seconds > 0).all()

    # What a step computes is the same in every repeat; SMMD adds to cross-entropy.
    counts = rows.groupby("row")["operations"].agg(["min", "max"])
    assert (counts["min"] == counts["max"]).all()
    assert counts.loc["ce", "max"] < counts.loc["smmd", "max"] < 600

    assert not measure(tiny_settings(losses=TWO), measured_folder, silent)
    with expect_user_error(r"belongs to another .* \(overhead_tiny_cpu_smmd_"):
        measure(tiny_settings(losses=TWO, length=8), measured_folder, silent)


class Deadly(WorkerProcess):
    """A process that is killed in its training where it trains ce."""

    def hear(self):
        event = super().hear()
        if event is not None and event["event"] == "progress" and "ce" in self.log.name:
            os.kill(self.process.pid, signal.SIGKILL)
        return event


@pytest.mark.long
def test_a_killed_row_is_reported_and_its_repeat_alone_is_missing(
    measured_folder, tmp_path, monkeypatch
):
    settings = tiny_settings(losses=TWO, repeats=2)
    folder = shutil.copytree(measured_folder, tmp_path / "run")
    manifest = sb.read_run(folder).manifest
    write_json(folder / "manifest.json", {**manifest, "overhead": vars(settings)})
    monkeypatch.setattr(module, "WorkerProcess", Deadly)
    monkeypatch.setattr(module, "_WORKER", "tests.overhead.row_stub")
    of_first_repeat = {file: file.read_bytes() for file in (folder / "rows").iterdir()}

    for _ in range(2):
        assert measure(settings, folder, silent)
        failed = read_rows(folder).dropna(subset="error")
        assert failed[["row", "repeat"]].to_numpy().tolist() == [["ce", 1]]
        assert failed["error"].iloc[0].startswith("the process was killed by SIGKILL")
    assert all(
        file.read_bytes() == content for file, content in of_first_repeat.items()
    )


@pytest.mark.engine
@pytest.mark.parametrize("row", [STOCK, "ce", "smmd"])
def test_every_step_is_an_optimiser_step_of_the_real_trainer(row, monkeypatch):
    logits = []
    models = []
    build = worker.build_model

    def watched(*arguments):
        models.append(model := build(*arguments))
        model.untrained = copy.deepcopy(model.state_dict())
        model.get_output_embeddings().register_forward_hook(
            lambda _, inputs, out: logits.append(getattr(out, "shape", None))
        )
        return model

    monkeypatch.setattr(worker, "build_model", watched)
    steps = []
    trainer, result = train_row(
        tiny_settings(), row, 0, lambda *step: steps.append(step)
    )

    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert len(result["steps"]) == 4
    assert result["operations"] > 200

    trained = trainer.model.state_dict()
    untrained = models[0].untrained
    changed = {
        name for name in untrained if not torch.equal(untrained[name], trained[name])
    }
    assert len(changed) >= 7  # lora_B of all seven linear maps
    assert all("lora_" in name for name in changed)

    full = (2, 16, 512)  # batch, length, vocabulary
    assert isinstance(trainer, ObjectiveTrainer) == (row != STOCK)
    assert (full in logits) == (row == STOCK)  # ours never builds the full logits


@pytest.mark.engine
def test_cross_entropy_here_is_that_of_the_stock_trainer():
    losses = []
    for row in (STOCK, "ce"):
        trainer, _ = train_row(tiny_settings(), row, 0, silent)
        losses.append([line["loss"] for line in trainer.state.log_history[:4]])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)

    trainer, _ = train_row(tiny_settings(dtype="bfloat16"), "smmd", 0, silent)
    assert trainer.args.bf16


# seconds by repeat; the first is dropped
CE = {0: [9.0, 2.0, 4.0, 3.0], 1: [9.0, 3.0, 5.0, 2.0]}
SMMD = {0: [1.0, 2.2, 6.0, 3.3], 1: [1.0, 3.0, 6.0, 3.6]}


def planted():
    rows = []
    for repeat in (0, 1):
        rows.append((STOCK, repeat, None, None, None, None, "killed"))
        for row, seconds, first_peak in (("ce", CE, 2e9), ("smmd", SMMD, 3e9)):
            steps = [(wall, wall / 2) for wall in seconds[repeat]]
            peak = first_peak + repeat * 2e9
            rows.append((row, repeat, "cpu", peak, 300 + repeat, steps, None))

    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    summary = overhead_frame(frame, tiny_settings(losses=TWO))
    return summary.set_index("row")


def test_times_are_of_the_median_step_without_the_dropped_ones():
    line = planted().loc["ce"]
    medians = [1000 * statistics.median(CE[repeat][1:]) for repeat in (0, 1)]
    assert line["wall_ms"] == pytest.approx(statistics.fmean(medians))
    assert line["cpu_ms"] == pytest.approx(line["wall_ms"] / 2)
    assert line["repeats"] == 2
    assert line["memory_gb"] == 3.0
    assert line["operations"] == 300.5


def test_ratios_are_medians_over_repeats_with_the_smallest_and_the_largest():
    line = planted().loc["smmd"]
    assert line["wall_to_ce"] == line["cpu_to_ce"] == pytest.approx((1.1 + 1.2) / 2)
    assert (line["wall_to_ce_low"], line["wall_to_ce_high"]) == pytest.approx(
        (1.1, 1.2)
    )

    memory = [line[f"memory_to_ce{end}"] for end in ("", "_low", "_high")]
    assert memory == pytest.approx([1.375, 1.25, 1.5])
    assert pd.isna(line["wall_to_stock"])

    failed = planted().loc[STOCK]
    assert failed["error"] == "repeat 1: killed; repeat 2: killed"
    assert failed["repeats"] == 0
    assert pd.isna(failed["wall_ms"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--geometry none/config.json", "Unknown geometry.*path of a config.json"),
        ("--geometry config.json", "--numeric-tokens, such as 10"),
        ("--losses ,", "--losses is empty: give at least one LOSS"),
        ("--steps 3", "--steps must be greater than or equal to 4, not 3"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(words, sentence, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "qwen2", "vocab_size": 512}')
    with pytest.raises(Exception, match=sentence):
        call(f"overhead {words}", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json"}


@pytest.mark.slow
def test_the_command_measures_once_and_prints_the_table_with_what_failed(tmp_path):
    words = (
        "overhead --geometry tiny --losses smmd,ntil --out out --steps 4 --repeats 1 --length 16 "
        "--numeric-tokens 5"
    )
    out = call(words, tmp_path)

    assert out.status == 1, out.output
    assert "Training overhead: tiny, cpu" in out.stdout
    assert "Failed: ntil, repeat 1: the process ended with status 1" in out.stderr

    table = pd.read_csv(tmp_path / "out/reports/tables/overhead_table.csv")
    assert table["Loss"].tolist() == ["CE, stock Trainer", "CE", "SMMD", "NTIL"]
