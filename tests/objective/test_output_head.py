"""Reading the head off transformers models: its logits are the model's own, or there is none."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from smmd_bench.objective.output_head import output_head

TINY = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
}


def make(config, model, **options):
    torch.manual_seed(0)
    return model(config(**TINY, **options)).train()


MODELS = {
    "tied": lambda: make(Qwen2Config, Qwen2ForCausalLM, tie_word_embeddings=True),
    "untied": lambda: make(LlamaConfig, LlamaForCausalLM, tie_word_embeddings=False),
    "bias": lambda: make(PhiConfig, PhiForCausalLM),
    "soft-cap": lambda: make(Gemma2Config, Gemma2ForCausalLM, final_logit_softcapping=0.05),
    "scale": lambda: make(CohereConfig, CohereForCausalLM, logit_scale=0.0625),
    "divisor": lambda: make(GraniteConfig, GraniteForCausalLM, logits_scaling=8.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_gives_the_models_logits(name):
    model = MODELS[name]()
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(5)
        if model.get_output_embeddings().bias is not None:
            model.get_output_embeddings().bias.normal_()
    head = output_head(model)
    assert head is not None
    assert head.plain == (name in ("tied", "untied"))
    ids = torch.arange(1, 13).view(2, 6)
    hidden = model.base_model(input_ids=ids).last_hidden_state
    torch.testing.assert_close(head.logits(hidden), model(input_ids=ids).logits)
    assert head.weight is model.get_output_embeddings().weight
    assert model.training


def test_reads_through_an_adapter():
    model = get_peft_model(
        MODELS["untied"](), LoraConfig(target_modules=["q_proj"], task_type="CAUSAL_LM")
    )
    head = output_head(model)
    assert head is not None
    assert head.weight is model.get_base_model().lm_head.weight
    assert not head.weight.requires_grad


def test_an_adapter_on_the_head_leaves_none():
    model = get_peft_model(
        MODELS["untied"](), LoraConfig(target_modules=["q_proj", "lm_head"], task_type="CAUSAL_LM")
    )
    assert output_head(model) is None


def test_logits_that_are_made_in_another_way_leave_none():
    model = MODELS["untied"]()

    class Warped(type(model)):
        def forward(self, *args, **kwargs):
            out = super().forward(*args, **kwargs)
            out.logits = out.logits * 1.1
            return out

    model.__class__ = Warped
    assert output_head(model) is None
