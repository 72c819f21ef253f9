import dataclasses

import pytest

from smmd_bench.errors import UserError
from smmd_bench.overhead.settings import STOCK
from tests.overhead.conftest import tiny_settings


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"drop": 4}, "leaves none of 4 steps"),
        ({"steps": 0, "drop": 0}, "--steps must be greater than or equal to 1, not 0"),
        ({"drop": -1}, "--drop must be greater than or equal to 0"),
        ({"repeats": 0}, "--repeats must be greater than or equal to 1"),
        ({"batch_size": 0}, "--batch-size must be"),
        ({"length": 1}, "--length must be greater than or equal to 2"),
        ({"threads": 0}, "--threads must be"),
        ({"seed": -1}, "--seed must be"),
        ({"supervised": 0.0}, "--supervised must be greater than 0"),
        ({"supervised": float("nan")}, "--supervised must be less than or equal to 1, not nan"),
        ({"numeric": 1.5}, "--numeric must be less than or equal to 1"),
        ({"numeric_tokens": 1}, "--numeric-tokens must be greater than or equal to 2"),
        ({"numeric_tokens": 512}, "must be below the 512 tokens of the geometry tiny"),
    ],
)
def test_a_value_without_sense_is_named_by_its_flag(changes, words):
    with pytest.raises(UserError, match=words):
        tiny_settings(**changes)


def test_the_stock_trainer_is_the_first_row_and_no_loss_can_take_its_name():
    assert tiny_settings(losses={"ce": 1, "smmd": 1}).rows == (STOCK, "ce", "smmd")
    assert "." in STOCK  # no plugin name has a dot


def test_the_folder_follows_from_every_setting():
    settings = tiny_settings(losses={"ce": 1, "smmd[sigma=1]": 1})
    assert settings.folder.name.startswith("overhead_tiny_cpu_smmd-sigma-1_")
    assert settings.folder == dataclasses.replace(settings).folder
    others = ({"steps": 5}, {"seed": 1}, {"threads": 2}, {"losses": {"ce": 2, "smmd[sigma=1]": 1}})
    folders = {dataclasses.replace(settings, **change).folder for change in others}
    assert len(folders | {settings.folder}) == 5


def test_at_most_all_but_the_first_token_of_a_row_are_supervised():
    assert tiny_settings().supervised_tokens == 4
    assert tiny_settings(supervised=1.0).supervised_tokens == 15
    assert tiny_settings(supervised=0.001).supervised_tokens == 1
