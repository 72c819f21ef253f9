"""Both ends of the pipe on which a process reports, and how its end is told."""

import pytest

from smmd_bench.contracts import Job, Resources
from smmd_bench.contracts.executor import PROCESSES, STRATEGY
from smmd_bench.run import process
from smmd_bench.run.process import GpuExecutor, WorkerProcess
from smmd_bench.storage.files import read_json


@pytest.fixture
def worker(tmp_path):
    """Starts a process that runs a program, which has its request and `say(event)`."""
    started = []

    def start(program, **options):
        module = f"""
import json, os, sys, signal
request = json.load(open(sys.argv[1]))
def say(event): os.write(int(sys.argv[2]), (json.dumps(event) + "\\n").encode())
{program}
"""
        (tmp_path / "told.py").write_text(module)
        environment = {"PYTHONPATH": str(tmp_path), **options.pop("environment", {})}
        process = WorkerProcess(
            "told",
            {"a": 7},
            tmp_path / "logs",
            "job",
            environment=environment,
            **options,
        )
        started.append(process)
        return process

    yield start
    for each in started:
        each.close()
        assert each.process.returncode is not None


def heard(worker):
    return [*iter(worker.hear, None)]


def test_a_process_reads_its_request_and_what_it_says_is_heard(worker, tmp_path):
    program = """
print("of a library")
say({"event": "progress", "what": request["a"]})
say({"event": "progress", "what": [os.environ[n] for n in ("OMP_WAIT_POLICY", "MINE")]})
os.write(int(sys.argv[2]), b'{"event": "half')
"""
    started = worker(program, environment={"MINE": "x"})
    assert [event["what"] for event in heard(started)] == [7, ["PASSIVE", "x"]]
    assert started.describe_end() is None
    assert started.log == tmp_path / "logs/job.log"
    assert started.log.read_text() == "of a library\n"
    assert read_json(tmp_path / "logs/job.json") == {"a": 7}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("sys.exit(3)", "the process ended with status 3 (no output), see LOG"),
        (
            "import atexit; from smmd_bench.errors import end_process\n"
            "end_process(lambda: atexit.register(print, 'one') and 3)",
            "the process ended with status 3 (one), see LOG",
        ),
        ("from smmd_bench.errors import end_process; end_process(lambda: 1 / 0)",
         "the process ended with status 1 (ZeroDivisionError: division by zero), see LOG"),
        ("print('one\\n two.\\n\\n'); sys.exit(1)",
         "the process ended with status 1 (two), see LOG"),
        ("sys.exit('é' * 400)", f"the process ended with status 1 ({'é' * 300}), see LOG"),
        ("print('Timeout (0:01:00)!\\nThread'); sys.exit(1)",
         "the process said nothing for too long (--stall) and was ended, see LOG"),
        ("os.kill(os.getpid(), signal.SIGKILL)",
         "the process was killed by SIGKILL (out of memory?), see LOG"),
        ("say({'event': 'failed', 'message': 'in its own words'}); sys.exit(1)",
         "in its own words"),
        ("say({'event': 'failed', 'message': 'a'}); os.kill(os.getpid(), 9)",
         "the process was killed by SIGKILL (out of memory?), see LOG"),
    ],
)  # fmt: skip
def test_the_end_of_a_process_is_told_in_its_words_or_by_its_log(worker, program, said):
    started = worker(program)
    heard(started)
    assert started.describe_end() == said.replace("LOG", str(started.log))


def test_a_process_that_does_not_end_is_killed_after_its_grace(worker, monkeypatch):
    monkeypatch.setattr(process, "_GRACE", 0.3)
    started = worker("""
signal.signal(signal.SIGTERM, lambda *_: say({"event": "told"}))
say({"event": "began"})
while True: signal.pause()
""")
    assert started.hear() == {"event": "began"}

    started.end()
    assert started.hear() == {"event": "told"}
    assert started.process.returncode == -9


@pytest.mark.parametrize(
    ("gpus", "per_cell", "threads", "expected"),
    [
        (1, GpuExecutor(), 2, {"OMP_NUM_THREADS": "2"}),
        (0, GpuExecutor(2), 2, {"OMP_NUM_THREADS": "2"}),
        (1, GpuExecutor(2), None, {PROCESSES: "2", STRATEGY: "ddp"}),
    ],
)
def test_a_job_has_its_threads_and_several_gpus_if_it_uses_any(
    gpus, per_cell, threads, expected
):
    job = Job("train", "a", ("a",), {}, resources=Resources(gpus))
    assert per_cell.environment(job, threads) == expected
