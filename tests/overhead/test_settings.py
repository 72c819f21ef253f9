"""The settings and shapes of a measurement, and the rows that it trains on."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from smmd_bench.models.recipe import Recipe
from smmd_bench.overhead.settings import STOCK, find_geometry, named_geometries
from smmd_bench.overhead.worker import build_model, synthetic_rows, synthetic_vocabulary
from tests.conftest import expect_user_error
from tests.overhead.conftest import tiny_settings


def test_rows_and_folder_follow_from_the_settings():
    settings = tiny_settings(losses={"ce": 1, "smmd[sigma=1]": 1})
    assert settings.rows == (STOCK, "ce", "smmd[sigma=1]")
    assert settings.folder.name.startswith("overhead_tiny_cpu_smmd-sigma-1_")

    changes = ({"steps": 5}, {"losses": {"ce": 2, "smmd[sigma=1]": 1}})
    folders = {dataclasses.replace(settings, **change).folder for change in changes}
    assert len(folders | {settings.folder}) == 3


@pytest.mark.parametrize(
    ("name", "parameters", "numeric_tokens"),
    [
        # as the model card of Qwen2.5-1.5B says: 1.54B
        ("qwen2.5-1.5b", 1_543_714_304, 10),
        ("smollm3-3b", 3_075_098_624, 1000),  # 3.08B
    ],
)
def test_the_models_of_the_papers_table_have_their_size(
    name, parameters, numeric_tokens
):
    geometry = named_geometries()[name]
    model = build_model(geometry.config, Recipe(method="full"), "meta")
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert geometry.numeric_tokens == numeric_tokens


@pytest.mark.parametrize("form", ["file", "folder"])
def test_a_config_json_is_a_geometry_whose_n_is_not_known(form, tmp_path):
    config = {
        **named_geometries()["tiny"].config,
        "architectures": ["Qwen2ForCausalLM"],
    }
    file = tmp_path / "Mine-7B/config.json"
    file.parent.mkdir()
    file.write_text(json.dumps(config))
    geometry = find_geometry(str(file if form == "file" else file.parent))

    assert geometry.name == "Mine-7B"
    assert geometry.numeric_tokens is None
    for text, words in (
        ("{", "is not valid JSON"),
        ("{}", "no model_type and vocab_size"),
    ):
        file.write_text(text)
        with expect_user_error(words):
            find_geometry(str(file))


def test_labels_are_the_numeric_tokens_of_the_last_quarter_of_a_row():
    settings = tiny_settings(length=40)
    rows = synthetic_rows(settings, 0)
    assert len(rows) == settings.steps * settings.batch_size

    vocabulary = synthetic_vocabulary(512, 10)
    assert vocabulary.token_ids[0] == 0
    assert vocabulary.token_ids[-1] == 511
    for row in rows:
        ids = row["input_ids"]
        supervised = ids[30:].tolist()
        assert row["labels"].tolist() == [-100] * 30 + supervised
        numeric = torch.isin(ids, vocabulary.token_ids)
        assert numeric.tolist() == [False] * 30 + [True] * 10


def test_rows_follow_from_the_repeat():
    first, again, other = (
        synthetic_rows(tiny_settings(), repeat)[0] for repeat in (0, 0, 1)
    )
    assert torch.equal(first["input_ids"], again["input_ids"])
    assert not torch.equal(first["input_ids"], other["input_ids"])


def test_values_of_few_and_many_digits_are_alike_often():
    settings = tiny_settings(
        steps=100, length=240, config={"vocab_size": 2000}, numeric_tokens=1000
    )
    rows = synthetic_rows(settings, 0)
    labels = torch.stack([row["labels"][-60:] for row in rows])
    vocabulary = synthetic_vocabulary(2000, 1000)
    values = vocabulary.index_of(labels).numpy()

    assert values.min() == 0
    assert values.max() == 999

    digits = np.char.str_len(values.astype(str))
    for count in (1, 2, 3):
        assert (digits == count).mean() == pytest.approx(1 / 3, abs=0.03)
