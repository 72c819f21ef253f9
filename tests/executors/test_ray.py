"""Jobs on a Ray cluster: what they have, what they say, and what happens when a node dies."""

import dataclasses
import time

import psutil
import pytest

from smmd_bench.contracts import JobQueue, Resources
from smmd_bench.plugin_system.registry import load
from tests.conftest import expect_user_error, silent

from .jobs import job, require_ends, run, steps, unlike_jobs

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow, pytest.mark.timeout(180), pytest.mark.filterwarnings("ignore")
]  # fmt: skip


NODE = {"num_cpus": 2, "memory": 4 * 2**30, "object_store_memory": 2**27}


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two nodes with two cores each, on this machine."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(True, head_node_args={**NODE, "include_dashboard": False})
    nodes.add_node(**NODE)
    nodes.wait_for_nodes()
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def executor(cluster):
    return load("executors", f"ray[address={cluster.address}]")


def stubs():
    """The processes of jobs on this machine."""
    return [
        p
        for p in psutil.process_iter(["cmdline"])
        if "tests.executors.worker_stub" in (p.info["cmdline"] or ())
    ]


def test_jobs_run_side_by_side_each_with_what_it_needs(executor, tmp_path):
    assert executor.slots == 4
    jobs = [job(name, seconds=8) for name in "abc"]
    failures, words = run(executor, [*jobs, job("two", Resources(threads=2))], tmp_path)
    assert failures == {"a": None, "b": None, "c": None, "two": None}
    assert steps(words)[:3] == ["began"] * 3
    assert sum("'OMP_NUM_THREADS': '1'" in word for word in words) == 3
    assert sum("'OMP_NUM_THREADS': '2'" in word for word in words) == 1


def test_a_job_that_fails_or_dies_stops_no_other(executor, tmp_path):
    failures, _ = run(executor, unlike_jobs(seconds=1), tmp_path)
    require_ends(failures)


def test_a_job_begins_again_when_its_node_dies(cluster, executor, tmp_path):
    node = cluster.add_node(**{**NODE, "num_cpus": 1})
    cluster.wait_for_nodes()
    earlier = {process.pid for process in stubs()}
    started = []

    def kill(what):
        if what == "began":
            started.append(what)
            if len(started) == 5:  # every node has its jobs
                cluster.remove_node(node, allow_graceful=False)

    jobs = [job(name, seconds=5) for name in "abcde"]
    failures, words = run(executor, jobs, tmp_path, hear=kill)
    assert failures == dict.fromkeys("abcde")
    assert words.count("began") == 6
    assert words.count("ended") == 5
    assert {process.pid for process in stubs()} <= earlier


def test_nothing_goes_on_when_the_run_is_ended(executor, tmp_path):
    results = executor.run(JobQueue([job("a"), job("b", seconds=60)]), tmp_path, silent)
    assert next(results).job.label == "a"
    while not (running := stubs()):
        time.sleep(0.1)
    results.close()
    _, alive = psutil.wait_procs(running, timeout=10)
    assert alive == []


def test_a_node_without_the_folder_or_with_other_versions_says_so(executor, tmp_path):
    order = executor.order(job("a"), tmp_path)
    assert order.refusal() is None
    elsewhere = dataclasses.replace(order, folder=tmp_path / "elsewhere")
    assert "does not see" in str(elsewhere.refusal())
    older = dataclasses.replace(order, versions={**order.versions, "torch": "1.0"})
    assert "install torch 1.0" in str(older.refusal())


def test_more_gpus_than_a_node_has_are_refused_at_once(executor):
    nodes = [{"CPU": 4.0, "GPU": 2.0, "memory": 2.0**33}]
    assert executor.reserve(job("a", Resources(1)), nodes)["num_gpus"] == 1
    with expect_user_error("a needs 3 GPUs, and no node has more than 2"):
        executor.reserve(job("a", Resources(3)), nodes)


@pytest.fixture
def sharing(cluster):
    """An executor whose trainings share the one GPU of the cluster, which Ray believes in."""
    node = cluster.add_node(**NODE, num_gpus=1)
    cluster.wait_for_nodes()
    yield load("executors", f"ray[address={cluster.address},trainings_per_gpu=2]")
    cluster.remove_node(node)


def test_trainings_share_a_gpu_and_let_an_engine_have_it(sharing, tmp_path):
    assert sharing.slots == 2
    gpu = Resources(1, None)
    later = [job("engine", gpu, stage="decode"), job("c", gpu), job("d", gpu)]
    failures, words = run(
        sharing,
        [job("a", gpu, seconds=3), job("b", gpu, seconds=8)],
        tmp_path,
        follow=lambda result: later if result.job.label == "a" else [],
    )
    assert [*failures][:3] == ["a", "b", "engine"]
    assert sorted(failures) == ["a", "b", "c", "d", "engine"]
    assert set(failures.values()) == {None}
    assert steps(words)[:2] == ["began", "began"]

    shared = [word for word in words if "'SMMD_BENCH_SHARES_GPU': '1'" in word]
    assert len(shared) == 4


def test_a_training_that_runs_out_of_memory_beside_another_runs_again_alone(
    sharing, tmp_path
):
    gpu = Resources(1, None)
    jobs = [job("a", gpu, seconds=6), job("b", gpu, dies_beside=True)]
    failures, words = run(sharing, jobs, tmp_path)
    assert failures == {"a": None, "b": None}
    (again,) = (word for word in words if word.endswith("it runs again, alone."))
    assert again.startswith("b: the process was killed by SIGKILL")


def test_a_cluster_that_is_not_there_is_the_users_error():
    if ray.is_initialized():
        ray.shutdown()
    with expect_user_error(r"There is no Ray cluster at .*:1 .* `ray start"):
        _ = load("executors", "ray[address=127.0.0.1:1]").slots
