"""What pages say of tasks, recipes and the pipeline is what the code says."""

import dataclasses
import re

from smmd_bench.models.recipe import Recipe
from smmd_bench.plugin_system.registry import load_task, names
from smmd_bench.results.frames import read_run
from smmd_bench.storage.cell import STAGES

from .documents import ROOT, anchors


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_task_has_a_section_with_its_metrics_and_its_sizes():
    text = page("docs/tasks.md")
    for name in names("tasks"):
        task = load_task(name)
        if not type(task).__module__.startswith("smmd_bench.tasks."):
            continue
        assert name in anchors(text)
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        if name != "svamp":  # "as for gsm8k"
            assert not [m.name for m in task.metrics() if f"`{m.name}`" not in section]
        row = next(line for line in text.splitlines() if line.startswith(f"| [`{name}`]"))
        sizes = [task.paper_sizes[split] for split in ("train", "test")]  # type: ignore[index]
        assert all((f"{size:,}" if size else "–") in row for size in sizes)
        assert f"| {task.max_new_tokens} |" in row


def test_every_setting_of_a_recipe_is_on_its_page():
    text = page("docs/recipes.md")
    assert not [item.name for item in dataclasses.fields(Recipe) if f"`{item.name}`" not in text]


def test_the_pipeline_by_hand_is_that_of_the_command(tmp_path, monkeypatch, capsys):
    """It trains and decodes in this process."""
    text = page("docs/architecture.md").partition("## The pipeline by hand")[2]
    (block,) = re.findall(r"```python\n(.*?)```", text.partition("\n## ")[0], re.DOTALL)
    assert 30 <= len(block.splitlines()) <= 60
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/architecture.md", "exec"), {})
    assert "mean_absolute_error" in capsys.readouterr().out
    run = read_run("runs/by-hand")
    assert [*run.cells["status"]] == ["done"] * 3
    assert (tmp_path / "runs" / "by-hand" / "reports" / "index.html").is_file()
    folders = {path.parent.name for path in (tmp_path / "runs" / "by-hand").glob("*/*")}
    assert folders == {*STAGES, "reports"} - {"beams"}
