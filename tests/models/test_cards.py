import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest
from smmd_bench.reports._paper import paper_model

from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models import cards as model_cards
from smmd_bench.models.card_content import backbones
from smmd_bench.models.cards import ModelCard, model_card
from smmd_bench.models.recipe import paper_recipe
from smmd_bench.run.preflight import preflight

HUGE = f"0x{'f' * 5000}"
A_BILLION = "a: &a [x, x], " + ", ".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
"""Lists of lists, each named nine times in the next one."""
QWEN_VL = {"chat_template": True, "min_pixels": 3136, "max_pixels": 602112}


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(model_card("builtin/tiny").folder, tmp_path / "mine"))


def test_what_is_fetched_of_a_checkpoint():
    wanted = [
        "model-00001-of-00002.safetensors", "model.safetensors.index.json", "config.json",
        "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "added_tokens.json",
        "tekken.json", "chat_template.jinja", "chat_template.json", "processor_config.json",
        "preprocessor_config.json", "video_preprocessor_config.json",
    ]  # fmt: skip
    others = ["pytorch_model.bin", "README.md", "training_args.bin"]
    patterns = model_cards._PARTS
    fetched = {f for f in [*wanted, *others] if any(fnmatch(f, p) for p in patterns)}
    assert fetched == {*wanted}


@pytest.mark.parametrize(
    ("text", "said"), [("{", "not valid JSON .*"), ("[]", "not a JSON object")]
)
def test_a_broken_config_is_to_be_copied_again_not_deleted(text, said, tmp_path):
    folder = shutil.copytree(model_card("builtin/tiny").folder, tmp_path / "mine")
    (folder / "config.json").write_text(text)
    with pytest.raises(UserError, match=f"config.json is {said}: save or copy it again.$"):
        model_card(str(folder))


@pytest.mark.parametrize("name", ["added_tokens.json", "processor_config.json"])
def test_files_of_the_tokenizer_and_the_processor_are_in_the_identity(folder, name):
    before = model_card(str(folder)).identity
    (folder / name).write_text("{}")
    model_card.cache_clear()
    assert model_card(str(folder)).identity != before


def test_weights_are_counted_over_all_files(folder):
    once = model_card(str(folder)).parameter_count()
    shutil.copy(folder / "model.safetensors", folder / "model-2.safetensors")
    assert once > 0
    assert model_card(str(folder)).parameter_count() == 2 * once


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"label: \xff", "is not valid YAML in UTF-8"),
        ("", "is empty: write names and their values into it"),
        ("recipe: 3", "recipe must be a mapping"),
        ("recipe: {epoch: 3}", "did you mean epochs"),
        ("label: 3", "label must be text, not 3"),
        ("tasks: 3", "tasks must be a mapping"),
        ("tasks: {arithmetic: 3}", "tasks[arithmetic] must be a mapping"),
        ("tasks: {arithmetic: {parameters: 3}}", "tasks[arithmetic][parameters] must be a mapping"),
        ("setings: {epochs: 3}", "Unknown card key 'setings': did you mean settings"),
        ("settings: {epoch: 3}", "did you mean epochs"),
        ("params: 3", "params must be text"),
        ("numeric_tokens: ten", "numeric_tokens must be an integer, not 'ten'"),
        ("micro_batch_sizes: {24: 0}", "micro_batch_sizes[24] must be greater than 0, not 0"),
        ("label: !!int ''", "a value is not what its form or tag says"),
        ("label: !!timestamp now", "a value is not what its form or tag says"),
        ("label: " + "[" * 5000, "it is nested too deeply"),
        (f"numeric_tokens: {HUGE}", "not a number of thousands of digits"),
        (f"? {HUGE}\n: 1", "Unknown card key 'a number of thousands of digits'"),
        ("tasks: {arithmetic: {parameters: {level: [hard]}}}", "[level] must be text or a number"),
        (f"tasks: {{arithmetic: {{parameters: {{level: {HUGE}}}}}}}", "must be text or a number"),
        (f"label: {{{A_BILLION}}}", "label must be text, not {'a': ['x',"),
        (f"[{{{A_BILLION}}}]", "must be a mapping of names to values, not [{'a': ['x',"),
    ],
)
def test_a_mistake_in_a_card_names_the_card(folder, text, message):
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


def test_a_task_parameter_that_does_not_exist_names_the_card(folder):
    card = made(folder, "tasks: {arithmetic: {parameters: {levle: easy}}, gsm8k: {}}")
    assert card.task_spec("gsm8k") == "gsm8k"
    assert card.task_spec("arithmetic[level=hard]") == "arithmetic[level=hard]"
    with pytest.raises(UserError, match=r"card.yaml sets arithmetic\[levle=easy\]: .*mean level"):
        card.task_spec("arithmetic")


def test_a_card_without_a_recipe_has_the_papers(folder):
    assert made(folder, "label: mine").recipe("arithmetic").epochs == 15


def test_settings_come_on_top_of_the_recipe(folder):
    text = "settings: {dtype: bfloat16, lora_rank: 8}\ntasks: {gsm8k: {lora_rank: 4}}"
    card = made(folder, text)
    recipe = card.recipe("arithmetic")
    assert (recipe.epochs, recipe.dtype, recipe.lora_rank) == (15, "bfloat16", 8)
    assert card.recipe("gsm8k").lora_rank == 4
    model_card.cache_clear()
    recipe = made(folder, f"recipe: {{epochs: 2, lora_rank: 2}}\n{text}").recipe("arithmetic")
    assert (recipe.epochs, recipe.dtype, recipe.lora_rank) == (2, "bfloat16", 8)


@pytest.fixture
def hub(folder, monkeypatch):
    """Every name of the hub is a copy of `builtin/tiny`, whose tokenizer has N = 10."""
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(folder))
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
        ("mistralai/Ministral-3-3B-Base-2512", "Ministral-3-3B", 10, VISION, {"max_length": 4096}),
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
    paper = paper_model(name)
    assert paper is not None  # or no published value would stand beside its rows
    assert label == f"{paper.name}-{paper.params}"
    assert backbones()[name].params == paper.params
    card.require_numeric_tokens(n)


def test_another_name_of_the_hub_has_the_papers_recipe_alone(hub):
    card = model_card("someone/model")
    assert card.label == "someone/model"
    assert card.recipe("gsm8k") == paper_recipe("gsm8k")
    card.require_numeric_tokens(7)


@pytest.mark.parametrize("name", ["meta-llama/Meta-Llama-3-8B", "HuggingFaceTB/SmolLM3-3B-Base"])
def test_another_numeric_vocabulary_than_the_card_says_is_refused(hub, name):
    experiment = Experiment(
        tasks=("arithmetic",), losses=("ce",), models=(name,), recipe={"train_examples": 8}
    )
    with pytest.raises(UserError) as error:
        preflight(experiment.cells, lambda *_: None)
    assert f"tokenizer of {name} has 10 numeric tokens" in str(error.value)
    assert "its card says 1000" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_without_a_tokenizer_is_named_before_anything_is_loaded(folder):
    (folder / "tokenizer.json").unlink()  # its tokenizer_config.json stays
    with pytest.raises(UserError, match=f"folder '{folder}' has no tokenizer .*save_pretrained"):
        model_card(str(folder))


@pytest.mark.parametrize("name", ["tokenizer.model", "vocab.txt", "vocab.json", "tekken.json"])
def test_every_form_of_a_tokenizer_counts(folder, name):
    (folder / "tokenizer.json").rename(folder / name)
    assert model_card(str(folder)).folder == folder


def test_a_tokenizer_of_bytes_has_no_vocabulary_file(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    assert model_card(str(folder)).folder == folder


def test_a_truncated_safetensors_file_is_named(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UserError, match=f"The weights {weights} are not a whole safetensors file"):
        model_card(str(folder))


def test_a_cache_that_cannot_be_written_is_named(folder, tmp_path, monkeypatch):
    cache = tmp_path / "file"
    cache.touch()
    monkeypatch.setenv("SMMD_BENCH_CACHE", str(cache))
    with pytest.raises(UserError, match=f"The cache folder {cache} cannot be written .*SMMD_BENCH"):
        model_card(str(folder))


@pytest.mark.parametrize("name", ["~nobody-has-this-name/x", f"./{'x' * 300}"])
def test_a_name_that_no_folder_can_have_is_the_users_error(name):
    with pytest.raises(UserError, match="cannot be looked for"):
        model_card(name)
    with pytest.raises(UserError, match="cannot be looked for"):
        _ = Experiment(tasks=("arithmetic",), losses=("ce",), models=(name,)).name
