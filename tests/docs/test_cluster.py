"""docs/cluster.md: parts that ran apart make one run, and nothing of it is made again."""

import shlex
import shutil

import pytest

from smmd_bench.errors import UserError
from smmd_bench.run.run_directory import RunDirectory
from tests.in_process import call

from . import calls
from .commands import Command, documented, repository
from .documents import blocks

pytestmark = pytest.mark.docs

PAGE = "docs/cluster.md"


def steps():
    """The commands on the parts of a run, and what the page copies between them, in order.

    tests/end_to_end/test_shared_run.py has those on a folder that processes share.
    """
    mine = [c for c in documented() if c.page == PAGE and c.words[0] == "train-eval"]
    commands = {c.line: c for c in mine if "--out" in c.words}
    found: list[tuple[int, Command | list[str]]] = list(commands.items())
    for block in blocks(repository(PAGE).read_text(encoding="utf-8")):
        for at, line in enumerate(block.text.splitlines(), start=block.line):
            if line.startswith("cp -r "):
                found.append((at, shlex.split(line)[2:]))
    return [step for _, step in sorted(found, key=lambda step: step[0])]


def test_parts_with_folders_of_their_own_are_gathered(tmp_path):
    said = []
    for step in steps():
        if isinstance(step, Command):
            done = call(calls.small(step, tmp_path), tmp_path)
            assert done.status == 0, done.output
            said.append(done.output)
        else:
            shutil.copytree(tmp_path / step[0], tmp_path / step[1], dirs_exist_ok=True)
            trained = {f: f.stat().st_mtime_ns for f in (tmp_path / "gathered").rglob("train.json")}
    plan, whole = said[-2:]
    assert plan.count(" done\n") == 5
    assert "to do" not in plan
    assert {f: f.stat().st_mtime_ns for f in trained} == trained
    assert len(trained) == 5
    assert len(list((tmp_path / "gathered").rglob("comparison.json"))) == 4
    assert "SMMD" in whole


def test_a_second_process_in_the_same_folder_is_refused_as_the_page_says(tmp_path):
    folder = tmp_path / "runs" / "NAME"
    with (
        RunDirectory(folder).locked(),
        pytest.raises(UserError) as refused,
        RunDirectory(folder).locked(),
    ):
        pass
    page = repository(PAGE).read_text(encoding="utf-8")
    assert f"Error: {refused.value}".replace(str(folder), "runs/NAME") in page
