"""Jobs for the tests of executors, and what came of them."""

from smmd_bench.contracts import Job, JobQueue, Resources


def job(name, resources=None, place="", **told):
    """A job that does what `worker_stub` is told to do."""
    payload = {"plugins": [], "told": told}
    module = "tests.executors.worker_stub"
    return Job("train", name, (name,), payload, module, resources or Resources(), place)


def run(executor, jobs, folder, *, hear=lambda what: None, follow=lambda result: ()):
    """The results by name, and what the jobs said, in order."""
    queue, said, found = JobQueue(jobs), [], {}

    def progress(what, *_):
        said.append(what)
        hear(what)

    for result in executor.run(queue, folder, progress):
        found[result.job.label] = result.failure
        queue.waiting += follow(result)
    return found, said
