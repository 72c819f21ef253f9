"""An experiment: its cells, and what each stage of them follows from."""

import re
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.experiment.experiment import Experiment, each_once
from smmd_bench.experiment.file import ExperimentFile, experiment_file
from smmd_bench.models.cards import model_card
from smmd_bench.run.cell_json import cell_from_json, cell_to_json
from smmd_bench.storage.cell import BASE
from tests.conftest import expect_user_error

PLAIN = Experiment(tasks=("arithmetic",), losses=("ce", "smmd"))
DECODED = replace(PLAIN, decoders=("median", "mean"))
KEYS = "tasks: [arithmetic]\nlosses: [ce]\n"
ALL = {"train", "validate", "select", "decode", "measure"}


def read(text, origin):
    (experiment,) = experiment_file(text, origin).experiments
    return experiment


def only(experiment, loss):
    (cell,) = [c for c in experiment.cells if c.loss == loss and c.seed in (0, 1)]
    return cell.parts


def test_the_matrix_is_the_base_and_every_loss_and_seed_of_each_model_and_task():
    cells = replace(PLAIN, seeds=(0, 1)).cells
    assert [(c.loss, c.seed) for c in cells] == [
        (BASE, 0), ("ce", 0), ("ce", 1), ("smmd", 0), ("smmd", 1),
    ]  # fmt: skip

    again = replace(
        PLAIN, losses=("ce", "ce", "smmd[sigma=2.0,lambda=3]", "smmd"), seeds=(0, 0)
    )
    assert again == PLAIN  # a default that is spelled out is the same loss
    assert again.name == PLAIN.name

    hard = replace(PLAIN, tasks=("arithmetic[level=hard]",))
    assert hard.cells[0].task == "arithmetic[level=hard]"
    assert PLAIN.cells[0].task == PLAIN.cells[0].card.task_spec("arithmetic")


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
        ({"decoders": ("mean",)}, {"measure"}),
    ],
)
def test_a_change_redoes_only_what_it_can_change(change, stages):
    original, changed = only(PLAIN, "smmd"), only(replace(PLAIN, **change), "smmd")
    assert {stage for stage in original if original[stage] != changed[stage]} == stages


def test_two_losses_never_share_a_training():
    losses = ("ce", "ntl", "smmd", "smmd[sigma=1]", "ntl[lambda=1]")
    cells = replace(PLAIN, losses=losses).cells
    assert len({cell.parts["train"] for cell in cells}) == len(cells)


def test_the_weights_of_a_checkpoint_are_in_the_address(tmp_path):
    addresses = []
    for name, end in (("a", b""), ("b", b"\x01")):
        folder = shutil.copytree(model_card("builtin/tiny").folder, tmp_path / name)
        weights = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(
            weights[: len(weights) - len(end)] + end
        )
        addresses.append(only(replace(PLAIN, models=(str(folder),)), "ce"))
    assert addresses[0]["train"] != addresses[1]["train"]


@given(
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3).map(tuple),
    losses=st.lists(st.sampled_from(["ce", "ntl[lambda=1]", "smmd"]), min_size=1).map(
        tuple
    ),
    base=st.booleans(),
    recipe=st.fixed_dictionaries({}, optional={"epochs": st.integers(1, 9)}),
)
def test_yaml_reads_back_as_the_same_experiment(seeds, losses, base, recipe):
    experiment = Experiment(
        ("arithmetic",), losses, seeds=seeds, base=base, recipe=recipe
    )
    assert read(experiment.to_yaml(), "x.yaml") == experiment


def test_settings_as_text_and_as_numbers_are_the_same_experiment():
    texts = {"epochs": "3", "learning_rate": "2e-4", "group_by_length": "True"}
    values = {"epochs": 3, "learning_rate": 0.0002, "group_by_length": True}
    of_texts, of_values = (replace(PLAIN, recipe=r) for r in (texts, values))
    assert of_texts == of_values
    assert of_texts.to_yaml() == of_values.to_yaml()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: [arithmetic", "not valid YAML"),
        ("- 1", "must be a mapping"),
        ("tasks: [arithmetic]", "key losses is missing"),
        (
            "task: [arithmetic]\nlosses: [ce]",
            "Unknown experiment key 'task': did you mean tasks",
        ),
        (f"{KEYS}seeds: [a]", "must be an integer, not 'a'"),
        (f"{KEYS}seeds: []", "seeds must have at least 1 item"),
        (f"{KEYS}seeds: [4294967296]", "less than or equal to 4294967295"),
        ("tasks: [arithmetic]\nlosses: [{ce: 1}]", r"key losses\[0\] must be text"),
        (f"{KEYS}recipe: 3", "recipe must be a mapping"),
        (
            f"{KEYS}recipe: {{epochs: [1]}}",
            "x.yaml: The recipe setting epochs must be an integer",
        ),
        (f"{KEYS}base: 'no'", "base must be true or false"),
        (f"{KEYS}base: no", "base must be true or false, not 'no'"),
        (f"{KEYS}recipe: {{epochs: 1:30}}", "epochs must be an integer, not '1:30'"),
        (
            f"{KEYS}seeds: [0]\nseeds: [1]",
            "key seeds stands in line 3 and in line 4: keep one",
        ),
        (
            f"{KEYS}decoders: medain",
            r"decoders\[0\] must be 'greedy', 'mean' or 'median', not",
        ),
    ],
)
def test_a_bad_file_says_what_is_wrong(text, message):
    with expect_user_error(message) as error:
        read(text, "x.yaml")
    assert error.match("x.yaml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recipe": {"micro_batch_size": 3}}, "not a multiple"),
        ({"models": ("./nowhere",)}, "does not exist"),
        ({"tasks": ("arithmetic[level=odd]",)}, "expected paper|easy"),
        ({"losses": ("smmd[sigma=0]",)}, "sigma must be from 0.001"),
    ],
)
def test_a_bad_experiment_is_one_sentence(change, message):
    with expect_user_error(re.escape(message)):
        _ = [c.parts for c in replace(PLAIN, **change).cells]


def test_decoders_add_beams_and_greedy_decoding_is_always_there():
    assert replace(PLAIN, decoders=("greedy",)) == PLAIN
    assert DECODED.decoders == ("greedy", "mean", "median")
    for plain, cell in zip(PLAIN.cells, DECODED.cells, strict=True):
        assert cell.decoders == ("mean", "median")
        parts = cell.parts
        assert cell_from_json(cell_to_json(cell)).parts == parts

        of_mean = replace(cell, decoders=("mean",)).parts
        assert of_mean["beams"] == parts["beams"]
        of_decoders = (plain.parts, parts, of_mean)
        measures = {each["measure"] for each in of_decoders}
        assert len(measures) == 3


def test_a_cell_of_several_parts_has_the_decoders_of_all_and_is_no_trial():
    by_median = replace(PLAIN, decoders=("median",))
    by_mean = replace(PLAIN, decoders=("mean",))
    cells = ExperimentFile(None, (PLAIN, by_median, by_mean)).cells
    assert cells == PLAIN.cells == DECODED.cells
    assert [cell.decoders for cell in cells] == [
        cell.decoders for cell in DECODED.cells
    ]

    ce = replace(PLAIN, losses=("ce",))
    row = replace(ce, recipe={"learning_rate": 1e-4}, decoders=("mean",))
    tuned = replace(ce, tune=("ce: learning_rate=1e-4,3e-4",))

    for cells in (row.cells + tuned.cells, tuned.cells + row.cells):
        unique = each_once(cells)
        (cell,) = [cell for cell in unique if cell.address == row.cells[-1].address]
        assert cell.trial is None
        assert cell.decoders == ("mean",)


WORDS = Experiment(
    tasks=("gsm8k[source=corpus]",), losses=("ce", "smmd"), recipe={"epochs": 1}
)


@pytest.mark.usefixtures("local_copies")
def test_a_task_brings_its_tests_of_transfer_which_follow_their_source():
    cells = [(c.task, c.loss, c.trained_on) for c in WORDS.cells]
    assert cells == [
        *[("gsm8k", loss, None) for loss in (BASE, "ce", "smmd")],
        ("svamp", BASE, None),
        *[("svamp", loss, "gsm8k") for loss in ("ce", "smmd")],
    ]
    assert [c.task for c in replace(WORDS, transfers=False).cells] == ["gsm8k"] * 3

    trained, tested = (c for c in WORDS.cells if c.loss == "smmd")
    assert tested.source == trained
    assert tested.parts.keys() == {"decode", "measure"}

    faster = replace(WORDS, recipe={"epochs": 1, "learning_rate": 0.5})
    _, again = (c for c in faster.cells if c.loss == "smmd")
    assert again.parts == tested.parts
    assert again.address != tested.address
    two_tasks = replace(
        WORDS, tasks=(*WORDS.tasks, "gsm8k[source=corpus,calculator=keep]")
    )
    with expect_user_error(r"gsm8k\[calculator=keep\] are both tested on svamp"):
        _ = two_tasks.cells


@pytest.mark.usefixtures("local_copies")
def test_a_finite_task_has_no_more_examples_than_there_are():
    many = replace(WORDS, recipe={"train_examples": 12_000, "test_examples": 2_000})
    trained, tested = (c for c in many.cells if c.loss == "smmd")
    assert trained.size("train") == 6973
    assert trained.size("test") == 1319
    assert tested.size("train") == 0
    assert tested.size("test") == 1000


CLOCKS = {"train_examples": 8, "validation_examples": 4, "test_examples": 4}


def clocks(model, **changes):
    of_clocks = Experiment(
        ("clock_time",), ("ce",), models=(str(model),), recipe=CLOCKS
    )
    return replace(of_clocks, **changes)


def test_the_default_model_suits_the_tasks():
    assert PLAIN.models == ("builtin/tiny",)
    assert Experiment(("clock_time", "chartqa"), ("ce",)).models == ("builtin/tiny-vl",)
    with expect_user_error("arithmetic is a text task and clock_time a vision task"):
        Experiment(("clock_time", "arithmetic"), ("ce",))
    with expect_user_error(r"clock_time has images.*builtin/tiny reads text only"):
        _ = replace(PLAIN, tasks=("clock_time",)).cells


@pytest.mark.parametrize("limit", ["min_pixels", "max_pixels"])
def test_limits_on_pixels_redo_all_of_a_vision_task_and_nothing_of_a_text_task(
    tiny_vlm, limit
):
    of_clocks = clocks(
        tiny_vlm("qwen2_5_vl"), tasks=("arithmetic[level=easy]", "clock_time")
    )
    assert {cell.engine_settings.images for cell in of_clocks.cells} == {0, 1}
    limited = replace(of_clocks, recipe={**CLOCKS, limit: 5000})
    for before, after in zip(of_clocks.cells, limited.cells, strict=True):
        unchanged = {s for s in before.parts if before.parts[s] == after.parts[s]}
        expected = {"select", "measure"} if before.reads_images else ALL
        assert unchanged == expected & before.parts.keys(), before.label


def test_what_vllm_refuses_transformers_decodes_and_a_note_says_so(tiny_vlm):
    folder = tiny_vlm("mllama")
    of_clocks = clocks(
        folder, models=(str(folder), str(tiny_vlm("qwen2_5_vl"))), base=False
    )
    refused, accepted = of_clocks.cells
    assert refused.engine == "transformers"
    assert accepted.engine == "vllm"
    assert accepted.engine_note is None

    note = str(refused.engine_note)
    assert "is decoded with transformers, not vllm: vLLM 0.10.2 was the last" in note

    (named,) = clocks(folder, engine="transformers", base=False).cells
    assert named.parts == refused.parts
    assert named.engine_note is None


def test_an_unknown_engine_is_named_before_a_model_is_looked_for():
    experiment = replace(PLAIN, engine="vlm", models=("nobody/nothing",))
    with expect_user_error("Unknown engine 'vlm'"):
        _ = experiment.cells
