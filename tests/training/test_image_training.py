"""Training on pictures: the objective, adapters, micro-batches, on each architecture."""

import pytest

import smmd_bench as sb
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.models.recipe import Recipe
from smmd_bench.models.tokenizers import load_processor
from smmd_bench.objective.output_head import output_head

from ..tiny_vlms import each
from .trained import moved, require_objective_of, require_same_log, train

pytestmark = pytest.mark.engine
TOWERS = ("visual", "vision_tower", "vision_model")


def dataset(times, base):
    processor = load_processor(base)
    return TokenisedExamples(times, processor.tokenizer, 256, processor=processor)


def batch_of(data, rows):
    return RightPaddingCollator(data.processor.tokenizer.pad_token_id)(
        [data[i] for i in rows]
    )


def trained(base, data, folder, *, readers=0, **recipe):
    """Two epochs of batches of four, with SMMD."""
    options = {"epochs": 2, "batch_size": 4, "schedule": "constant", **recipe}
    collate = RightPaddingCollator(data.processor.tokenizer.pad_token_id)
    tokenizer = data.processor.tokenizer
    return train(
        base, folder, data, collate, tokenizer, "smmd", readers=readers, **options
    )


@each
def test_the_chunked_objective_is_the_models_own_cross_entropy(
    tiny_vlm, architecture, times
):
    base = tiny_vlm(architecture)
    model = load_model(base, "float32")
    head = output_head(model)

    assert head is not None  # or all logits would be held
    assert head.plain

    data = dataset(times, base)
    loss = sb.load_loss("smmd").bind(sb.numeric_vocabulary(data.processor.tokenizer))
    for rows in ([0, 1, 2, 3], [4, 5]):
        batch = batch_of(data, rows)
        batch.pop("example")
        require_objective_of(model, batch, loss)


@each
def test_adapters_are_on_the_language_model_alone(tiny_vlm, architecture):
    model = add_adapter(
        load_model(tiny_vlm(architecture), "float32"), Recipe(lora_rank=2)
    )
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    assert all(".language_model." in name and ".lora_" in name for name in names)
    assert len(names) == model.config.get_text_config().num_hidden_layers * 7 * 2


@pytest.mark.parametrize(
    ("architecture", "method"),
    [("qwen2_5_vl", "lora"), ("mistral3", "full"), ("mllama", "lora")],
)
def test_training_learns_and_what_saves_memory_changes_nothing(
    tiny_vlm, architecture, method, times, tmp_path
):
    base = tiny_vlm(architecture)
    data = dataset(times, base)
    common = {"method": method, "learning_rate": 1e-2 if method == "lora" else 1e-3}
    model, log = trained(base, data, tmp_path / "1", **common)

    assert len(log) == 6
    assert log[-1]["cross_entropy"] < log[0]["cross_entropy"]
    for options in ({"micro_batch_size": 1}, {"gradient_checkpointing": True}):
        _, other = trained(base, data, tmp_path / "2", **common, **options)
        require_same_log(other, log, 2e-3)

    names = moved(model, base)
    if method == "full":
        assert any(any(tower in name for tower in TOWERS) for name in names)
        assert any("language_model" in name for name in names)
    else:
        assert all(".lora_" in name for name in names)
