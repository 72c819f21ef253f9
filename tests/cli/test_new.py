import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from smmd_bench.cli import cli
from smmd_bench.errors import UserError
from smmd_bench.plugin_system.templates import write
from smmd_bench.plugin_system.templates.entry_points import with_entry_point
from smmd_bench.storage.files import write_text

BIN = Path(sys.executable).parent
KINDS = ("task", "loss", "report")
SETTINGS = '[project]\nname = "mine"\nversion = "1"\n'


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def new(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["new", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def run(*command: str | Path, cwd: Path, **more: str) -> str:
    words, environment = [str(word) for word in command], {**os.environ, **more}
    out = subprocess.run(words, cwd=cwd, capture_output=True, text=True, env=environment)
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout


def test_what_is_written_works_is_clean_and_passes_its_own_tests(tmp_path):
    for kind in KINDS:
        new(kind, f"my_{kind}")
    rules = ["--isolated", "--line-length", "100", "--quiet"]
    run(BIN / "ruff", "check", *rules, "--select", "E,F,W,I,UP,B,N,RUF,SIM,PT", ".", cwd=tmp_path)
    run(BIN / "ruff", "format", "--check", *rules, ".", cwd=tmp_path)
    lean = ["-p", "no:hypothesispytest"]  # three seconds of imports
    passed = run(BIN / "python", "-m", "pytest", "-q", "-W", "error", *lean, ".", cwd=tmp_path)
    assert passed.splitlines()[-1].startswith("13 passed")
    files = [part for kind in KINDS for part in ("--plugin", f"my_{kind}.py")]
    listed = run(BIN / "smmd-bench", "ls", *files, cwd=tmp_path)
    for kind in KINDS:
        assert f"my_{kind} " in listed
    assert "Sums of two numbers." in listed


def test_a_new_project_is_installed_and_found_by_name(tmp_path):
    said = new("task", "boiling", "--project", "kitchen-sums").output
    assert "pip install -e ./kitchen-sums" in said
    root = tmp_path / "kitchen-sums"
    assert sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()) == [
        "kitchen_sums/__init__.py",
        "kitchen_sums/boiling.py",
        "pyproject.toml",
        "tests/test_boiling.py",
    ]
    pip = [BIN / "python", "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    target = tmp_path / "site"
    run(*pip, "--no-build-isolation", "--target", target, root, cwd=tmp_path)
    listed = run(BIN / "smmd-bench", "ls", "tasks", cwd=tmp_path, PYTHONPATH=str(target))
    assert "boiling " in listed
    sample = ["sample", "boiling", "-n", "1"]
    assert "plus" in run(BIN / "smmd-bench", *sample, cwd=tmp_path, PYTHONPATH=str(target))


def test_the_current_project_gets_the_entry_point_and_keeps_all_else(tmp_path):
    settings = tmp_path / "pyproject.toml"
    settings.write_text(
        '# mine\n[project]\nname = "my-pack"  # a comment\nversion = "1"\n\n'
        '[project.entry-points."smmd_bench.losses"]\nother = "my_pack.other:Other"\n\n'
        "[tool.x]\ny = 1\n"
    )
    (tmp_path / "src" / "my_pack").mkdir(parents=True)
    (tmp_path / "src" / "my_pack" / "__init__.py").touch()
    before = settings.read_text()
    output = new("loss", "earth").output
    new("task", "counting")
    assert "Added the entry point to pyproject.toml" in output
    assert (tmp_path / "src" / "my_pack" / "earth.py").is_file()
    assert (tmp_path / "tests" / "test_earth.py").is_file()
    text = settings.read_text()
    assert [line for line in before.splitlines() if line not in text.splitlines()] == []
    points = tomllib.loads(text)["project"]["entry-points"]
    assert points == {
        "smmd_bench.losses": {"other": "my_pack.other:Other", "earth": "my_pack.earth:Earth"},
        "smmd_bench.tasks": {"counting": "my_pack.counting:Counting"},
    }


def test_lines_are_printed_where_the_settings_cannot_be_edited_safely(tmp_path):
    inline = '[project]\nname = "p"\nversion = "1"\nentry-points = {}\n'
    (tmp_path / "pyproject.toml").write_text(inline)
    output = new("report", "by_length", "--folder", "sub").output
    assert 'by_length = "sub.by_length:ByLength"' in output
    assert (tmp_path / "pyproject.toml").read_text() == inline


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[project]\nname = "x"',
        '[project]\nname = "x"\r\n[tool.y]\r\nz = 1\r\n',
        "[ project . entry-points . 'smmd_bench.tasks' ] # here\na = 'b:C'\n\n\n[tool.y]\n",
        '[project.entry-points."smmd_bench.tasks"]',
        '[project.entry-points."smmd_bench.tasks"]\na = """\n[no table]\n"""\n',
        '[project.entry-points]\n"smmd_bench.losses" = {a = "b:C"}\n',
    ],
)
def test_an_edit_adds_the_entry_point_and_nothing_else(text):
    changed = with_entry_point(text, "tasks", "new", "p.new:New")
    if changed is None:  # never a wrong one
        assert "[no table]" in text
        return
    content = tomllib.loads(changed)
    points = content["project"]["entry-points"]["smmd_bench.tasks"]
    assert points.pop("new") == "p.new:New"
    kept = [line.strip() for line in text.splitlines() if line.strip()]
    assert [line for line in kept if line not in changed] == []
    assert ("\r\n" in changed) == ("\r\n" in text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("task arithmetic", r"There is a task 'arithmetic' already .* such as my_arithmetic"),
        ("loss Earth-Mover", "such as earth_mover"),
        ("loss class", "cannot name a loss"),
        ("task 2nd", "a letter first"),
        ("report json", "would hide the module json"),
        ("task fine --project no+name", "cannot name a project"),
        ("task fine --project class", "cannot name a project"),
        ("task fine --project torch", "would hide the module"),
        ("task fine --project Json", "hide"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(arguments, said, tmp_path):
    with pytest.raises(UserError, match=said):
        new(*arguments.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", ["fine.py", "test_fine.py", "mine/notes.txt"])
def test_nothing_is_overwritten_and_nothing_half_written(there, tmp_path):
    file = tmp_path / there
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        new("task", "fine", *(["--project", "mine"] if "/" in there else []))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]
    assert file.read_text() == "mine"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The current folder, of a project; below it is a package that is installed there."""
    folder = tmp_path / "project"
    for package in ("extra_losses", ".venv/site/other_pack"):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").touch()
    (folder / "pyproject.toml").write_text(SETTINGS)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(folder / ".venv" / "site")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("../outside", "is outside the project"),
        ("my-plugins", "'my-plugins' cannot name a module"),
        ("src/mine/class", "'class' cannot name a module"),
        ("json", "a module json elsewhere"),
        ("torch/mine", "a module torch elsewhere"),
        ("other_pack/mine", "a module other_pack elsewhere"),
    ],
)
def test_a_folder_of_which_nothing_can_be_imported_is_refused(folder, said, project):
    before = sorted(project.parent.rglob("*"))
    with pytest.raises(UserError, match=said):
        new("task", "fine", "--folder", folder)
    assert sorted(project.parent.rglob("*")) == before
    assert (project / "pyproject.toml").read_text() == SETTINGS


def test_a_folder_of_the_project_that_can_be_imported_is_no_other_module(project):
    new("loss", "fine", "--folder", str(project / "extra_losses" / "more"))
    settings = (project / "pyproject.toml").read_text()
    assert 'fine = "extra_losses.more.fine:Fine"' in settings


def test_a_file_in_the_place_of_a_folder_leaves_nothing_half_written(project):
    (project / "tests").touch()
    before = sorted(project.rglob("*"))
    with pytest.raises(FileExistsError):
        new("task", "fine", "--folder", "mine/parts")
    assert sorted(project.rglob("*")) == before
    assert (project / "pyproject.toml").read_text() == SETTINGS


def test_what_was_written_is_removed_when_a_later_file_fails(tmp_path, monkeypatch):
    def fails(path, text):
        if path.name == "pyproject.toml":
            raise OSError(28, "No space left on device", str(path))
        write_text(path, text)

    monkeypatch.setattr(write, "write_text", fails)
    with pytest.raises(OSError, match="No space left"):
        new("task", "fine", "--project", "mine")
    assert list(tmp_path.iterdir()) == []
