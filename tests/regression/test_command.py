"""`smmd-bench regress` from the command line, and what it says of mistakes."""

import pytest

from smmd_bench.results.frames import read_run
from smmd_bench.storage.data_files import VARIABLE
from tests.cli.conftest import call, run_here
from tests.conftest import DATA


@pytest.mark.engine
@pytest.mark.slow
def test_two_suites_in_one_call_and_nothing_the_second_time(make_run, mmlu):
    run = make_run(losses=("smmd",))
    (mmlu / "samsum").mkdir(exist_ok=True)
    (mmlu / "samsum" / "test.json").write_bytes((DATA / "samsum" / "test.json").read_bytes())
    suites = ("--suite", "mmlu_anatomy,samsum", "--limit", "2", "--data-dir", mmlu)
    arguments = ("regress", run, *suites)
    done = call(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 checkpoints x mmlu_anatomy, samsum with hf, 2 questions" in done.stdout
    assert "mmlu_anatomy smmd seed 0: 8 of 8" in done.stdout
    assert "Regression checks through lm-eval" in done.stdout
    assert len(list((run / "logs").glob("regress-*.log"))) == 1  # one process, one load each
    frame = read_run(run).regression
    assert set(frame["suite"]) == {"mmlu_anatomy", "samsum"}
    assert set(frame.loc[frame["suite"] == "samsum", "metric"]) == {"rouge1", "rouge2", "rougeL"}
    page = (run / "reports" / "index.html").read_text()
    assert "Regression checks through lm-eval" in page
    again = call(*arguments)
    assert again.returncode == 0
    assert "Nothing to do" in again.stdout


def test_mistakes_are_one_sentence(make_run, tmp_path):
    run = make_run(losses=("smmd",))
    for arguments, words in (
        (("--suite", ""), "--suite is empty: give at least one"),
        (("--losses", "smd"), "did you mean smmd"),
        (("--checkpoint", "nowhere"), "nowhere does not exist: give one"),
        (("--data-dir", "nowhere"), "check --data-dir"),
        ((), "The data folder"),
    ):
        done = run_here("regress", run, *arguments, **{VARIABLE: str(tmp_path)})
        assert done.returncode == 2, done.stdout
        (line,) = done.stderr.splitlines()
        assert line.startswith("Error: ")
        assert words in line
    assert not (run / "regression").exists()
