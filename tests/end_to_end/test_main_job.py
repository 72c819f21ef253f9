"""`train-eval` on the built-in checkpoint: finished, failed, killed and resumed, done again."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import smmd_bench as sb

from .conftest import SMALL, cells, inodes, requests

pytestmark = pytest.mark.engine
JOB = f"train-eval --task arithmetic --losses ce,smmd {SMALL} --out"


@pytest.fixture(scope="module")
def finished(smmd_bench, tmp_path_factory):
    """The run, in processes of its own, and what it printed."""
    out = tmp_path_factory.mktemp("finished") / "run"
    return out, smmd_bench.finish(JOB, out).stdout


def test_it_prints_the_recipe_its_progress_the_verdict_and_where_everything_is(
    finished,
):
    out, text = finished
    assert "full fine-tuning, 2 epochs" in text.splitlines()[1]
    assert "train 256, validation 60, test 80" in text.splitlines()[1]

    for what in (
        "train ce seed 0",
        "train smmd seed 0",
        "start engine",
        "test base",
        "probe ce",
    ):
        assert f"\n{what}" in text
    assert all(
        word in text
        for word in ("Did the loss help?", "SMMD", "Acc (%)", "MAE", "Verdict")
    )
    assert text.rstrip().endswith(str(out / "reports/index.html"))

    served = [[cell["loss"] for cell in request] for request in requests(out)]
    assert ["base"] in served
    # each by one engine
    assert sorted(itertools.chain(*served)) == ["base", "ce", "smmd"]


def test_every_stage_leaves_its_files(finished):
    run, _ = finished
    for (_, loss), cell in cells(run).items():
        decoded = {"completions.parquet", "probes.parquet", "decode.json"}
        assert names(cell.decoded) == decoded
        assert names(cell.measured) == {"scores.parquet", "metrics.json"}
        trained = {"receipt.json", "canaries.json"}
        if loss != "base":
            trained |= {"log.parquet", "epochs"}
        assert names(cell.trained) == trained

    assert not list(run.rglob("*.part"))
    assert not (run / "failed").exists()


def names(folder):
    return {file.name for file in folder.iterdir()}


def test_the_epoch_that_validates_best_is_kept(finished):
    for (_, loss), cell in cells(finished[0]).items():
        if loss != "base":
            scores = [line["exact_match"] for line in cell.selection["epochs"]]
            best = 1 + scores.index(max(scores))
            assert names(cell.checkpoint.parent) == {str(best)}


def test_the_frames_of_the_run(finished):
    run = sb.read_run(finished[0])
    assert list(run.cells.loss) == ["base", "ce", "smmd"]
    assert set(run.metrics.metric) >= {
        "exact_match",
        "mean_absolute_error",
        "r_squared",
    }
    assert len(run.completions) == 3 * 80
    log = run.train_log
    steps = 2 * 256 // run.cells.recipe.iloc[0]["batch_size"]
    assert log.groupby("loss", observed=True).step.max().to_dict() == {
        "ce": steps,
        "smmd": steps,
    }

    # cross-entropy plus λ times the auxiliary
    for loss, weight in (("ce", 0), ("smmd", 3)):
        logged = log[log.loss == loss]
        auxiliary = weight * logged.auxiliary if weight else 0
        np.testing.assert_allclose(
            logged.loss_value, logged.cross_entropy + auxiliary, rtol=1e-4
        )


def test_the_same_command_again_has_nothing_to_do(smmd_bench, finished):
    old_inodes = inodes(finished[0], "[!r]*/*/*")  # reports may be made again
    assert "Nothing to do" in smmd_bench.finish(JOB, finished[0]).stdout
    assert inodes(finished[0], "[!r]*/*/*") == old_inodes


@pytest.mark.slow
def test_killed_at_any_stage_it_finishes_the_rest_with_the_same_results(
    smmd_bench, finished, tmp_path
):
    undisturbed, out = finished[0], tmp_path / "run"
    ce, smmd = (cells(undisturbed)["tiny", loss] for loss in ("ce", "smmd"))
    partial = f"train/.{ce.trained.name}.part"

    for place in (
        f"{partial}/epochs/1",
        f"train/.{smmd.trained.name}.part/training",
        f"select/{ce.selected.name}",
        f"decode/.{smmd.decoded.name}.part/completions.parquet",
    ):
        smmd_bench.kill_when((out / place).exists, JOB, out)

    trained = inodes(out, "train/*/receipt.json")
    assert len(trained) == 3
    assert "train ce" not in smmd_bench.finish(JOB, out).stdout
    assert inodes(out, "train/*/receipt.json") == trained
    patterns = (
        "select/*/*",
        "measure/*/*",
        "compare/*/*",
        "train/*/epochs/*/model.safetensors",
    )
    files = [
        file.relative_to(undisturbed)
        for pattern in patterns
        for file in undisturbed.glob(pattern)
    ]
    assert len(files) == 2 + 2 * 3 + 2 + 2
    for file in files:
        assert (out / file).read_bytes() == (undisturbed / file).read_bytes(), file
    assert not list(out.rglob("*.part"))


SOURCE = (Path(__file__).parents[2] / "examples/own_loss.py").read_text(
    encoding="utf-8"
)
BROKEN = {"raises": "1 / 0", "diverges": "loss * float('nan')"}


@pytest.mark.slow
def test_a_cell_that_fails_is_recorded_and_the_others_go_on(smmd_bench, tmp_path):
    plugins = []
    for name, result in BROKEN.items():
        plugins += ["--plugin", tmp_path / f"{name}.py"]
        broken = SOURCE.replace('"huber"', f'"{name}"').replace(
            "return loss,", f"return {result},"
        )
        plugins[-1].write_text(broken)

    words = (
        f"train-eval --task arithmetic --losses raises,diverges,ce {SMALL} --no-base"
    )
    out = tmp_path / "run"
    result = smmd_bench(f"{words} --engine transformers --out", out, *plugins)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "division by zero" in result.stderr
    assert "became nan at step 1" in result.stderr
    assert "2 of 3 cells failed" in result.stderr
    stored = cells(out)
    assert "Traceback" in stored["tiny", "raises"].failure["traceback"]
    assert stored["tiny", "diverges"].failure["stage"] == "train"
    assert stored["tiny", "ce"].failure == {}
    assert stored["tiny", "ce"].metrics is not None
