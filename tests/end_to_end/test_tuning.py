"""`train-eval --tune` on the built-in checkpoint: what is chosen, and by which examples."""

import pytest

from .conftest import cells

pytestmark = [pytest.mark.engine, pytest.mark.slow]
JOB = (
    "train-eval --task arithmetic --losses ce,smmd --no-base --engine transformers --epochs 1 "
    "--train-examples 128 --validation-examples 20 --set probe_examples=2 "
    "--tune 'ce: learning_rate=5e-4,2e-3' --tune 'smmd: lambda=3,10' --test-examples 12 --out"
)


@pytest.fixture(scope="module")
def finished(smmd_bench, tmp_path_factory):
    """The run, and what it printed."""
    out = tmp_path_factory.mktemp("tuned") / "run"
    return out, smmd_bench.finish(JOB, out).stdout


def tuned_cells(run):
    """What is stored of the tuned cells, by their loss."""
    return {loss: cell for (_, loss), cell in cells(run).items() if cell.trials}


def test_the_trial_that_validates_best_is_chosen_and_it_alone_sees_the_test_split(
    finished,
):
    run, text = finished
    tuned = tuned_cells(run)
    assert "smmd[tuned]: the best of lambda=3; lambda=10 by validation." in text
    assert {*tuned} == {"ce[tuned]", "smmd[tuned]"}

    for cell in tuned.values():
        values = [trial.selection["epochs"][0]["exact_match"] for trial in cell.trials]
        assert [line["value"] for line in cell.choice["trials"]] == values
        assert cell.choice["chosen"] == values.index(max(values))
        assert cell.checkpoint == cell.trials[cell.choice["chosen"]].checkpoint
        assert all(trial.decoded is None for trial in cell.trials)
        assert cell.metrics is not None

    # a published row is one of the trials
    assert len([*run.glob("train/*/receipt.json")]) == 4
    tested = {cell.decoded for cell in cells(run).values()}
    assert {*run.glob("decode/*")} == tested
    assert 2 <= len(tested) <= 4  # and what is chosen may be a published row


def test_killed_among_its_trials_it_ends_as_undisturbed(smmd_bench, finished, tmp_path):
    undisturbed, out = finished[0], tmp_path / "run"
    last = tuned_cells(undisturbed)["smmd[tuned]"]
    for place in (last.trials[0].trained, last.selected):
        smmd_bench.kill_when((out / place.relative_to(undisturbed)).exists, JOB, out)
    smmd_bench.finish(JOB, out)
    for file in (*undisturbed.glob("select/*/*"), *undisturbed.glob("measure/*/*")):
        assert (
            out / file.relative_to(undisturbed)
        ).read_bytes() == file.read_bytes(), file
