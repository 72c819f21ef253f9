import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from smmd_bench.reports._paper import find_paper_model

from smmd_bench.models.card_content import backbones
from smmd_bench.models.cards import model_card
from smmd_bench.models.recipe import paper_recipe
from smmd_bench.storage.files import read_json, write_json
from tests.conftest import expect_user_error

QWEN_VL = {"chat_template": True, "min_pixels": 3136, "max_pixels": 602112}


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(model_card("builtin/tiny").folder, tmp_path / "mine"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"label: \xff", "is not valid YAML in UTF-8"),
        (b"recipe: 3", "recipe must be a mapping"),
        (b"label: 3", "label must be text, not 3"),
        (
            b"settings:\n  epochs: 3\n  epochs: 1",
            "epochs stands in line 2 and in line 3: keep one",
        ),
        (
            b"settings: {chat_template: on}",
            "chat_template must be true or false, not 'on'",
        ),
        (
            b"tasks: {arithmetic: {parameters: 3}}",
            "[arithmetic][parameters] must be a mapping",
        ),
        (b"tasks: {arithmetic: {parameters: {level: [hard]}}}", "text or numbers"),
        (b"setings: {epochs: 3}", "Unknown card key 'setings': did you mean settings"),
        (b"settings: {epoch: 3}", "did you mean epochs"),
        (
            b"micro_batch_sizes: {24: 0}",
            "micro_batch_sizes[24] must be greater than 0, not 0",
        ),
    ],
)
def test_a_mistake_in_a_card_names_the_card(folder, text, message):
    card = folder / "card.yaml"
    card.write_bytes(text)
    with expect_user_error(re.escape(message)) as error:
        model_card(str(folder))
    assert error.match(str(card))


def made(folder, text):
    (folder / "card.yaml").write_text(text)
    return model_card(str(folder))


def test_a_task_parameter_that_does_not_exist_names_the_card(folder):
    card = made(folder, "tasks: {arithmetic: {parameters: {levle: easy}}, gsm8k: {}}")
    assert card.task_spec("gsm8k") == "gsm8k"
    assert card.task_spec("arithmetic[level=hard]") == "arithmetic[level=hard]"
    with expect_user_error(r"card.yaml sets arithmetic\[levle=easy\]: .*mean level"):
        card.task_spec("arithmetic")


def test_a_card_is_read_as_it_is_written(folder):
    text = "label: no\nsettings: {epochs: 010}\ntasks: {arithmetic: {parameters: {level: 1:30}}}"
    card = made(folder, text)
    assert card.label == "no"
    assert card.recipe("gsm8k").epochs == 10
    assert card.content.parameters_of("arithmetic") == {"level": "1:30"}


def test_a_card_without_a_recipe_has_the_papers(folder):
    assert made(folder, "label: mine").recipe("arithmetic").epochs == 15


def test_settings_come_on_top_of_the_recipe(folder):
    text = "settings: {dtype: bfloat16, lora_rank: 8}\ntasks: {gsm8k: {lora_rank: 4}}"
    card = made(folder, text)
    recipe = card.recipe("arithmetic")
    assert recipe.epochs == 15
    assert recipe.dtype == "bfloat16"
    assert recipe.lora_rank == 8
    assert card.recipe("gsm8k").lora_rank == 4

    model_card.cache_clear()
    recipe = made(folder, f"recipe: {{epochs: 2, lora_rank: 2}}\n{text}").recipe(
        "arithmetic"
    )
    assert recipe.epochs == 2
    assert recipe.dtype == "bfloat16"
    assert recipe.lora_rank == 8


@pytest.mark.parametrize(
    ("named", "weights", "own"),
    [
        ({"dtype": "float32"}, torch.float16, "float32"),
        ({"torch_dtype": "float16"}, torch.float32, "bfloat16"),
        ({"text_config": {"dtype": "bfloat16"}}, torch.float32, "bfloat16"),
        ({}, torch.float16, "bfloat16"),
        ({}, torch.float32, "float32"),
    ],
)
def test_auto_is_the_checkpoints_own_dtype(folder, named, weights, own):
    config = read_json(folder / "config.json")
    del config["dtype"]
    write_json(folder / "config.json", {**config, **named})
    file = folder / "model.safetensors"
    save_file({name: w.to(weights) for name, w in load_file(file).items()}, file)
    card = model_card(str(folder))
    configs = ({}, {"dtype": "auto"}, {"dtype": "float32"})

    assert [card.recipe("gsm8k", changes).dtype for changes in configs] == [
        own,
        own,
        "float32",
    ]
    with expect_user_error("dtype must be 'auto', 'float32' or 'bfloat16', not"):
        card.recipe("gsm8k", {"dtype": "float16"})


@pytest.fixture
def hub(folder, monkeypatch):
    """Every name of the hub is a copy of `builtin/tiny`, whose tokenizer has N = 10."""
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda *_, **__: str(folder)
    )
    yield folder
    model_card.cache_clear()


BFLOAT16 = {"dtype": "bfloat16"}
TEXT, VISION = {"gsm8k": None, "arithmetic": None}, {"clock_time": 15, "chartqa": 5}


@pytest.mark.parametrize(
    ("name", "label", "n", "epochs", "changes"),
    [
        ("Qwen/Qwen2.5-0.5B", "Qwen2.5-0.5B", 10, TEXT, {}),
        ("Qwen/Qwen2.5-1.5B", "Qwen2.5-1.5B", 10, TEXT, {}),
        ("HuggingFaceTB/SmolLM3-3B-Base", "SmolLM3-3B", 1000, TEXT, {}),
        ("meta-llama/Meta-Llama-3-8B", "Llama3-8B", 1000, TEXT, {}),
        ("Qwen/Qwen2.5-VL-3B-Instruct", "Qwen2.5-VL-3B", 10, VISION, QWEN_VL),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B", 10, VISION, QWEN_VL),
        (
            "mistralai/Ministral-3-3B-Base-2512",
            "Ministral-3-3B",
            10,
            VISION,
            {"max_length": 4096},
        ),
        ("meta-llama/Llama-3.2-11B-Vision", "Llama-3.2-Vision-11B", 1000, VISION, {}),
    ],
)
def test_the_papers_backbones(hub, name, label, n, epochs, changes):
    card = model_card(f"{name}@main")
    assert card.label == label
    assert card.identity == {"hub": name, "commit": hub.name}

    for task, expected in epochs.items():
        assert card.recipe(task) == paper_recipe(task).changed({**BFLOAT16, **changes})
        assert expected in (None, card.recipe(task).epochs)
    paper = find_paper_model(name)  # or no published value would stand beside its rows
    assert label == f"{paper['name']}-{paper['params']}"
    assert backbones()[name].params == paper["params"]
    card.require_numeric_tokens(n)


def test_another_numeric_vocabulary_than_the_card_says_is_refused(hub):
    with expect_user_error(r"has 10 numeric tokens .* its card says 1000"):
        model_card("meta-llama/Meta-Llama-3-8B").require_numeric_tokens(10)


def test_a_truncated_safetensors_file_is_named(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with expect_user_error(f"The weights {weights} are not a whole safetensors file"):
        model_card(str(folder))
