import json

import pytest

from smmd_bench.errors import UserError
from smmd_bench.models.recipe import Recipe
from smmd_bench.overhead.geometry import (
    build_model,
    check_geometry,
    find_geometry,
    named_geometries,
)


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


def test_lora_leaves_the_tied_head_frozen():
    model = build_model(named_geometries()["tiny"].config, Recipe(), "cpu")
    head = model.get_base_model().get_output_embeddings().weight
    assert head is model.get_base_model().get_input_embeddings().weight
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert not head.requires_grad
    assert trained
    assert all("lora" in name for name in trained)


@pytest.mark.parametrize("form", ["file", "folder"])
def test_a_config_json_is_a_geometry_whose_n_is_not_known(form, tmp_path):
    config = {**named_geometries()["tiny"].config, "architectures": ["Qwen2ForCausalLM"]}
    file = tmp_path / "Mine-7B" / "config.json"
    file.parent.mkdir()
    file.write_text(json.dumps(config))
    geometry = find_geometry(str(file if form == "file" else file.parent))
    assert (geometry.name, geometry.numeric_tokens) == ("Mine-7B", None)
    check_geometry(geometry.name, geometry.config, Recipe())


def test_an_unknown_name_gets_the_nearest_ones():
    with pytest.raises(UserError, match=r"did you mean qwen2\.5-1\.5b"):
        find_geometry("qwen2.5-15b")


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "cannot be read"), ("{}", "no model_type and vocab_size"), ("[]", "no model_type")],
)
def test_a_file_that_is_no_configuration_is_named(text, words, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(UserError, match=words):
        find_geometry(str(file))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"model_type": "no-such"}, "no-such"), ({"model_type": "bert"}, "cannot be built")],
)
def test_what_transformers_cannot_build_is_an_error_before_anything_starts(changes, words):
    config = {**named_geometries()["tiny"].config, **changes}
    with pytest.raises(UserError, match=words):
        check_geometry("mine", config, Recipe())
