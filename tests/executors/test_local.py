"""Jobs on this machine: how many at a time, with what, and what happens when one dies."""

import re
import subprocess
import sys

import psutil
import pytest

from smmd_bench.contracts import Resources
from smmd_bench.plugin_system.registry import load
from tests.conftest import expect_user_error

from .jobs import job, require_ends, steps, unlike_jobs
from .jobs import run as run_jobs


def run(spec, jobs, folder, *, cores=4, gpus=(), **how):
    """The results by name, and what the jobs said, in order."""
    executor = load("executors", spec)
    vars(executor).update(cores=cores, gpus=tuple(gpus))
    return run_jobs(executor, jobs, folder, **how)


def test_small_jobs_run_side_by_side_with_a_thread_each(tmp_path):
    failures, words = run(
        "local", [job("a", seconds=2), job("b", seconds=2)], tmp_path, cores=2
    )
    assert failures == {"a": None, "b": None}
    assert steps(words) == ["began"] * 2 + ["ended"] * 2
    assert sum("'OMP_NUM_THREADS': '1'" in word for word in words) == 2


@pytest.mark.parametrize(
    ("spec", "threads", "resources"),
    [
        ("local[workers=1]", 4, Resources()),
        ("local", 4, Resources(threads=None)),
        ("local[threads=4]", 4, Resources()),
        ("local[workers=2]", 2, Resources(threads=None, memory_gb=10**6)),
    ],
)
def test_jobs_that_take_all_there_is_run_one_after_the_other(
    tmp_path, spec, threads, resources
):
    failures, words = run(spec, [job("a", resources), job("b", resources)], tmp_path)
    assert failures == {"a": None, "b": None}
    assert steps(words) == ["began", "ended"] * 2
    assert sum(f"'OMP_NUM_THREADS': '{threads}'" in word for word in words) == 2


def test_each_job_sees_one_gpu_of_its_own(tmp_path):
    jobs = [job(name, Resources(1, None), seconds=1) for name in "abc"]
    jobs.append(job("measure", Resources(0)))
    failures, words = run("local", jobs, tmp_path, gpus=["3", "GPU-x"])
    assert failures == dict.fromkeys(["a", "b", "c", "measure"])
    text = "\n".join(words)
    gpus = re.findall("'CUDA_VISIBLE_DEVICES': '(.*?)'", text)
    assert sorted(gpus[:2]) == ["3", "GPU-x"]
    assert set(gpus) == {"3", "GPU-x", ""}
    assert steps(words)[:2] == ["began", "began"]


SHARING = "local[trainings_per_gpu=2]"


def gpus_of(words):
    """The GPU that each job saw, in the order in which they began."""
    return re.findall("'CUDA_VISIBLE_DEVICES': '(.*?)'", "\n".join(words))


def test_trainings_share_a_gpu_and_spread_over_all(tmp_path):
    jobs = [job(name, Resources(1, None), seconds=4) for name in "abc"]
    failures, words = run(SHARING, jobs, tmp_path, gpus=["0", "1"])
    assert failures == dict.fromkeys("abc")
    assert steps(words) == ["began"] * 3 + ["ended"] * 3
    assert sorted(gpus_of(words)) in (["0", "0", "1"], ["0", "1", "1"])
    assert sum("'SMMD_BENCH_SHARES_GPU': '1'" in word for word in words) == 3


def test_an_engine_shares_its_gpu_with_nothing(tmp_path):
    whole = Resources(1, None)
    jobs = [
        job("engine", whole, stage="decode", seconds=1),
        job("training", whole),
        job("another", whole, stage="decode"),
    ]
    failures, words = run(SHARING, jobs, tmp_path, gpus=["0"])
    assert failures == dict.fromkeys(["engine", "training", "another"])
    assert steps(words) == ["began", "ended"] * 3
    assert gpus_of(words) == ["0"] * 3


def test_trainings_let_an_engine_that_waits_have_the_gpu(tmp_path):
    """Without that it would wait for the last of them, and their weights would pile up."""
    whole = Resources(1, None)
    trainings = [job(name, whole, seconds=0.5 + i) for i, name in enumerate("ab")]
    later = [job("engine", whole, stage="decode"), job("c", whole), job("d", whole)]
    failures, _ = run(
        SHARING, trainings, tmp_path, gpus=["0"],
        follow=lambda result: later if result.job.label == "a" else [],
    )  # fmt: skip
    assert failures == dict.fromkeys(["a", "b", "c", "d", "engine"])
    assert [*failures].index("engine") == 2


def test_a_training_that_runs_out_of_memory_beside_another_runs_again_alone(tmp_path):
    jobs = [job("a", Resources(1, None), seconds=4)]
    jobs.append(job("b", Resources(1, None), dies_beside=True))
    failures, words = run(SHARING, jobs, tmp_path, gpus=["0"])
    assert failures == {"a": None, "b": None}
    (again,) = (word for word in words if word.endswith("it runs again, alone."))
    assert again.startswith("b: the process was killed by SIGKILL")
    assert steps(words) == ["began", "began", "ended", "began", "ended"]


def test_the_visible_gpus_keep_their_names(monkeypatch):
    executor = load("executors", "local")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, 7")
    assert executor.gpus == ("GPU-a", "7")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert load("executors", "local").gpus == ("0", "1")
    assert load("executors", "local").slots == 2


def test_a_job_that_dies_stops_no_other(tmp_path):
    failures, words = run("local", unlike_jobs(seconds=2), tmp_path)
    require_ends(failures)
    start_again = words.index(f"dies: {failures['dies']}; it runs again, alone.")
    assert steps(words[start_again:])[-2:] == ["ended", "began"]


def test_a_job_that_says_nothing_for_too_long_stops_no_other(tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_STALL", "0.05")
    failures, _ = run("local", [job("hangs", seconds=60), job("works")], tmp_path)
    assert failures.pop("hangs").startswith(
        "the process said nothing for too long (--stall) and was"
    )
    assert failures == {"works": None}
    assert "worker_stub.py" in (tmp_path / "logs/train-hangs.log").read_text()


def test_jobs_that_follow_from_a_result_are_run(tmp_path):
    failures, words = run(
        "local", [job("first")], tmp_path,
        follow=lambda result: [job("second", place="tiny")] if result.job.label == "first" else [],
    )  # fmt: skip
    assert failures == {"first": None, "second": None}
    assert "tiny: ended" in words


def test_no_job_outlives_the_run(tmp_path):
    code = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from smmd_bench.contracts import JobQueue\n"
        "from smmd_bench.plugin_system.registry import load\n"
        "from tests.executors.jobs import job\n"
        "jobs = JobQueue([job('a', seconds=60), job('b', seconds=60)])\n"
        "executor = load('executors', 'local[workers=2]')\n"
        "say = lambda what, *_: print(what, flush=True)\n"
        "list(executor.run(jobs, Path(sys.argv[1]), say))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None

    started = 0
    while started < 2:
        started += process.stdout.readline() == "began\n"
    children = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert len(gone) == 2
    assert alive == []
    process.stdout.close()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("local[workers=0]", "local"),
        ("local[threads=-1]", "local"),
        ("local[gpu=2]", "local"),
        (
            "local[gpus_per_cell=2,strategy=zero3]",
            "'zero3' is not .*: expected ddp|fsdp2",
        ),
        ("local[strategy=fsdp2]", "give gpus_per_cell=2 or more"),
        ("local[gpus_per_cell=2,trainings_per_gpu=2]", "leave one out"),
        ("ray[strategy=fsdp2]", "give gpus_per_cell=2 or more"),
        ("ray[retries=-1]", "ray"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(spec, reason):
    with expect_user_error(reason):
        load("executors", spec)
