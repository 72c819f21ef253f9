"""Jobs through submitit, by its executor for this machine."""

import signal
import time

import psutil
import pytest
from smmd_bench.plugins.executors.slurm import SlurmExecutor, Work

from smmd_bench.contracts import JobQueue, Resources
from smmd_bench.plugin_system.registry import load
from tests.conftest import expect_user_error, silent

from .jobs import job, require_ends, run, steps, unlike_jobs

pytest.importorskip("submitit")
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_job_that_fails_or_dies_stops_no_other_and_all_say_what_they_do(tmp_path):
    executor = load("executors", "slurm[cluster=local,jobs=2]")
    failures, words = run(executor, unlike_jobs(place="gsm8k"), tmp_path)
    require_ends(failures)
    told = [word for word in words if "gsm8k: " in word][1:]
    assert told == ["gsm8k: began", "gsm8k: ended"]
    assert (tmp_path / "logs/train-works.log").exists()
    assert not list((tmp_path / "logs").glob("*.events"))


def test_a_preempted_job_is_queued_again(tmp_path, monkeypatch):
    sent = []
    submit = SlurmExecutor._submit

    def note_and_submit(*call):
        sent.append(submit(*call))
        return sent[-1]

    monkeypatch.setattr(SlurmExecutor, "_submit", note_and_submit)

    def preempt(what):
        if what == "began" and len(sent) == 1:
            sent.append(None)
            (task,) = psutil.Process(int(sent[0].job_id)).children()  # as Slurm does
            task.send_signal(signal.SIGUSR2)

    executor = load("executors", "slurm[cluster=local]")
    failures, words = run(executor, [job("a", seconds=3)], tmp_path, hear=preempt)
    assert failures == {"a": None}
    assert words.count("began") == 2
    assert words.count("ended") == 1


@pytest.fixture
def submitted(monkeypatch):
    """The names of the jobs of each Slurm job, as they are submitted."""
    names = []
    submit = SlurmExecutor._submit

    def note_and_submit(self, jobs, folder):
        names.append([job.label for job in jobs])
        return submit(self, jobs, folder)

    monkeypatch.setattr(SlurmExecutor, "_submit", note_and_submit)
    return names


SHARING = "slurm[cluster=local,trainings_per_gpu=2]"
GPU = Resources(1, None)


def test_trainings_share_the_gpu_of_a_slurm_job_and_engines_do_not(tmp_path, submitted):
    jobs = [
        job("a", GPU, seconds=2),
        job("engine", GPU, stage="decode"),
        job("b", GPU, seconds=2),
        job("c", GPU),
    ]
    failures, words = run(load("executors", SHARING), jobs, tmp_path)
    assert failures == dict.fromkeys(["a", "b", "c", "engine"])
    assert submitted == [["a", "b"], ["engine"], ["c"]]

    sharing = [word for word in words if "'SMMD_BENCH_SHARES_GPU': '1'" in word]
    assert len(sharing) == 2
    assert not list((tmp_path / "logs").glob("*.events"))


def test_a_training_that_runs_out_of_memory_beside_another_runs_again_alone(
    tmp_path, submitted
):
    jobs = [
        job("a", GPU, seconds=3),
        job("b", GPU, dies_beside=True),
    ]
    failures, words = run(load("executors", SHARING), jobs, tmp_path)
    assert failures == {"a": None, "b": None}
    assert submitted == [["a", "b"], ["b"]]
    (again,) = (word for word in words if word.endswith("it runs again, alone."))
    assert again.startswith("b: the process was killed by SIGKILL")
    assert steps(words).count("ended") == 2


def test_nothing_goes_on_when_the_run_is_ended(tmp_path):
    executor = load("executors", "slurm[cluster=local,jobs=2]")
    jobs = JobQueue([job("a"), job("b", seconds=60)])
    results = executor.run(jobs, tmp_path, silent)
    assert next(results).job.label == "a"
    results.close()
    time.sleep(5)
    assert "ended" not in (tmp_path / "logs/train-b.events").read_text()


def test_jobs_that_a_killed_command_left_are_cancelled_once(tmp_path, monkeypatch):
    logs, commands = tmp_path / "logs/slurm", tmp_path / "bin"
    logs.mkdir(parents=True)
    commands.mkdir()
    for number in (7, 18):
        (logs / f"{number}_submitted.pkl").touch()
        (logs / f"{number}_submission.sh").touch()
    scancel = commands / "scancel"
    scancel.write_text('#!/bin/sh\necho "$@" | tr " " "\\n" | sort >> cancelled\n')
    scancel.chmod(0o755)
    monkeypatch.setenv("PATH", str(commands), prepend=":")
    monkeypatch.chdir(tmp_path)

    for _ in range(2):
        run(load("executors", "slurm"), [], tmp_path)
    assert (tmp_path / "cancelled").read_text().split() == ["--quiet", "18", "7"]


def test_a_trial_here_uses_the_gpus_that_are_here_one_job_at_a_time(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    needs_a_gpu = [job(name, Resources(gpus=1)) for name in "ab"]
    executor = load("executors", "slurm[cluster=local]")
    failures, words = run(executor, needs_a_gpu, tmp_path)
    assert failures == {"a": None, "b": None}
    assert steps(words) == ["began", "ended"] * 2
    assert sum("'CUDA_VISIBLE_DEVICES': ''" in word for word in words) == 2


def test_what_slurm_gets(tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit")
    settings = {}
    monkeypatch.setattr(
        submitit.AutoExecutor,
        "update_parameters",
        lambda self, **more: settings.update(more),
    )
    monkeypatch.setattr(submitit.AutoExecutor, "submit", lambda self, work: work)
    place = "partition=gpu,gpus_per_cell=2,hours=8,cluster=local"
    spec = f"slurm[{place},options=qos=a --gpus-per-node=0]"
    work = load("executors", spec)._submit([job("a")], tmp_path)

    assert isinstance(work, Work)
    assert settings["timeout_min"] == 480
    assert settings["slurm_partition"] == "gpu"
    assert settings["gpus_per_node"] == 0  # this job asks for none
    assert settings["slurm_additional_parameters"] == {
        "qos": "a",
        "gpus_per_node": "0",  # takes the place of submitit's own
    }


def test_mistakes_are_one_sentence(tmp_path, monkeypatch):
    with expect_user_error("options=qos: give NAME=VALUE, parted by spaces"):
        load("executors", "slurm[options=qos]")
    monkeypatch.setenv("PATH", str(tmp_path))  # no sbatch
    with expect_user_error(r"Slurm does not take a .* on a machine that has sbatch"):
        run(load("executors", "slurm"), [job("a")], tmp_path)
