"""A checkpoint is loaded whole, or refused; an adapter merged into it is the same model."""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from smmd_bench.errors import UserError
from smmd_bench.models import loading, merging
from smmd_bench.models.cards import model_card
from smmd_bench.models.loading import add_adapter, load_model, require_all_weights
from smmd_bench.models.recipe import Recipe

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
        (lambda w: {k: v for k, v in w.items() if "mlp.down" not in k}, ["6 missing", DOWN]),
        (
            lambda w: {f"_orig_mod.{k}": v for k, v in w.items()},
            ["69 missing", "68 unexpected", "_orig_mod.model.embed_tokens.weight"],
        ),
        (lambda w: {**w, "v_head.weight": torch.ones(3)}, ["1 unexpected: v_head.weight"]),
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
    with_head = copy(lambda w: {**w, "lm_head.weight": w[embedding].clone()})
    require_all_weights(with_head)
    load_model(with_head, "float32")
    shutil.rmtree(with_head)
    other = copy(lambda w: {**w, "lm_head.weight": w[embedding] + 1})
    for load in (require_all_weights, lambda path: load_model(path, "float32")):
        with pytest.raises(UserError, match="tie_word_embeddings"):
            load(other)


def test_an_adapter_beside_a_model_is_refused_and_one_alone_is_named(copy):
    folder = copy()
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(UserError, match=r"a model and, by adapter_config\.json, an adapter"):
        model_card(str(folder))
    (folder / "config.json").unlink()
    with pytest.raises(UserError, match=r"an adapter alone.*--merged"):
        model_card(str(folder))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("targets", ["q_proj lm_head", "v_proj embed_tokens", "q_proj"])
def test_a_merged_model_is_the_base_with_its_adapter(tmp_path, targets, dtype):
    base = model_card("builtin/tiny").folder
    adapted = _adapter(base, targets, dtype, tmp_path / "adapter")
    merging.save_merged(base, tmp_path / "adapter", dtype, tmp_path / "merged")
    merged = load_model(tmp_path / "merged", dtype)
    ids = torch.arange(20, 75)[None]
    wanted, found = (m(ids).logits.float().log_softmax(-1) for m in (adapted, merged))
    assert float((wanted - found).detach().abs().max()) < (1e-3 if dtype == "float32" else 0.5)
    assert (wanted.argmax(-1) == found.argmax(-1)).float().mean() > 0.9
    assert merged.config.tie_word_embeddings == (targets == "q_proj")


def test_a_merge_that_makes_another_model_is_refused(tmp_path, monkeypatch):
    base = model_card("builtin/tiny").folder
    _adapter(base, "q_proj lm_head", "float32", tmp_path / "adapter")
    monkeypatch.setattr(merging, "_untie", lambda model: None)
    with pytest.raises(RuntimeError, match="is another model"):
        merging.load_merged(base, tmp_path / "adapter", "float32")


def _adapter(base, targets, dtype, folder):
    loading.quiet_libraries()
    torch.manual_seed(0)
    model = add_adapter(load_model(base, dtype), Recipe(lora_targets=targets)).eval()
    for name, weight in model.named_parameters():
        if "lora_" in name:
            weight.data.normal_(0, 0.05)
    model.save_pretrained(folder)
    return model


SHAPES = {
    "gpt2": ("c_attn c_proj c_fc", {"n_embd": 64, "n_layer": 2, "n_head": 2, "n_inner": None}),
    "gptj": ("q_proj fc_in", {"n_embd": 64, "n_layer": 2, "n_head": 2, "rotary_dim": 16}),
    "gpt_bigcode": ("c_attn c_proj", {"n_embd": 64, "n_layer": 2, "n_head": 2}),
    "mpt": ("Wqkv", {"d_model": 64, "n_layers": 2, "n_heads": 2}),
    "bloom": ("query_key_value dense", {"hidden_size": 64, "n_layer": 2, "n_head": 2}),
    "falcon": ("query_key_value", {}),
    "qwen2": ("q_proj lm_head", {"tie_word_embeddings": False}),
}


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # of gpt_bigcode
@pytest.mark.parametrize("kind", SHAPES)
def test_the_disk_that_an_adapter_takes_is_counted_for_any_architecture(tmp_path, kind):
    from transformers import AutoConfig, AutoTokenizer

    from smmd_bench.experiment.experiment import Experiment
    from smmd_bench.run.disk import disk_bytes

    from ..conftest import TOKENIZERS

    targets, shape = SHAPES[kind]
    small = {} if "n_embd" in shape or "d_model" in shape else {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 96, "num_key_value_heads": 1,
    }  # fmt: skip
    config = AutoConfig.for_model(kind, vocab_size=101, **{**small, **shape})
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / kind)
    AutoTokenizer.from_pretrained(TOKENIZERS / "digit").save_pretrained(tmp_path / kind)
    recipe = {"method": "lora", "lora_targets": targets, "lora_rank": 4}
    experiment = Experiment(
        ("arithmetic",), ("ce",), (str(tmp_path / kind),), recipe=recipe, base=False
    )
    (cell,) = experiment.cells
    loading.quiet_libraries()
    model = add_adapter(load_model(cell.card.folder, "float32"), cell.recipe)
    saved = 4 * sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert disk_bytes([cell], 1)[0] == saved
