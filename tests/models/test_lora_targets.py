"""Each target of LoRA names a layer that PEFT puts an adapter on."""

import pytest

from smmd_bench.errors import UserError
from smmd_bench.models.cards import model_card
from smmd_bench.models.loading import add_adapter, load_model, require_lora_targets
from smmd_bench.models.recipe import Recipe

MODELS = ("builtin/tiny", "builtin/tiny-vl")
TARGETS = ("q_proj", "self_attn.v_proj", "qproj", "proj", "q_proj.weight", "")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_refused_where_peft_finds_no_layer_for_it(name, target):
    card = model_card(name)
    try:
        add_adapter(load_model(card.folder, "float32"), Recipe(lora_targets=target))
        found = True
    except (ValueError, UserError):
        found = False
    if found:
        require_lora_targets(card, target)
    else:
        with pytest.raises(UserError, match=f"'{target}', and no layer of .* is called so"):
            require_lora_targets(card, target)


def test_one_wrong_target_of_several_is_named_with_the_nearest_layers():
    card = model_card("builtin/tiny")
    require_lora_targets(card, Recipe().lora_targets)
    with pytest.raises(UserError, match=r"'vproj', .*: did you mean v_proj"):
        require_lora_targets(card, "q_proj vproj")
