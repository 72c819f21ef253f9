from pathlib import Path

import pytest

from smmd_bench import registry
from smmd_bench.errors import UserError

LOSS_FILE = '''
from dataclasses import dataclass
from typing import ClassVar
from smmd_bench.parameters import parameter

@dataclass(frozen=True)
class Mine:
    """A loss of my own."""
    name: ClassVar[str] = "mine"
    version: ClassVar[int] = 1
    replaces_cross_entropy: ClassVar[bool] = False
    weight: float = parameter(1.0, "weight", name="lambda")
    def bind(self, vocabulary): ...
'''


@pytest.mark.parametrize("group", registry.GROUPS)
def test_every_first_party_plugin_imports_and_fits_its_contract(group: registry.Group) -> None:
    found = registry.entries(group)
    assert found
    assert [e.error for e in found if e.error] == []
    for entry in found:
        assert isinstance(registry.load(group, entry.name), registry._PROTOCOLS[group])


def test_an_unknown_name_lists_the_nearest() -> None:
    with pytest.raises(UserError, match="Unknown loss 'smd': did you mean smmd"):
        registry.load_loss("smd")


def test_a_plugin_file_registers_its_classes(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(LOSS_FILE)
    registry.load_plugin_file(file)
    assert registry.load_loss("mine[lambda=4]").weight == 4.0
    assert file.resolve() in registry.plugin_files()


@pytest.mark.parametrize(
    ("source", "message"),
    [("1/0", "ZeroDivisionError"), ("x = 1", "defines no task"), (None, "does not exist")],
)
def test_a_bad_plugin_file_is_one_sentence(
    tmp_path: Path, source: str | None, message: str
) -> None:
    file = tmp_path / "bad.py"
    if source is not None:
        file.write_text(source)
    with pytest.raises(UserError, match=message):
        registry.load_plugin_file(file)
