import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest

from smmd_bench import model_cards
from smmd_bench.errors import UserError
from smmd_bench.model_cards import ModelCard, model_card


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_card("builtin/tiny").folder, tmp_path / "mine"))


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("model-00001-of-00002.safetensors", True),
        ("model.safetensors.index.json", True),
        ("config.json", True),
        ("tokenizer.json", True),
        ("tokenizer_config.json", True),
        ("tokenizer.model", True),
        ("added_tokens.json", True),
        ("tekken.json", True),
        ("chat_template.jinja", True),
        ("pytorch_model.bin", False),
        ("README.md", False),
        ("training_args.bin", False),
    ],
)
def test_what_is_fetched_of_a_checkpoint(file: str, wanted: bool) -> None:
    assert any(fnmatch(file, pattern) for pattern in model_cards._PARTS) == wanted


def test_an_added_token_is_another_identity(folder: Path) -> None:
    before = model_card(str(folder)).identity
    (folder / "added_tokens.json").write_text("{}")
    model_card.cache_clear()
    assert model_card(str(folder)).identity != before


def test_weights_are_counted_over_all_files(folder: Path) -> None:
    once = model_card(str(folder)).parameter_count()
    shutil.copy(folder / "model.safetensors", folder / "model-2.safetensors")
    assert once > 0
    assert model_card(str(folder)).parameter_count() == 2 * once


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recipe: [", "is not valid YAML"),
        (b"label: \xff", "is not valid YAML in UTF-8"),
        ("", "must be a mapping of names to values, not None"),
        ("- 1", "must be a mapping"),
        ("recipe: 3", "recipe must be a mapping"),
        ("recipe: {epoch: 3}", "did you mean epochs"),
        ("label: 3", "label must be a text"),
        ("tasks: 3", "tasks must be a mapping"),
        ("tasks: {arithmetic: 3}", "tasks: arithmetic must be a mapping"),
        ("tasks: {arithmetic: {parameters: 3}}", "parameters must be a mapping"),
        ("tasks: {gsm8k: {epochs: 0}}", "epochs=0: must be > 0"),
    ],
)
def test_a_mistake_in_a_card_names_the_card(folder: Path, text: str | bytes, message: str) -> None:
    card = folder / "card.yaml"
    card.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError) as error:
        model_card(str(folder))
    assert message in str(error.value)
    assert str(card) in str(error.value)
    assert "\n" not in str(error.value)


def made(folder: Path, text: str) -> ModelCard:
    (folder / "card.yaml").write_text(text)
    return model_card(str(folder))


def test_a_task_parameter_that_does_not_exist_names_the_card(folder: Path) -> None:
    card = made(folder, "tasks: {arithmetic: {parameters: {levle: easy}}, gsm8k: {}}")
    assert card.task_spec("gsm8k") == "gsm8k"
    assert card.task_spec("arithmetic[level=hard]") == "arithmetic[level=hard]"
    with pytest.raises(UserError, match=r"card.yaml sets arithmetic\[levle=easy\]: .*mean level"):
        card.task_spec("arithmetic")


def test_a_card_without_a_recipe_has_the_papers(folder: Path) -> None:
    assert made(folder, "label: mine").recipe("arithmetic").epochs == 15


def test_a_truncated_safetensors_file_is_named(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UserError, match=f"The weights {weights} are no whole safetensors file"):
        model_card(str(folder))


def test_a_cache_that_cannot_be_written_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "file"
    cache.touch()
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(cache))
    with pytest.raises(UserError, match=f"The cache folder {cache} cannot be written .*SMMD_BENCH"):
        model_card(str(folder))
