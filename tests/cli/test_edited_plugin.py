"""A plugin file is edited between two runs of one command: what it does is what the run shows."""

from pathlib import Path

import pytest

from smmd_bench.results.frames import read_run

from .conftest import call

LOSS = (Path(__file__).parents[2] / "examples" / "own_loss.py").read_text(encoding="utf-8")
JOB = (
    "train-eval", "--task", "arithmetic", "--losses", "huber", "--plugin", "mine.py", "--no-base",
    "--engine", "transformers", "--train-examples", "64", "--epochs", "1",
    "--validation-examples", "8", "--test-examples", "8", "--out", "run",
)  # fmt: skip


@pytest.mark.engine
@pytest.mark.slow
def test_a_loss_is_trained_again_when_it_is_edited_and_not_for_a_comment(tmp_path):
    def train(text: str) -> tuple[str, float]:
        """What the job prints, and the loss's own term in the first step."""
        (tmp_path / "mine.py").write_text(text)
        cache = str(tmp_path / "cache")
        done = call(*JOB, cwd=tmp_path, SMMD_BENCH_CACHE=cache, OMP_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
        return done.stdout, float(read_run(tmp_path / "run").train_log["auxiliary"].iloc[0])

    _, before = train(LOSS)
    said, same = train(LOSS.replace("        values = ", "        # V_num\n        values = "))
    assert "Nothing to do" in said
    assert same == before
    said, after = train(LOSS.replace("return loss,", "return 7 * loss,"))
    assert "train huber seed 0" in said
    assert after == pytest.approx(7 * before)
    shown = call("show", "run", cwd=tmp_path)  # without the plugin
    assert (shown.returncode, "huber" in shown.stdout) == (0, True)
