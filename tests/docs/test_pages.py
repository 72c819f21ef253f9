"""Links of pages lead somewhere, and what they say of code and of the paper is so."""

import dataclasses
import math
import re
from urllib.parse import urlsplit

import pytest
from smmd_bench.reports._paper import read_rows

from smmd_bench.models.recipe import Recipe
from smmd_bench.plugin_system.registry import load_task, names
from smmd_bench.results.frames import read_run
from smmd_bench.run.run_directory import RunDirectory
from smmd_bench.storage.cell import FOLDERS
from tests.runs import quick_run

from .documents import ROOT, anchors, documents, links


def page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_task_has_a_section_with_its_metrics_and_its_sizes():
    text = page("docs/tasks.md")
    # of the user's file
    for name in (name for name in names("tasks") if name != "table"):
        task = load_task(name)
        if not type(task).__module__.startswith("smmd_bench.tasks."):
            continue
        assert name in anchors(text)
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        if name != "svamp":  # "as for gsm8k"
            assert not [m.name for m in task.metrics() if f"`{m.name}`" not in section]
        row = next(
            line for line in text.splitlines() if line.startswith(f"| [`{name}`]")
        )
        sizes = [task.paper_sizes[split] for split in ("train", "test")]  # type: ignore[index]
        assert all((f"{size:,}" if size else "–") in row for size in sizes)
        assert f"| {task.max_new_tokens} |" in row


def test_every_setting_of_a_recipe_is_on_its_page():
    text = page("docs/recipes.md")
    assert not [
        item.name for item in dataclasses.fields(Recipe) if f"`{item.name}`" not in text
    ]


@pytest.mark.long
def test_the_pipeline_by_hand_is_that_of_the_command(tmp_path, monkeypatch, capsys):
    """It trains and decodes in this process."""
    _, _, text = page("docs/architecture.md").partition("## The pipeline by hand")
    section, _, _ = text.partition("\n## ")
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert 30 <= block.count("\n") <= 60

    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/architecture.md", "exec"), {})
    assert "mean_absolute_error" in capsys.readouterr().out

    run = read_run("runs/by-hand")
    assert [*run.cells["status"]] == ["done"] * 3
    assert (run.path / "reports/index.html").is_file()
    files = run.path.glob("*/*")
    folders = {file.parent.name for file in files}
    assert folders == {*FOLDERS, "reports"} - {"beams"}


def test_probes_are_joined_with_completions_by_pandas_alone(tmp_path, monkeypatch):
    run = quick_run(tmp_path / "runs/NAME")
    RunDirectory(run.path).record_folders()
    _, _, text = page("docs/runs.md").partition("## Looking into answers")
    _, _, block = text.partition("```python\n")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block.partition("```")[0], "docs/runs.md", "exec"), names)

    joined = names["digits"]
    assert len(joined) == len(run.probes)
    of_loss = joined[joined["loss"] == "smmd"]
    right = of_loss.drop_duplicates("uid")["exact"]

    completions = run.completions
    of_loss = completions[completions["loss"] == "smmd"]
    assert right.sum() == of_loss["exact"].sum()


PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in documents()]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading_or_is_https(page):
    dead = []
    for link in links(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        parts = urlsplit(link)
        if parts.scheme:
            well_formed = parts.scheme == "https" and "." in parts.netloc
        else:
            target = (page.parent / path).resolve() if path else page
            well_formed = target.exists() and target.is_relative_to(ROOT)
            if well_formed and anchor:
                well_formed = anchor in anchors(target.read_text(encoding="utf-8"))
        if not well_formed:
            dead.append(link)
    assert not dead


# `git show COMMIT:PATH` names a file of another time.
NAMED_PATH = re.compile(
    r"(?<![\w/:.-])(?:tests|smmd_bench|plugins|examples)/[\w/*.-]*\w"
)
NAMED_TEST = re.compile(r"`([a-z_]+/test_[a-z_]+)`")


def test_every_path_of_the_code_that_a_page_names_is_there():
    # The changelog tells of former files.
    pages = [page for page in documents() if page.name != "CHANGELOG.md"]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    tests = [f"tests/{name}.py" for name in NAMED_TEST.findall(text)]
    gone = [
        path for path in (*NAMED_PATH.findall(text), *tests) if not [*ROOT.glob(path)]
    ]
    assert not gone


def test_every_page_of_the_documentation_can_be_reached_from_the_readme():
    seen = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page not in seen and page.suffix == ".md" and page.exists():
            seen.add(page)
            targets = [
                link.partition("#")[0]
                for link in links(page.read_text(encoding="utf-8"))
            ]
            todo += [(page.parent / target).resolve() for target in targets if target]
    assert not set((ROOT / "docs").glob("*.md")) - seen


TABLES = (
    "math_reasoning", "arithmetic", "clock", "chartqa", "ablation", "kernel_ablation", "sigma"
)  # fmt: skip
ROWS = [
    (name, row) for name in TABLES for row in read_rows(name) if "exact_match" in row
]


def fit(value, questions):
    """How a printed percentage comes from a whole number of right answers, if it does."""
    scaled = value * questions / 100
    if any(
        abs(round(100 * n / questions, 2) - value) < 1e-9
        for n in (int(scaled), math.ceil(scaled))
    ):
        return "rounded"
    cut = (
        abs(math.floor(1e4 * math.ceil(scaled) / questions + 1e-9) / 100 - value) < 1e-9
    )
    return "cut" if cut else "neither"


@pytest.mark.parametrize(
    ("task", "questions", "cut", "neither"),
    [
        ("gsm8k", 1319, 6, [48.12, 54.99]),
        ("svamp", 1000, 0, []),
        ("arithmetic", 10000, 0, []),
        ("clock_time", 1440, 7, [69.46]),
        ("chartqa", 1915, 8, []),
    ],
)
def test_printed_accuracies_are_rounded_cut_or_neither(task, questions, cut, neither):
    values = [row["exact_match"] for _, row in ROWS if row["task"] == task]
    fits = [(fit(value, questions), value) for value in values]
    assert sum(how == "cut" for how, _ in fits) == cut
    assert sorted(value for how, value in fits if how == "neither") == neither
    assert all(f"{value:.2f}" in page("docs/footguns.md") for value in neither)
