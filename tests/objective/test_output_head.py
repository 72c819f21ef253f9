"""Reading the head off transformers models: its logits are the model's own, or there is none."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

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


MODELS = {
    "tied": ("qwen2", {"tie_word_embeddings": True}),
    "untied": ("llama", {"tie_word_embeddings": False}),
    "bias": ("phi", {}),
    "soft-cap": ("gemma2", {"final_logit_softcapping": 0.05}),
    "scale": ("cohere", {"logit_scale": 0.0625}),
    "divisor": ("granite", {"logits_scaling": 8.0}),
}


def make(name):
    architecture, options = MODELS[name]
    torch.manual_seed(0)
    config = AutoConfig.for_model(architecture, **TINY, **options)
    return AutoModelForCausalLM.from_config(config).train()


def adapted(*targets):
    adapter = LoraConfig(target_modules=[*targets], task_type="CAUSAL_LM")
    return get_peft_model(make("untied"), adapter)


@pytest.mark.parametrize("name", MODELS)
def test_gives_the_models_logits(name):
    model = make(name)
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


def test_an_adapter_on_the_head_or_logits_that_are_made_in_another_way_leave_none():
    assert output_head(adapted("q_proj", "lm_head")) is None

    model = make("untied")

    class Warped(type(model)):
        def forward(self, *args, **kwargs):
            out = super().forward(*args, **kwargs)
            out.logits = out.logits * 1.1
            return out

    model.__class__ = Warped
    assert output_head(model) is None
