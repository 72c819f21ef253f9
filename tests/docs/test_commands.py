"""Every command that the documentation shows can be read, and those that take no run are run."""

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from smmd_bench.cli import cli
from smmd_bench.plugin_system import registry
from smmd_bench.plugin_system.parameters import split_list
from tests.in_process import as_a_process, call

from .documents import ROOT, blocks, commands

COMMANDS = {shlex.join(words): (place, words) for place, words in commands()}
RUN = (
    "ls", "ls losses", "ls losses -v", "new task boiling_point", "validate boiling_point.py",
    "train-eval --task boiling_point --losses ce,ntl,smmd --plugin boiling_point.py --dry-run",
    "train-eval --task arithmetic --losses ce,smmd --print-yaml", "run experiment.yaml --dry-run",
    "run experiments/replication/arithmetic.yaml --dry-run", "prepare arithmetic",
    "sample doubling --plugin examples/own_task.py -n 2",
    "sample arithmetic --split test -n 20 --json", "validate 'smmd[sigma=1+2]'",
)  # fmt: skip
"""In this order, in one folder; most stand on a page, some with one more option."""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_documented_command_has_options_and_losses_that_exist(line, tmp_path):
    place, words = COMMANDS[line]
    name, *arguments = words
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"{place}: there is no command {name}"

    with as_a_process(tmp_path):
        for word in arguments:
            if (
                re.fullmatch(r"[\w./-]*[/.][\w./-]*|[A-Z]+", word)
                and word[0] not in "-/"
            ):
                _make(tmp_path / word)
        try:
            context = command.make_context(name, arguments)
        except click.UsageError as error:
            pytest.fail(f"{place}: {error.format_message()}")

    losses = context.params.get("losses") or []
    for spec in losses if isinstance(losses, list | tuple) else split_list(losses):
        if spec not in ("base", "huber", "squared_emd") and not spec.endswith(
            "[tuned]"
        ):
            registry.load_loss(spec)


def _make(path):
    """Something of this name, where a command names a file or a folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".py":
        name = path.name if path.name == "own_loss.py" else "own_task.py"
        shutil.copy(ROOT / "examples" / name, path)
    elif path.suffix:
        path.touch()
    else:
        path.mkdir(exist_ok=True)


@pytest.mark.docs
def test_commands_that_take_no_run_work_in_order(tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(tmp_path / "cache"))
    for name in ("examples", "experiments"):
        (tmp_path / name).symlink_to(ROOT / name)
    for line in RUN:
        outcome = call(line, tmp_path)
        assert outcome.status == 0, f"{line}: {outcome.output}"
        if "--print-yaml" in line:
            (tmp_path / "experiment.yaml").write_text(outcome.stdout, encoding="utf-8")


PAGE = (ROOT / "docs/tasks.md").read_text(encoding="utf-8")
SAMPLES = [text for _, text in blocks(PAGE) if text.startswith("$ smmd-bench sample")]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda text: text.splitlines()[0])
def test_a_sample_is_what_the_command_prints(sample, tmp_path):
    command, *expected = sample.rstrip().splitlines()
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    words = command.removeprefix("$ smmd-bench ")
    outcome = call(words, tmp_path, SMMD_BENCH_CACHE=str(tmp_path / "cache"))
    printed = outcome.stdout.rstrip().splitlines()
    assert [_without_folders(line) for line in expected] == [
        _without_folders(p) for p in printed
    ]


def _without_folders(line):
    """A picture's path differs by cache folder and library versions; its end does not."""
    return "/".join(Path(line).parts[-2:]) if line.endswith(".png") else line.rstrip()
