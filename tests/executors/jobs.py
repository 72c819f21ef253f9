"""Jobs for the tests of executors, and what came of them."""

from smmd_bench.contracts import Job, JobQueue, Resources


def job(name, resources=None, place="", stage="train", **told):
    """A job that does what `worker_stub` is told to do."""
    payload = {"plugins": [], "told": told}
    module = "tests.executors.worker_stub"
    return Job(stage, name, (name,), payload, module, resources or Resources(), place)


def run(executor, jobs, folder, *, hear=lambda what: None, follow=lambda result: ()):
    """The results by name, and what the jobs said, in order."""
    queue, words, failures = JobQueue(jobs), [], {}

    def progress(what, *_):
        words.append(what)
        hear(what)

    for result in executor.run(queue, folder, progress):
        failures[result.job.label] = result.failure
        queue.waiting += follow(result)
    return failures, words


def unlike_jobs(**works):
    """A job that dies, one that fails and one that works."""
    return [job("dies", dies=True), job("fails", fails=True), job("works", **works)]


def require_ends(failures):
    """Require the end of each of the unlike jobs."""
    assert failures["dies"].startswith(
        "the process was killed by SIGKILL (out of memory?), see "
    )
    assert failures["fails"] == "as it was told to"
    assert failures["works"] is None


def steps(words):
    """When jobs began and ended, of all that they said."""
    return [word for word in words if word in ("began", "ended")]
