"""`train-eval` on the built-in checkpoint: finished, killed and resumed, done again."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import smmd_bench as sb

from .conftest import SMALL, CommandLine

JOB = ("train-eval", "--task", "arithmetic", "--losses", "ce,smmd", *SMALL)
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def finished(smmd_bench: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "run"
    result = smmd_bench(*JOB, "--out", str(out))
    assert result.returncode == 0, result.stdout + result.stderr
    (out / "stdout.txt").write_text(result.stdout)
    return out


def cells(run: Path) -> dict[str, Path]:
    """Cell folders by loss."""
    found = {}
    for file in (run / "cells").glob("*/cell.json"):
        found[json.loads(file.read_text())["loss"]] = file.parent
    return found


def test_it_prints_the_recipe_the_table_and_where_everything_is(finished: Path) -> None:
    text = (finished / "stdout.txt").read_text()
    assert "full fine-tuning, 512 examples x 2 epochs" in text.splitlines()[0]
    assert "Arithmetic calculation results" in text
    for row in ("untuned", "CE", "SMMD"):
        assert f"\n{row} " in text
    assert text.rstrip().endswith(str(finished / "reports" / "index.html"))
    assert max(map(len, text.splitlines()[1:-3])) <= 100


def test_it_reports_progress_in_plain_lines(finished: Path) -> None:
    text = (finished / "stdout.txt").read_text()
    for what in ("train ce seed 0", "train smmd seed 0", "start engine", "test base", "probe ce"):
        assert f"\n{what}" in text


def test_one_engine_start_serves_all_checkpoints(finished: Path) -> None:
    assert len(list((finished / "logs").glob("decode-*.log"))) == 1


def test_every_cell_leaves_its_files(finished: Path) -> None:
    everywhere = {
        "cell.json",
        "decode.json",
        "completions.parquet",
        "probes.parquet",
        "scores.parquet",
        "metrics.json",
        "train.json",
    }
    tuned = {
        "train_log.parquet",
        "validation.parquet",
        "selection.json",
        "checkpoint",
        "comparison.json",
    }
    for loss, folder in cells(finished).items():
        wanted = everywhere if loss == "base" else everywhere | tuned
        assert {p.name for p in folder.iterdir()} == wanted


def test_the_frames_of_the_run(finished: Path) -> None:
    run = sb.read_run(finished)
    assert list(run.cells.loss) == ["base", "ce", "smmd"]
    assert set(run.metrics.metric) >= {"exact_match", "mean_absolute_error", "r_squared"}
    assert len(run.completions) == 3 * 80
    log = run.train_log
    steps = 2 * 512 // run.cells.recipe.iloc[0]["batch_size"]
    assert log.groupby("loss", observed=True).step.max().to_dict() == {"ce": steps, "smmd": steps}
    assert log.loss_value.notna().all()


def test_the_logged_loss_is_cross_entropy_plus_lambda_times_the_auxiliary(finished: Path) -> None:
    log = pd.read_parquet(cells(finished)["smmd"] / "train_log.parquet")
    np.testing.assert_allclose(log.loss, log.cross_entropy + 3 * log.auxiliary, rtol=1e-4)
    plain = pd.read_parquet(cells(finished)["ce"] / "train_log.parquet")
    np.testing.assert_allclose(plain.loss, plain.cross_entropy, rtol=1e-4)


def test_the_best_epoch_is_the_one_that_validates_best(finished: Path) -> None:
    for loss, folder in cells(finished).items():
        if loss != "base":
            selection = json.loads((folder / "selection.json").read_text())
            scores = [line["exact_match"] for line in selection["epochs"]]
            assert selection["best_epoch"] == 1 + scores.index(max(scores))


def test_the_same_command_again_has_nothing_to_do(smmd_bench: CommandLine, finished: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in finished.rglob("*") if p.is_file()}
    result = smmd_bench(*JOB, "--out", str(finished))
    assert result.returncode == 0
    assert "Nothing to do" in result.stdout
    assert "Arithmetic calculation results" in result.stdout
    after = {p: p.stat().st_mtime_ns for p in finished.rglob("*") if p.is_file()}
    assert {p for p in after if after[p] != before.get(p)} <= {finished / ".lock"}


@pytest.mark.slow
def test_killed_at_any_stage_it_finishes_the_rest_with_the_same_results(
    smmd_bench: CommandLine, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    job = (*JOB, "--out", str(out))

    def appears(pattern: str) -> Callable[[], bool]:
        return lambda: any(out.glob(f"cells/{pattern}"))

    names = {loss: folder.name for loss, folder in cells(finished).items()}
    for pattern in (
        f"{names['ce']}/epochs/1",
        f"{names['smmd']}/training",
        f"{names['ce']}/selection.json",
        f"{names['smmd']}/completions.parquet",
    ):
        smmd_bench.kill_when(appears(pattern), *job)
    trained = (out / "cells" / names["ce"] / "train.json").stat().st_mtime_ns
    result = smmd_bench(*job)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "train ce" not in result.stdout
    assert (out / "cells" / names["ce"] / "train.json").stat().st_mtime_ns == trained
    for loss, folder in cells(finished).items():
        again = out / "cells" / folder.name
        for name in ("metrics.json", "selection.json", "comparison.json"):
            if (folder / name).exists():
                assert (again / name).read_text() == (folder / name).read_text(), (loss, name)
        weights = "checkpoint/model.safetensors"
        if loss != "base":
            assert (again / weights).read_bytes() == (folder / weights).read_bytes()
    assert not list(out.rglob("*.part"))


def test_the_reports_are_made_again_without_torch(smmd_bench: CommandLine, finished: Path) -> None:
    import subprocess
    import sys

    page = (finished / "reports" / "index.html").read_bytes()
    code = (
        "import sys; sys.modules['torch'] = None;"  # as where it is not installed
        "from pathlib import Path; from smmd_bench.publishing.write_reports import write_reports;"
        f"write_reports(Path({str(finished)!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert b"torch is not installed" in (finished / "reports" / "index.html").read_bytes()
    result = smmd_bench("report", str(finished))
    assert result.returncode == 0
    assert "files in" in result.stdout
    assert (finished / "reports" / "index.html").read_bytes() == page
