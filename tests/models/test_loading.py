"""A checkpoint is loaded whole, or refused; an adapter merged into it is the same model."""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from smmd_bench.errors import UserError
from smmd_bench.models import loading
from smmd_bench.models.cards import model_card
from smmd_bench.models.loading import add_adapter, load_model, require_all_weights
from smmd_bench.models.recipe import Recipe, training_settings
from tests.conftest import expect_user_error

DOWN = "model.layers.0.mlp.down_proj.weight"


@pytest.fixture
def copy(tmp_path):
    """A copy of `builtin/tiny`, whose weights the argument changes."""

    def make(change=lambda weights: weights):
        folder = shutil.copytree(model_card("builtin/tiny").folder, tmp_path / "tiny")
        file = folder / "model.safetensors"
        save_file(change(load_file(file)), file, metadata={"format": "pt"})
        return folder

    return make


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda w: {k: v for k, v in w.items() if "mlp.down" not in k},
            ["6 missing", DOWN],
        ),
        (
            lambda w: {f"_orig_mod.{k}": v for k, v in w.items()},
            ["69 missing", "68 unexpected", "_orig_mod.model.embed_tokens.weight"],
        ),
        (
            lambda w: {**w, "v_head.weight": torch.ones(3)},
            ["1 unexpected: v_head.weight"],
        ),
        (lambda w: {**w, DOWN: torch.ones(7)}, ["1 of another shape: " + DOWN]),
    ],
)
def test_weights_that_would_be_random_or_unused_are_named(copy, change, said):
    folder = copy(change)
    for load in (require_all_weights, lambda path: load_model(path, "float32")):
        with pytest.raises(UserError) as error:
            load(folder)
        assert all(part in str(error.value) for part in said)


def test_causal_masks_that_old_files_hold_are_no_weights(copy):
    masks = ("transformer.h.0.attn.masked_bias", "transformer.h.0.attn.attention.bias")
    folder = copy(lambda w: {**w, **{name: torch.ones(1, 1, 4, 4) for name in masks}})
    require_all_weights(folder)


def test_a_head_in_the_file_of_a_tied_model_must_be_the_embedding(copy):
    embedding = "model.embed_tokens.weight"
    loads = (require_all_weights, lambda path: load_model(path, "float32"))
    with_head = copy(lambda w: {**w, "lm_head.weight": w[embedding].clone()})
    for load in loads:
        load(with_head)

    shutil.rmtree(with_head)
    other = copy(lambda w: {**w, "lm_head.weight": w[embedding] + 1})
    for load in loads:
        with expect_user_error("tie_word_embeddings"):
            load(other)


def test_an_adapter_beside_a_model_and_quantised_weights_are_refused(copy):
    folder = copy()
    (folder / "adapter_config.json").write_text("{}")
    with expect_user_error(r"a model and, by adapter_config\.json, an adapter"):
        model_card(str(folder))
    (folder / "config.json").write_text(
        '{"quantization_config": {"quant_method": "fp8"}}'
    )
    with expect_user_error("are quantised, and no quantised weights are trained"):
        model_card(str(folder))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("targets", ["q_proj lm_head", "v_proj embed_tokens", "q_proj"])
def test_a_merged_model_is_the_base_with_its_adapter(tmp_path, targets, dtype):
    base = model_card("builtin/tiny").folder
    adapter, folder = tmp_path / "adapter", tmp_path / "merged"
    adapted = _adapter(base, targets, dtype, adapter)
    loading.save_merged(base, adapter, dtype, folder)
    # The recipe of the base's card is not the merged model's.
    assert (base / "card.yaml").exists()
    assert not (folder / "card.yaml").exists()
    merged = load_model(folder, dtype)

    expected = _log_p(adapted)
    result = _log_p(merged)
    largest = (expected - result).abs().max()
    assert largest < (1e-3 if dtype == "float32" else 0.5)
    agrees = expected.argmax(-1) == result.argmax(-1)
    assert agrees.float().mean() > 0.9
    assert merged.config.tie_word_embeddings == (targets == "q_proj")


@torch.no_grad()
def _log_p(model):
    """Of the next token, behind some ids."""
    ids = torch.arange(20, 75)[None]
    return model(ids).logits.float().log_softmax(-1)


def _adapter(base, targets, dtype, folder):
    loading.quiet_libraries()
    torch.manual_seed(0)
    model = add_adapter(load_model(base, dtype), Recipe(lora_targets=targets)).eval()
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.data.normal_(0, 0.05)
    model.save_pretrained(folder)
    return model


def test_another_attention_is_part_of_the_training_and_the_usual_one_of_none():
    folder, plain = model_card("builtin/tiny").folder, Recipe()
    assert load_model(folder, "float32", "eager").config._attn_implementation == "eager"
    assert "attn_implementation" not in training_settings(plain)
    eager = plain.changed({"attn_implementation": "eager"})
    assert training_settings(eager)["attn_implementation"] == "eager"
    with expect_user_error("cannot be loaded"):
        require_all_weights(folder, "of_nobody")


@pytest.mark.parametrize("name", ["builtin/tiny", "builtin/tiny-vl"])
@pytest.mark.parametrize(
    "target", ["q_proj", "self_attn.v_proj", "qproj", "proj", "q_proj.weight", ""]
)
def test_a_target_is_refused_where_peft_finds_no_layer_for_it(name, target):
    card = model_card(name)
    try:
        add_adapter(load_model(card.folder, "float32"), Recipe(lora_targets=target))
        peft_finds_it = True
    except (ValueError, UserError):
        peft_finds_it = False

    if peft_finds_it:
        loading.require_lora_targets(card, target)
    else:
        with expect_user_error(f"'{target}', and no layer of .* is called so"):
            loading.require_lora_targets(card, target)


def test_one_wrong_target_of_several_is_named_with_the_nearest_layers():
    card = model_card("builtin/tiny")
    loading.require_lora_targets(card, Recipe().lora_targets)
    with expect_user_error(r"'vproj', .*: did you mean v_proj"):
        loading.require_lora_targets(card, "q_proj vproj")
