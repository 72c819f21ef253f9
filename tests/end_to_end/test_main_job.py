"""`train-eval` on the built-in checkpoint: finished, killed and resumed, done again."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import smmd_bench as sb

from .conftest import SMALL, cells, content

pytestmark = pytest.mark.engine
JOB = f"train-eval --task arithmetic --losses ce,smmd {SMALL} --out"


@pytest.fixture(scope="module")
def finished(smmd_bench, tmp_path_factory):
    """The run, in processes of its own, and what it printed."""
    out = tmp_path_factory.mktemp("finished") / "run"
    return out, smmd_bench.finish(JOB, out).stdout


def test_it_prints_the_recipe_its_progress_the_verdict_and_where_everything_is(finished):
    out, text = finished
    assert "full fine-tuning, 512 examples x 2 epochs" in text.splitlines()[1]
    for what in ("train ce seed 0", "train smmd seed 0", "start engine", "test base", "probe ce"):
        assert f"\n{what}" in text
    assert "Did the loss help?" in text
    rows = ("\nSMMD  Acc (%)  ", "\nSMMD  MAE  ")
    assert all(word in text for word in (*rows, "Verdict", "Δ to CE [95 %]"))
    assert text.rstrip().endswith(str(out / "reports" / "index.html"))
    assert max(map(len, text.splitlines()[2:-3])) <= 100
    requests = [json.loads(file.read_text()) for file in (out / "logs").glob("decode-*.json")]
    served = sorted(cell["loss"] for request in requests for cell in request["cells"])
    assert served == ["base", "ce", "smmd"]  # each by one engine
    assert ["base"] in [[cell["loss"] for cell in request["cells"]] for request in requests]


def test_every_cell_leaves_its_files(finished):
    base = {"cell.json", "decode.json", "completions.parquet", "probes.parquet", "scores.parquet",
            "metrics.json", "train.json"}  # fmt: skip
    tuned = {"train_log.parquet", "validation.parquet", "selection.json", "checkpoint",
             "comparison.json"}  # fmt: skip
    for (_, loss), folder in cells(finished[0]).items():
        wanted = base if loss == "base" else base | tuned
        assert {p.name for p in folder.iterdir()} == wanted
        if loss != "base":  # the best epoch is the one that validates best
            selection = content(folder, "selection.json")
            scores = [line["exact_match"] for line in selection["epochs"]]
            assert selection["best_epoch"] == 1 + scores.index(max(scores))


def test_the_frames_of_the_run(finished):
    run = sb.read_run(finished[0])
    assert list(run.cells.loss) == ["base", "ce", "smmd"]
    assert set(run.metrics.metric) >= {"exact_match", "mean_absolute_error", "r_squared"}
    assert len(run.completions) == 3 * 80
    log = run.train_log
    steps = 2 * 512 // run.cells.recipe.iloc[0]["batch_size"]
    assert log.groupby("loss", observed=True).step.max().to_dict() == {"ce": steps, "smmd": steps}
    assert log.loss_value.notna().all()


@pytest.mark.parametrize(("loss", "weight"), [("ce", 0), ("smmd", 3)])
def test_the_logged_loss_is_cross_entropy_plus_lambda_times_the_auxiliary(finished, loss, weight):
    log = pd.read_parquet(cells(finished[0])["tiny", loss] / "train_log.parquet")
    auxiliary = weight * log.auxiliary if weight else 0
    np.testing.assert_allclose(log.loss, log.cross_entropy + auxiliary, rtol=1e-4)


def test_the_same_command_again_has_nothing_to_do(smmd_bench, finished):
    out, _ = finished
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    text = smmd_bench.finish(JOB, out).stdout
    assert "Nothing to do" in text
    assert "Did the loss help?" in text
    after = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    changed = {p for p in after if after[p] != before.get(p) and out / "reports" not in p.parents}
    assert changed <= {out / ".lock"}


@pytest.mark.slow
def test_the_reports_are_made_again_without_torch(smmd_bench, finished):
    file = finished[0] / "reports" / "index.html"
    page = file.read_bytes()
    code = (
        "import sys; sys.modules['torch'] = None;"  # as where it is not installed
        "from pathlib import Path; from smmd_bench.publishing.write_reports import write_reports;"
        f"write_reports(Path({str(finished[0])!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert b"torch is not installed" in file.read_bytes()
    assert "Page:" in smmd_bench.finish("report", finished[0]).stdout
    assert file.read_bytes() == page


@pytest.mark.slow
def test_killed_at_any_stage_it_finishes_the_rest_with_the_same_results(
    smmd_bench, finished, tmp_path
):
    whole, out = cells(finished[0]), tmp_path / "run"
    ce, smmd = (whole["tiny", loss].name for loss in ("ce", "smmd"))
    for place in (
        f"{ce}/epochs/1", f"{smmd}/training", f"{ce}/selection.json", f"{smmd}/completions.parquet"
    ):  # fmt: skip
        smmd_bench.kill_when((out / "cells" / place).exists, JOB, out)
    trained = (out / "cells" / ce / "train.json").stat().st_mtime_ns
    assert "train ce" not in smmd_bench.finish(JOB, out).stdout
    assert (out / "cells" / ce / "train.json").stat().st_mtime_ns == trained
    same = ("metrics.json", "selection.json", "comparison.json", "checkpoint/model.safetensors")
    for folder in whole.values():
        for file in (folder / name for name in same if (folder / name).exists()):
            again = out / "cells" / folder.name / file.relative_to(folder)
            assert again.read_bytes() == file.read_bytes(), file
    assert not list(out.rglob("*.part"))
