"""What a training step leaves out: casts that cancel, and walks over all modules."""

from contextlib import nullcontext

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer

from smmd_bench.encoding.data import RightPaddingCollator
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.training import trainer
from smmd_bench.training.trainer import ObjectiveTrainer, own_forward

from ..conftest import TOKENIZERS
from ..tiny_lms import tiny_config
from ..tiny_vlms import each
from .test_image_training import dataset
from .test_trainer import sums
from .trained import train

pytestmark = pytest.mark.engine
LORA = {"method": "lora", "dtype": "bfloat16", "epochs": 1, "batch_size": 8}


class CountCasts(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.casts = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.casts += "_to_copy" in str(function)
        return function(*arguments, **(options or {}))


def adapters(base, folder, data, tokenizer, **recipe):
    """The trained adapter, the log, and how many casts the training made."""
    collate = RightPaddingCollator(tokenizer.pad_token_id)
    options = {**LORA, **recipe}
    with CountCasts() as count:
        model, log = train(base, folder, data, collate, tokenizer, "smmd", **options)
    weights = {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}
    values = [(line["loss"], line["grad_norm"]) for line in log]
    return weights, values, count.casts


def require_equal_without_casts(monkeypatch, base, folder, data, tokenizer, **recipe):
    def trained():
        return adapters(base, folder, data, tokenizer, **recipe)

    weights, values, casts = trained()
    monkeypatch.setattr(
        trainer, "without_casts", lambda model, *, autocast: nullcontext()
    )
    stock_weights, stock_values, stock_casts = trained()

    assert values == stock_values
    assert weights.keys() == stock_weights.keys()
    learnt = False
    for name, weight in weights.items():
        assert torch.equal(weight, stock_weights[name]), name
        # B begins at zero.
        learnt |= "_B" in name and bool(weight.any())
    assert learnt
    return casts, stock_casts


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(
    ("architecture", "kind"),
    [("qwen2", "digit"), ("smollm3", "triple"), ("llama", "triple")],
)
def test_adapters_without_casts_are_equal_bit_by_bit(
    architecture, kind, checkpointing, tmp_path, monkeypatch
):
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZERS / kind)
    base = tmp_path / "base"
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(tiny_config(architecture, tokenizer))
    model.save_pretrained(base)
    tokenizer.save_pretrained(base)
    tokenizer = load_tokenizer(base)

    casts, stock = require_equal_without_casts(
        monkeypatch, base, tmp_path, sums(tokenizer), tokenizer,
        gradient_checkpointing=checkpointing,
    )  # fmt: skip
    # A layer has seven adapters. The input of each was cast twice in a forward pass and twice in
    # its gradient, which the input of the first layer does not have.
    steps, layers = 3, 2
    assert stock - casts >= steps * (layers * 7 * 4 - 6)


@each
def test_adapters_of_a_vision_model_without_casts_are_equal_bit_by_bit(
    tiny_vlm, architecture, times, tmp_path, monkeypatch
):
    base = tiny_vlm(architecture)
    data = dataset(times, base)
    casts, stock = require_equal_without_casts(
        monkeypatch, base, tmp_path, data, data.processor.tokenizer
    )
    assert casts < stock


def test_dropout_keeps_the_casts(tiny, tmp_path, monkeypatch):
    """Its mask would be another one in bfloat16."""
    data = sums(tiny.tokenizer)
    casts, stock = require_equal_without_casts(
        monkeypatch, tiny.base, tmp_path, data, tiny.tokenizer, lora_dropout=0.1
    )
    assert casts == stock


def adapted_layers(model):
    return [layer for layer in model.modules() if hasattr(layer, "lora_A")]


def test_a_canary_within_training_casts_its_inputs(tiny, tmp_path):
    """It has no autocast, under which alone the casts cancel."""
    logits = []
    ids = torch.tensor([tiny.tokenizer("12+3=")["input_ids"]])

    def watch(model):
        plain = ObjectiveTrainer._clip_grad_norm

        def clip(of_trainer, wrapped):
            with own_forward(model), torch.no_grad():
                logits.append(model(input_ids=ids).logits)
            layers = adapted_layers(model)
            assert layers
            for layer in layers:
                assert not layer.cast_input_dtype_enabled
            return plain(of_trainer, wrapped)

        patch.setattr(ObjectiveTrainer, "_clip_grad_norm", clip)

    collate = RightPaddingCollator(tiny.tokenizer.pad_token_id)
    data = sums(tiny.tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        model, _ = train(
            tiny.base, tmp_path, data, collate, tiny.tokenizer, "smmd",
            watch=watch, **LORA,
        )  # fmt: skip
    assert len(logits) == 3
    for layer in adapted_layers(model):
        assert layer.cast_input_dtype_enabled


def test_full_training_is_that_of_the_trainers_own_walks_bit_by_bit(
    tiny, tmp_path, monkeypatch
):
    """A norm that is summed in another order rounds otherwise."""
    collate = RightPaddingCollator(tiny.tokenizer.pad_token_id)
    data = sums(tiny.tokenizer)
    options = {"method": "full", "epochs": 2, "batch_size": 8, "max_grad_norm": 0.1}

    def trained():
        model, log = train(
            tiny.base, tmp_path, data, collate, tiny.tokenizer, "smmd", **options
        )
        return model.state_dict(), [line["grad_norm"] for line in log]

    weights, norms = trained()
    monkeypatch.setattr(trainer, "few_walks", lambda _: nullcontext())
    monkeypatch.setattr(ObjectiveTrainer, "_clip_grad_norm", Trainer._clip_grad_norm)
    stock_weights, stock_norms = trained()

    assert norms == stock_norms
    for name, weight in weights.items():
        assert torch.equal(weight, stock_weights[name]), name


def test_a_step_walks_over_no_modules(tiny, tmp_path, monkeypatch):
    """Trained parameters are a short list; a walk over a large model takes as long as layers do."""
    walks = []
    plain = torch.nn.Module._named_members
    modes, walks_before = [], []

    def note(layer, _):
        modes.append(layer.training)
        walks_before.append(sum(walks))

    def watch(model):
        def members(module, *arguments, **options):
            walks.append(module is model)
            return plain(module, *arguments, **options)

        monkeypatch.setattr(torch.nn.Module, "_named_members", members)
        first = model.get_base_model().model.layers[0]
        first.register_forward_pre_hook(note)

    collate = RightPaddingCollator(tiny.tokenizer.pad_token_id)
    model, _ = train(
        tiny.base, tmp_path, sums(tiny.tokenizer), collate, tiny.tokenizer, "smmd",
        watch=watch, **LORA,
    )  # fmt: skip

    assert modes == [True] * 3
    assert len({*walks_before}) == 1
    # Nothing of it stays on the model.
    model.eval()
    assert not any(module.training for module in model.modules())
