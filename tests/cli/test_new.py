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
    import os

    out = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, **more},
    )
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
        (("task", "arithmetic"), r"There is a task 'arithmetic' already .* such as my_arithmetic"),
        (("loss", "Earth-Mover"), "such as earth_mover"),
        (("loss", "class"), "cannot name a loss"),
        (("task", "2nd"), "a letter first"),
        (("report", "json"), "would hide the module json"),
        (("task", "fine", "--project", "no name"), "cannot name a project"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(arguments, said, tmp_path):
    with pytest.raises(UserError, match=said):
        new(*arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", ["fine.py", "test_fine.py"])
def test_nothing_is_overwritten_and_nothing_half_written(there, tmp_path):
    (tmp_path / there).write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        new("task", "fine")
    assert [p.name for p in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_a_project_that_exists_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(UserError, match="exists already"):
        new("task", "fine", "--project", "mine")


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("../outside", "is outside the project"),
        ("my-plugins", "'my-plugins' cannot name a module"),
        ("src/mine/class", "'class' cannot name a module"),
        ("json", "a module json elsewhere"),
        ("torch/mine", "a module torch elsewhere"),
    ],
)
def test_a_folder_of_which_nothing_can_be_imported_is_refused(folder, said, tmp_path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    settings = project / "pyproject.toml"
    settings.write_text('[project]\nname = "mine"\nversion = "1"\n')
    before = settings.read_text()
    monkeypatch.chdir(project)
    with pytest.raises(UserError, match=said):
        new("task", "fine", "--folder", folder)
    assert [*tmp_path.iterdir(), *project.iterdir()] == [project, settings]
    assert settings.read_text() == before


def test_what_is_installed_within_the_project_is_another_module(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\nversion = "1"\n')
    installed = tmp_path / ".venv" / "site"
    (installed / "other_pack").mkdir(parents=True)
    (installed / "other_pack" / "__init__.py").touch()
    monkeypatch.syspath_prepend(installed)
    with pytest.raises(UserError, match="a module other_pack elsewhere"):
        new("loss", "fine", "--folder", "other_pack/mine")
    assert not (tmp_path / "other_pack").exists()


def test_a_folder_of_the_project_that_can_be_imported_is_no_other_module(tmp_path, monkeypatch):
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[project]\nname = "mine"\nversion = "1"\n')
    (tmp_path / "extra_losses").mkdir()
    (tmp_path / "extra_losses" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    new("loss", "fine", "--folder", str(tmp_path / "extra_losses" / "more"))
    assert 'fine = "extra_losses.more.fine:Fine"' in settings.read_text()


@pytest.mark.parametrize(
    ("project", "said"),
    [("class", "cannot name a project"), ("torch", "would hide the module"), ("Json", "hide")],
)
def test_a_project_whose_package_cannot_be_imported_is_refused(project, said, tmp_path):
    with pytest.raises(UserError, match=said):
        new("task", "fine", "--project", project)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_leaves_nothing_half_written(tmp_path):
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[project]\nname = "mine"\nversion = "1"\n')
    before = settings.read_text()
    (tmp_path / "tests").touch()
    with pytest.raises(FileExistsError):
        new("task", "fine", "--folder", "mine/parts")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pyproject.toml", "tests"]
    assert settings.read_text() == before


def test_what_was_written_is_removed_when_a_later_file_fails(tmp_path, monkeypatch):
    def fails(path, text):
        if path.name == "pyproject.toml":
            raise OSError(28, "No space left on device", str(path))
        write_text(path, text)

    monkeypatch.setattr(write, "write_text", fails)
    with pytest.raises(OSError, match="No space left"):
        new("task", "fine", "--project", "mine")
    assert list(tmp_path.iterdir()) == []
