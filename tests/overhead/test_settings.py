"""The settings and shapes of a measurement, and the rows that it trains on."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smmd_bench.errors import UserError
from smmd_bench.models.recipe import Recipe
from smmd_bench.overhead.settings import (
    STOCK,
    build_model,
    check_geometry,
    find_geometry,
    named_geometries,
    synthetic_vocabulary,
)
from smmd_bench.overhead.worker import _values, numeric_places, synthetic_rows
from tests.overhead.conftest import tiny_settings


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"drop": 4}, "leaves none of 4 steps"),
        ({"steps": 0, "drop": 0}, "--steps must be greater than or equal to 1, not 0"),
        ({"length": 1}, "--length must be greater than or equal to 2"),
        ({"supervised": float("nan")}, "--supervised must be less than or equal to 1, not nan"),
        ({"numeric": 1.5}, "--numeric must be less than or equal to 1"),
        ({"numeric_tokens": 1}, "--numeric-tokens must be greater than or equal to 2"),
        ({"numeric_tokens": 512}, "must be below the 512 tokens of the geometry tiny"),
    ],
)
def test_a_value_without_sense_is_named_by_its_flag(changes, words):
    with pytest.raises(UserError, match=words):
        tiny_settings(**changes)


def test_rows_and_folder_follow_from_the_settings():
    settings = tiny_settings(losses={"ce": 1, "smmd[sigma=1]": 1})
    assert settings.rows == (STOCK, "ce", "smmd[sigma=1]")
    assert settings.folder.name.startswith("overhead_tiny_cpu_smmd-sigma-1_")
    others = ({"steps": 5}, {"seed": 1}, {"threads": 2}, {"losses": {"ce": 2, "smmd[sigma=1]": 1}})
    folders = {dataclasses.replace(settings, **change).folder for change in others}
    assert len(folders | {settings.folder}) == 5
    supervised = [tiny_settings(supervised=share).supervised_tokens for share in (0.25, 1.0, 0.001)]
    assert supervised == [4, 15, 1]  # nobody predicts the first token


@pytest.mark.parametrize(
    ("name", "parameters", "numeric_tokens"),
    [
        ("qwen2.5-1.5b", 1_543_714_304, 10),  # as the model card of Qwen2.5-1.5B says: 1.54B
        ("smollm3-3b", 3_075_098_624, 1000),  # 3.08B
    ],
)
def test_the_models_of_the_papers_table_have_their_size(name, parameters, numeric_tokens):
    geometry = named_geometries()[name]
    model = build_model(geometry.config, Recipe(method="full"), "meta")
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert geometry.numeric_tokens == numeric_tokens


@pytest.mark.parametrize("form", ["file", "folder"])
def test_a_config_json_is_a_geometry_whose_n_is_not_known(form, tmp_path):
    config = {**named_geometries()["tiny"].config, "architectures": ["Qwen2ForCausalLM"]}
    file = tmp_path / "Mine-7B" / "config.json"
    file.parent.mkdir()
    file.write_text(json.dumps(config))
    geometry = find_geometry(str(file if form == "file" else file.parent))
    assert (geometry.name, geometry.numeric_tokens) == ("Mine-7B", None)
    check_geometry(geometry.name, geometry.config, Recipe(dtype="float32"))
    for text, words in (("{", "cannot be read"), ("[]", "no model_type and vocab_size")):
        file.write_text(text)
        with pytest.raises(UserError, match=words):
            find_geometry(str(file))
    with pytest.raises(UserError, match="cannot be built"):
        check_geometry("mine", {**config, "model_type": "bert"}, Recipe(dtype="float32"))


@given(st.integers(1, 600), st.floats(0.001, 1))
def test_the_share_of_numeric_places_is_the_one_asked_for(tokens, share):
    places = numeric_places(tokens, share)
    assert len(places) == tokens
    assert places.sum() == max(1, round(tokens * share))


@pytest.mark.parametrize(
    ("tokens", "share", "lengths"),
    [(64, 0.5, [4] * 8), (10, 0.5, [3, 2]), (20, 0.9, [6, 6, 6]), (64, 1.0, [64])],
)
def test_numbers_have_about_four_tokens_and_more_where_others_are_few(tokens, share, lengths):
    text = "".join("n" if numeric else " " for numeric in numeric_places(tokens, share))
    assert [len(run) for run in text.split()] == lengths


def test_labels_are_the_tokens_of_the_last_part_of_a_row_and_numeric_where_they_should_be():
    settings = tiny_settings(length=40, supervised=0.5, numeric=0.4)
    rows = synthetic_rows(settings, 0)
    assert len(rows) == settings.steps * settings.batch_size
    vocabulary = synthetic_vocabulary(512, 10)
    assert (vocabulary.token_ids[0], vocabulary.token_ids[-1]) == (0, 511)
    for row in rows:
        assert row["labels"][:20].eq(-100).all()
        assert torch.equal(row["labels"][20:], row["input_ids"][20:])
        numeric = torch.isin(row["input_ids"], vocabulary.token_ids).numpy()
        assert (numeric == np.r_[np.zeros(20, bool), numeric_places(20, 0.4)]).all()
    ids = [synthetic_rows(settings, repeat)[0]["input_ids"] for repeat in (0, 0, 1)]
    assert torch.equal(ids[0], ids[1])
    assert not torch.equal(ids[0], ids[2])


def test_values_of_few_and_many_digits_are_alike_often():
    values = _values(np.random.default_rng(0), 1000, (100, 60))
    shares = np.bincount(np.char.str_len(values.astype(str)).ravel(), minlength=4) / 6000
    assert shares[1:] == pytest.approx(1 / 3, abs=0.03)
    assert (values.min(), values.max()) == (0, 999)
