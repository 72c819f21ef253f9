"""Every command that the documentation shows works, or says that it wants a GPU or the hub.

Run are all that are not marked, page by page, in a folder with a finished run at runs/NAME and the
other files that they name, with the options of `calls.SMALL` behind them: a few examples, one
epoch, the transformers engine, and jobs in this process. So a new command is run, or fails here
until it is marked. A command that does the same as an earlier one with these options is run once.
Where several losses are compared, ce and smmd are trained, with one seed (the run at runs/NAME has
ntl and a second one); of `regress` and `overhead` only ce is measured, and of MMLU one subject. All
losses named are loaded; tests/end_to_end, tests/regression and tests/overhead have the rest.

`ELSEWHERE` are those that another test runs, because they take minutes or need an installation.
"""

import pytest

from tests.in_process import call

from . import calls
from .commands import documented, page_names, repository

pytestmark = pytest.mark.docs

COMMANDS = documented()
ELSEWHERE = {
    "smmd-bench validate": "tests/conformance",
    "smmd-bench validate losses": "tests/conformance/test_losses.py",
    "smmd-bench validate reports --run runs/NAME": "tests/conformance/test_reports.py",
    "smmd-bench prepare clock_time": "tests/tasks",  # 14,400 pictures
    **dict.fromkeys(
        [
            "smmd-bench plan experiment.yaml --out runs/shared",
            "smmd-bench plan experiment.yaml --json | jq -r '.cells[].address'",
            "smmd-bench work --run runs/shared",
            "smmd-bench work --run runs/shared --cell 36329443cd1b5d35",
        ],
        "tests/end_to_end/test_shared_run.py",
    ),
    "smmd-bench plan --power runs/PILOT --difference 2": "tests/cli/test_plan_power.py",
    "smmd-bench plan --power runs/PILOT --metric mean_absolute_error --json": (
        "tests/cli/test_plan_power.py"
    ),
    "smmd-bench plan experiment.yaml --storage s3://bucket/run": "tests/end_to_end/test_storage.py",
    "smmd-bench work --run /tmp/here --storage s3://bucket/run": "tests/end_to_end/test_storage.py",
    "smmd-bench doctor --json": "tests/cli/test_doctor.py",
    "smmd-bench doctor --plugin my_task.py": "tests/cli/test_doctor.py",
}
PAGES_ELSEWHERE = {
    "docs/cluster.md": "tests/docs/test_cluster.py",
    "docs/replication.md": "tests/results/test_contrasts.py",  # hours
    "examples/smmd-bench-celsius/README.md": "tests/examples",
}
_AGAIN = ("train-eval", "run", "regress", "score", "overhead", "report", "validate", "doctor")
_done: set[str] = set()


@pytest.mark.parametrize("page", page_names(COMMANDS))
def test_the_commands_of_a_page_work(page, make_folder):
    folder = make_folder("place")
    for command in (c for c in COMMANDS if c.page == page):
        if not (command.marked or command.text in ELSEWHERE or page in PAGES_ELSEWHERE):
            _check(command, folder)


def _check(command, folder):
    words = calls.small(command, folder)
    name = words[0]
    if name in ("regress", "overhead") or calls.WORDS.keys() & set(command.words):
        calls.losses_exist(command)
    if name in _AGAIN and "--out" not in words:
        same = calls.meaning(words, folder)
        if same in _done and "--print-yaml" not in words:
            return
        _done.add(same)
    try:
        said = call(words, folder)
    except Exception as error:
        raise AssertionError(f"{command}: {type(error).__name__}: {error}") from error
    assert said.status == 0 or (name, said.status) == ("doctor", 1), f"{command}: {said.output}"
    if command.output is not None and not command.output.startswith("~"):
        (folder / command.output).write_text(said.output, encoding="utf-8")


def test_marked_commands_have_options_that_exist(tmp_path):
    marked = [command for command in COMMANDS if command.marked]
    assert marked
    for command in marked:
        words = ["0" if "$" in word else word for word in command.words]
        assert calls.meaning(words, tmp_path)


def test_what_is_run_elsewhere_is_still_documented_and_the_tests_are_there():
    texts = {command.text for command in COMMANDS}
    assert not set(ELSEWHERE) - texts
    for test in (*ELSEWHERE.values(), *PAGES_ELSEWHERE.values()):
        assert repository(test).exists()
