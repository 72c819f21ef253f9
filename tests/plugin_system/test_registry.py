from importlib.util import find_spec

import pytest

from smmd_bench.plugin_system import registry
from tests.conftest import expect_user_error

from .loss_file import LOSS


def lacks_its_package(name):
    """reasoning-gym is installed where there is a C compiler."""
    return name == "reasoning_gym" and find_spec(name) is None


@pytest.mark.parametrize("group", registry.GROUPS)
def test_every_first_party_plugin_imports_and_fits_its_contract(group):
    entries = [
        entry for entry in registry.entries(group) if not lacks_its_package(entry.name)
    ]
    assert entries
    assert [e.error for e in entries if e.error] == []
    for entry in entries:
        assert registry.load(group, entry.name).name == entry.name


def test_a_plugin_file_takes_the_place_of_what_was_loaded(tmp_path):
    loaded = registry.load_loss("ce")
    assert registry.load_loss("ce") is loaded
    file = tmp_path / "other.py"
    file.write_text(LOSS.replace('"mine"', '"ce"'))
    registry.load_plugin_file(str(file))
    assert registry.load_loss("ce[lambda=4]").weight == 4.0
    assert type(registry.load_loss("ce")).__name__ == "Mine"
    assert file.resolve() in registry.plugin_files()


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("bad.py", "1/0", "fails to import: ZeroDivisionError"),
        ("bad.py", "import sys; sys.exit(3)", "fails to import: SystemExit"),
        ("bad.py", "x = 1", "defines no task"),
        ("bad.py", None, "does not exist"),
        ("notes.txt", "", "is not a Python file: give the path of a file that ends in"),
    ],
)
def test_a_bad_plugin_file_is_one_sentence(tmp_path, name, source, message):
    if source is not None:
        (tmp_path / name).write_text(source)
    with expect_user_error(message):
        registry.load_plugin_file(tmp_path / name)


def test_an_installed_plugin_that_lacks_a_part_of_its_contract_is_listed_with_what_it_lacks(
    monkeypatch,
):
    class Point:
        value, dist = "mine:Bare", None

        def load(self):
            return type("Bare", (), {"name": "bare", "title": "Bare"})

    monkeypatch.setattr(registry, "points", lambda group: {"bare": Point()})
    entry = registry.entry("reports", "bare")
    assert entry.plugin is None
    assert entry.error == "it lacks build, paper"
