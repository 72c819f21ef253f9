"""`train-eval --tune` on the built-in checkpoint: what is chosen, and by which examples."""

import shutil

import pytest

import smmd_bench as sb

from .conftest import content

pytestmark = [pytest.mark.engine, pytest.mark.slow]
JOB = (
    "train-eval --task arithmetic --losses ce,smmd --no-base --engine transformers --epochs 1 "
    "--train-examples 128 --validation-examples 20 --set probe_examples=2 "
    "--tune 'ce: learning_rate=5e-4,2e-3' --tune 'smmd: lambda=3,10'"
)
TESTED = {"completions.parquet", "probes.parquet", "scores.parquet", "metrics.json"}


@pytest.fixture(scope="module")
def finished(smmd_bench, tmp_path_factory):
    """The run, and what it printed."""
    out = tmp_path_factory.mktemp("tuned") / "run"
    return out, smmd_bench.finish(JOB, "--test-examples", 12, "--out", out).stdout


def folders(run):
    """The folders of the trials that are no rows, and of the tuned cells by their loss."""
    manifest, cells = content(run, "manifest.json"), sb.read_run(run).cells
    pairs = zip(cells["loss"], cells["address"], strict=True)
    places = {loss: run / "cells" / address for loss, address in pairs}
    trials = [run / "cells" / address for address in manifest["trials"]]
    return trials, {loss: place for loss, place in places.items() if str(loss).endswith("[tuned]")}


def test_the_plan_and_the_verdict_name_the_budget_and_the_choice(finished):
    _, text = finished
    assert "Tuned: 2 configurations each of 2 losses for 1 seed" in text
    assert "  smmd: lambda=3; lambda=10" in text
    assert "Tuned: the best of 2 settings a loss by validation" in " ".join(text.split())
    assert "SMMD (tuned)" in text


def test_only_the_published_setting_and_the_chosen_one_see_the_test_split(finished):
    trials, tuned = folders(finished[0])
    assert len(trials) == 2  # the other two are the published rows
    for trial in trials:
        names = {file.name for file in trial.iterdir()}
        assert {"selection.json", "validation.parquet", "checkpoint"} <= names
        assert not names & TESTED
    assert {*tuned} == {"ce[tuned]", "smmd[tuned]"}
    for folder in tuned.values():
        names = {file.name for file in folder.iterdir()}
        assert TESTED | {"choice.json"} <= names
        assert not names & {"train.json", "validation.parquet", "checkpoint"}


def test_the_choice_validates_best(finished):
    for folder in folders(finished[0])[1].values():
        choice = content(folder, "choice.json")
        best = max(choice["trials"], key=lambda line: line["value"])
        assert choice["chosen"] == best["address"]
        selection = content(folder.parent / choice["chosen"], "selection.json")
        assert [line["exact_match"] for line in selection["epochs"]] == [best["value"]]


def test_the_chosen_weights_answer_as_they_do_as_a_row(finished):
    run = sb.read_run(finished[0])
    chosen = run.tuning[run.tuning["chosen"]].set_index("loss")
    answers = run.completions.pivot(index="uid", columns="loss", values="completion")
    rows = run.cells.set_index("address")["loss"]
    for loss, trial in chosen["trial"].items():
        if trial in rows:
            assert (answers[loss] == answers[rows[trial]]).all()


def test_other_test_examples_leave_every_choice_and_train_nothing(smmd_bench, finished, tmp_path):
    out = shutil.copytree(finished[0], tmp_path / "run")
    before = {file: file.read_bytes() for file in out.glob("cells/*/choice.json")}
    trained = {file: file.stat().st_mtime_ns for file in out.glob("cells/*/train.json")}
    text = smmd_bench.finish(JOB, "--test-examples", 8, "--extend", "--out", out).stdout
    assert "train ce" not in text
    assert {file: file.read_bytes() for file in out.glob("cells/*/choice.json")} == before
    assert {f: f.stat().st_mtime_ns for f in out.glob("cells/*/train.json")} == trained
    assert set(sb.read_run(out).metrics["n"]) <= {*range(9)}


def test_killed_among_its_trials_it_ends_as_undisturbed(smmd_bench, finished, tmp_path):
    out, again = finished[0], tmp_path / "run"
    words = (JOB, "--test-examples", 12, "--out")
    trials, tuned = folders(out)
    places = [again / "cells" / folder.name for folder in (*trials, *tuned.values())]
    for file in (places[0] / "train.json", places[-1] / "choice.json"):
        smmd_bench.kill_when(file.exists, *words, again)
    smmd_bench.finish(*words, again)
    for file in (*out.glob("cells/*/choice.json"), *out.glob("cells/*/metrics.json")):
        there = again / file.relative_to(out)
        assert there.read_bytes() == file.read_bytes(), file
