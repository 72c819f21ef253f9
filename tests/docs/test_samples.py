"""What the pages show of the tasks is what the tasks give."""

import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from smmd_bench.plugin_system.registry import load_task, names
from tests.in_process import call

from .documents import ROOT, anchors, blocks

PAGE = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
SAMPLES = [block.text for block in blocks(PAGE) if block.text.startswith("$ smmd-bench sample")]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda text: text.splitlines()[0])
def test_a_sample_is_what_the_command_prints(sample, tmp_path):
    command, *shown = sample.rstrip().splitlines()
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    printed = call(shlex.split(command)[2:], tmp_path).output
    assert [_without_folders(line) for line in shown] == [
        _without_folders(line) for line in printed.rstrip().splitlines()
    ]


def _without_folders(line):
    """A picture's path differs by cache folder and library versions; its end does not."""
    return "/".join(Path(line).parts[-2:]) if line.endswith(".png") else line.rstrip()


def test_every_task_has_a_section_with_a_sample_its_metrics_and_its_sizes():
    for name in names("tasks"):
        if not type(load_task(name)).__module__.startswith("smmd_bench.tasks."):
            continue
        assert name in anchors(PAGE)
        section = PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert f"smmd-bench sample {name}" in section
        task = load_task(name)
        if name != "svamp":  # "as for gsm8k"
            assert not [m.name for m in task.metrics() if f"`{m.name}`" not in section]
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| [`{name}`]"))
        for split in ("train", "test"):
            size = task.paper_sizes[split]  # type: ignore[index]
            assert (f"{size:,}" if size else "–") in row
        assert f"| {task.max_new_tokens} |" in row


@pytest.mark.parametrize("task", ["clock_time", "chartqa"])
def test_the_pictures_are_those_that_the_task_draws(task):
    import runpy

    drawn = runpy.run_path(str(ROOT / "scripts" / "draw_task_samples.py"))["sample"](task)
    with Image.open(ROOT / "docs" / "images" / f"sample_{task}.png") as committed:
        shown = np.asarray(committed.convert("RGB"), dtype=float)
    assert shown.shape == np.asarray(drawn).shape
    assert np.abs(shown - np.asarray(drawn, dtype=float)).mean() < 2
