import dataclasses
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.cli.train_eval import command
from smmd_bench.errors import UserError
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.experiment.file import experiment_file
from smmd_bench.models.cards import model_card
from smmd_bench.storage.cell import BASE

from ..conftest import DATA

PLAIN = Experiment(tasks=("arithmetic",), losses=("ce", "smmd"))
KEYS = "tasks: [arithmetic]\nlosses: [ce]\n"
ALL = {"train", "validate", "select", "decode", "measure"}


def read(text: str, origin: str) -> Experiment:
    (experiment,) = experiment_file(text, origin).experiments
    return experiment


def only(experiment: Experiment, loss: str) -> dict[str, str]:
    (cell,) = [c for c in experiment.cells if c.loss == loss and c.seed in (0, 1)]
    return cell.parts


def test_the_matrix_is_the_base_and_every_loss_and_seed_of_each_model_and_task():
    cells = dataclasses.replace(PLAIN, seeds=(0, 1)).cells
    assert [(c.loss, c.seed) for c in cells] == [
        (BASE, 0), ("ce", 0), ("ce", 1), ("smmd", 0), ("smmd", 1),
    ]  # fmt: skip
    twice = dataclasses.replace(PLAIN, losses=("smmd", "smmd[sigma=2.0,lambda=3]"))
    assert len(twice.cells) == 2  # a default that is spelled out is the same cell


def test_what_is_given_twice_counts_once_whatever_its_spelling():
    again = dataclasses.replace(
        PLAIN, losses=("ce", "ce", "smmd[sigma=2.0,lambda=3]", "smmd"), seeds=(0, 0)
    )
    assert again == PLAIN
    assert again.name == PLAIN.name


def redone(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The stages whose parts differ."""
    return {stage for stage in before if before[stage] != after[stage]}


@pytest.mark.parametrize(
    ("change", "stages"),
    [
        ({"recipe": {"learning_rate": 0.5}}, {"train"}),
        ({"data_seed": 1}, {"train", "validate", "decode"}),
        ({"seeds": (1,)}, {"train"}),
        ({"recipe": {"validation_examples": 17}}, {"validate"}),
        ({"recipe": {"test_examples": 17}}, {"decode"}),
        ({"engine": "transformers"}, {"validate", "decode"}),
        ({"base": False}, set()),
        ({"losses": ("ce", "ntl", "smmd")}, set()),
    ],
)
def test_a_change_redoes_only_what_it_can_change(change, stages):
    changed = dataclasses.replace(PLAIN, **change)
    assert redone(only(PLAIN, "smmd"), only(changed, "smmd")) == stages


def test_another_version_of_the_probes_decodes_again(monkeypatch):
    before = only(PLAIN, "smmd")
    monkeypatch.setattr("smmd_bench.experiment.cell.PROBE_VERSION", 10**6)
    assert redone(before, only(dataclasses.replace(PLAIN), "smmd")) == {"decode"}


def test_two_losses_never_share_a_training():
    losses = ("ce", "ntl", "smmd", "smmd[sigma=1]", "ntl[lambda=1]")
    cells = dataclasses.replace(PLAIN, losses=losses).cells
    assert len({cell.parts["train"] for cell in cells}) == len(cells)


def test_the_weights_of_a_checkpoint_are_in_the_address(tmp_path):
    found = []
    for name, end in (("a", b""), ("b", b"\x01")):
        folder = shutil.copytree(model_card("builtin/tiny").folder, tmp_path / name)
        weights = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(weights[: len(weights) - len(end)] + end)
        found.append(only(dataclasses.replace(PLAIN, models=(str(folder),)), "ce"))
    assert found[0]["train"] != found[1]["train"]


@given(
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3).map(tuple),
    losses=st.lists(st.sampled_from(["ce", "ntl[lambda=1]", "smmd"]), min_size=1).map(tuple),
    base=st.booleans(),
    recipe=st.fixed_dictionaries({}, optional={"epochs": st.integers(1, 9)}),
)
def test_yaml_reads_back_as_the_same_experiment(seeds, losses, base, recipe):
    experiment = Experiment(("arithmetic",), losses, seeds=seeds, base=base, recipe=recipe)
    assert read(experiment.to_yaml(), "x.yaml") == experiment


def test_settings_as_text_and_as_numbers_are_the_same_experiment():
    texts = {"epochs": "3", "learning_rate": "2e-4", "group_by_length": "True"}
    values = {"epochs": 3, "learning_rate": 0.0002, "group_by_length": True}
    of_texts, of_values = (dataclasses.replace(PLAIN, recipe=r) for r in (texts, values))
    assert of_texts == of_values
    assert of_texts.name == of_values.name
    assert of_texts.to_yaml() == of_values.to_yaml()


def test_the_cards_task_parameters_apply_unless_the_spec_names_its_own():
    own = dataclasses.replace(PLAIN, tasks=("arithmetic[level=hard]",))
    assert own.cells[0].task == "arithmetic[level=hard]"
    assert PLAIN.cells[0].task == PLAIN.cells[0].card.task_spec("arithmetic")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: [arithmetic", "not valid YAML"),
        ("- 1", "must be a mapping"),
        ("tasks: [arithmetic]", "key losses is missing"),
        ("task: [arithmetic]\nlosses: [ce]", "Unknown experiment key 'task': did you mean tasks"),
        (f"{KEYS}seeds: [a]", "must be an integer, not 'a'"),
        (f"{KEYS}seeds: 2024-13-45", "not valid YAML"),
        (f"{KEYS}seeds: []", "seeds must have at least 1 item"),
        (f"{KEYS}seeds: [-1]", "greater than or equal to 0, not -1"),
        (f"{KEYS}seeds: [4294967296]", "less than or equal to 4294967295"),
        ("tasks: [arithmetic]\nlosses: [{ce: 1}]", r"key losses\[0\] must be text"),
        (f"{KEYS}recipe: 3", "recipe must be a mapping"),
        (f"{KEYS}recipe:", "recipe must be a mapping"),
        (f"{KEYS}recipe: {{epochs: [1]}}", "x.yaml: The recipe setting epochs must be an integer"),
        (f"{KEYS}engine: 3", "engine must be text"),
        (f"{KEYS}models: 7", r"models\[0\] must be text"),
        (f"{KEYS}data_seed: abc", "data_seed must be an integer"),
        (f"{KEYS}base: 'no'", "base must be true or false"),
    ],
)
def test_a_bad_file_says_what_is_wrong(text, message):
    with pytest.raises(UserError, match=message) as error:
        read(text, "x.yaml")
    assert "x.yaml" in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recipe": {"epoch": 1}}, "did you mean epochs"),
        ({"recipe": {"micro_batch_size": 3}}, "not a multiple"),
        ({"models": ("builtin/tini",)}, "did you mean builtin/tiny"),
        ({"models": ("./nowhere",)}, "does not exist"),
        ({"tasks": ("arithmatic",)}, "did you mean arithmetic"),
        ({"tasks": ("arithmetic[level=odd]",)}, "expected paper|easy"),
        ({"losses": ("smmd[sigma=0]",)}, "sigma must be from 0.001"),
        ({"engine": "vlm"}, "did you mean vllm"),
        ({"losses": ()}, "losses must have at least 1 item"),
    ],
)
def test_a_bad_experiment_is_one_sentence(change, message):
    with pytest.raises(UserError) as error:
        _ = [c.parts for c in dataclasses.replace(PLAIN, **change).cells]
    assert message in str(error.value)
    assert "\n" not in str(error.value)


WORDS = Experiment(tasks=("gsm8k[source=corpus]",), losses=("ce", "smmd"), recipe={"epochs": 1})


@pytest.fixture
def word_problems(monkeypatch):
    monkeypatch.setenv("SMMD_BENCH_DATA", str(DATA))


@pytest.mark.usefixtures("word_problems")
def test_a_task_brings_its_tests_of_transfer():
    cells = [(c.task, c.loss, c.trained_on) for c in WORDS.cells]
    assert cells == [
        *[("gsm8k", loss, None) for loss in (BASE, "ce", "smmd")],
        ("svamp", BASE, None),
        *[("svamp", loss, "gsm8k") for loss in ("ce", "smmd")],
    ]
    alone = dataclasses.replace(WORDS, transfers=False)
    assert [c.task for c in alone.cells] == ["gsm8k"] * 3
    for experiment in (WORDS, alone):
        assert read(experiment.to_yaml(), "x") == experiment


@pytest.mark.usefixtures("word_problems")
def test_a_test_of_transfer_follows_its_source():
    trained, tested = (c for c in WORDS.cells if c.loss == "smmd")
    assert tested.source == trained
    assert tested.parts.keys() == {"decode", "measure"}
    faster = dataclasses.replace(WORDS, recipe={"epochs": 1, "learning_rate": 0.5})
    _, again = (c for c in faster.cells if c.loss == "smmd")
    assert again.parts == tested.parts
    assert again.address != tested.address


@pytest.mark.usefixtures("word_problems")
def test_two_tasks_with_one_test_of_transfer_are_two_runs():
    tasks = ("gsm8k[source=corpus]", "gsm8k[source=corpus,calculator=keep]")
    both = dataclasses.replace(WORDS, tasks=tasks)
    with pytest.raises(UserError, match=r"gsm8k\[calculator=keep\] are both tested on svamp"):
        _ = both.cells
    assert len(dataclasses.replace(both, transfers=False).cells) == 6


@pytest.mark.usefixtures("word_problems")
def test_a_finite_task_has_no_more_examples_than_there_are():
    many = dataclasses.replace(WORDS, recipe={"train_examples": 12_000, "test_examples": 2_000})
    trained, tested = (c for c in many.cells if c.loss == "smmd")
    assert (trained.size("train"), trained.size("test")) == (6973, 1319)
    assert (tested.size("train"), tested.size("test")) == (0, 1000)


CLOCKS = {"train_examples": 8, "validation_examples": 4, "test_examples": 4}


def clocks(model: Path, **changes: object) -> Experiment:
    found = Experiment(("clock_time",), ("ce",), models=(str(model),), recipe=CLOCKS)
    return dataclasses.replace(found, **changes)


@pytest.mark.parametrize(
    ("tasks", "model"),
    [
        (("arithmetic",), "builtin/tiny"),
        (("clock_time",), "builtin/tiny-vl"),
        (("clock_time", "chartqa"), "builtin/tiny-vl"),
    ],
)
def test_the_default_model_suits_the_tasks(tasks, model):
    default = Experiment(tasks, ("ce",))
    named = Experiment(tasks, ("ce",), models=(model,))
    assert default == named
    assert default.name == named.name


def test_a_model_that_suits_not_all_tasks_is_refused_in_planning():
    with pytest.raises(UserError, match="arithmetic is a text task and clock_time a vision task"):
        Experiment(("clock_time", "arithmetic"), ("ce",))
    experiment = Experiment(("clock_time",), ("ce",), models=("builtin/tiny",))
    with pytest.raises(UserError, match=r"clock_time has images.*builtin/tiny reads text only"):
        _ = experiment.cells


def test_a_vision_model_takes_text_and_vision_tasks_together(tiny_vlm):
    both = clocks(tiny_vlm("qwen2_5_vl"), tasks=("arithmetic[level=easy]", "clock_time"))
    assert {cell.engine_settings.images for cell in both.cells} == {0, 1}


@pytest.mark.parametrize("limit", ["min_pixels", "max_pixels"])
def test_limits_on_pixels_redo_all_of_a_vision_task_and_nothing_of_a_text_task(tiny_vlm, limit):
    both = clocks(tiny_vlm("qwen2_5_vl"), tasks=("arithmetic[level=easy]", "clock_time"))
    limited = dataclasses.replace(both, recipe={**CLOCKS, limit: 5000})
    for before, after in zip(both.cells, limited.cells, strict=True):
        same = {s for s in before.parts if before.parts[s] == after.parts[s]}
        expected = {"select", "measure"} if before.reads_images else ALL
        assert same == expected & before.parts.keys(), before.label


def test_what_vllm_refuses_transformers_decodes_and_the_run_says_so(
    tiny_vlm, monkeypatch, tmp_path
):
    folder = tiny_vlm("mllama")
    asked = clocks(folder, models=(str(folder), str(tiny_vlm("qwen2_5_vl"))), base=False)
    refused, taken = asked.cells
    assert (refused.engine, taken.engine) == ("transformers", "vllm")
    assert taken.engine_note is None
    note = str(refused.engine_note)
    assert "is decoded with transformers, not vllm: vLLM 0.10.2 was the last" in note
    (named,) = clocks(folder, engine="transformers", base=False).cells
    assert named.parts == refused.parts
    assert named.engine_note is None
    monkeypatch.chdir(tmp_path)
    words = ["--task", "clock_time", "--losses", "ce", "--model", str(folder), "--dry-run"]
    assert note in CliRunner().invoke(command, words).output
