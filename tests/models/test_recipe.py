import pytest

from smmd_bench.models.recipe import Recipe, checked_settings
from tests.conftest import expect_user_error


def test_settings_are_read_by_the_type_of_their_field():
    texts = {
        "epochs": "1e1",
        "learning_rate": "3",
        "group_by_length": "True",
        "dtype": "bfloat16",
    }
    settings = checked_settings(texts | {"train_examples": "none"})
    assert [*settings.values()] == [10, 3.0, True, "bfloat16", None]
    assert type(settings["epochs"]) is int
    assert type(settings["learning_rate"]) is float


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epochs", True, "must be an integer"),
        ("epochs", 0, "must be greater than 0"),
        ("learning_rate", "inf", "must be a finite number"),
        ("warmup_ratio", 7, "must be less than or equal to 1"),
        ("group_by_length", "yes", "must be true or false"),
        ("lora_targets", ["q_proj"], "must be text"),
        (1, 1, "Unknown recipe setting '1'"),
    ],
)
def test_a_bad_setting_is_one_sentence(name, value, message):
    with expect_user_error(message):
        checked_settings({name: value})


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ({"batch_size": 8}, 8),
        ({"batch_size": 24}, 12),
        ({"batch_size": 64}, 16),
        ({"batch_size": 8, "micro_batch_size": 16}, 16),
        ({"micro_batch_size": 3}, 3),
    ],
)
def test_a_batch_size_alone_lowers_the_micro_batch_size_to_fit(values, size):
    assert Recipe().changed(values).micro_batch_size == size


def test_lora_targets_may_stand_with_spaces_commas_or_plus_signs():
    for text in ("q_proj v_proj", "q_proj,v_proj", " q_proj + v_proj,q_proj"):
        assert checked_settings({"lora_targets": text}) == {
            "lora_targets": "q_proj v_proj"
        }


@pytest.mark.parametrize("values", [None, 3, ["epochs"]])
def test_settings_are_a_mapping(values):
    with expect_user_error("recipe must be a mapping"):
        checked_settings(values)
