"""Training on pictures: rows and labels, the objective, adapters, micro-batches."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import smmd_bench as sb
from smmd_bench.contracts import Example
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples
from smmd_bench.encoding.pictures import expand
from smmd_bench.encoding.prompts import encode_image_prompts, encode_targets
from smmd_bench.errors import UserError
from smmd_bench.models.loading import add_adapter, load_model, load_tokenizer
from smmd_bench.models.processor import load_processor
from smmd_bench.models.recipe import Recipe
from smmd_bench.objective.output_head import output_head
from smmd_bench.training.stage import training_arguments
from smmd_bench.training.trainer import ObjectiveTrainer, objective_forward

from ..tiny_vlms import ARCHITECTURES, draw_picture

each = pytest.mark.parametrize("architecture", ARCHITECTURES)
SIZES = [(56, 56), (84, 84), (112, 56)]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    """Twelve pictures of three sizes, each with a time of its own."""
    folder = tmp_path_factory.mktemp("pictures")
    return [
        Example(
            f"{i}",
            "What time is it?" if i % 2 else "Time?",
            f" {i + 1}:{7 * i % 60:02d}",
            None,
            images=(draw_picture(folder / f"{i}.png", i, SIZES[i % 3]),),
        )
        for i in range(12)
    ]


def dataset(folder: Path, examples: list[Example], **options: Any) -> TokenisedExamples:
    processor = load_processor(folder)
    length = options.pop("max_length", 256)
    return TokenisedExamples(examples, processor.tokenizer, length, processor=processor, **options)


def batch_of(data: TokenisedExamples, rows: list[int]) -> dict[str, torch.Tensor]:
    return RightPaddingCollator(data.processor.tokenizer.pad_token_id)([data[i] for i in rows])


@each
def test_a_row_is_the_prompt_with_its_picture_and_the_target_alone_is_supervised(
    tiny_vlm: Callable[[str], Path], architecture: str, examples: list[Example]
) -> None:
    folder = tiny_vlm(architecture)
    data = dataset(folder, examples)
    processor = data.processor
    for i, example in enumerate(examples):
        (prompt,) = encode_image_prompts(processor, [example.prompt], [1])
        (target,) = encode_targets(processor.tokenizer, [example.target])
        row, expected = data[i], expand(processor, prompt + target, example.images)
        assert row["input_ids"].shape[1] == data.lengths[i]
        assert torch.equal(row["input_ids"], expected["input_ids"])
        labels = row["labels"][0].tolist()
        assert labels[-len(target) :] == target
        assert set(labels[: -len(target)]) == {-100}
    loss = sb.load_loss("smmd").bind(sb.numeric_vocabulary(load_tokenizer(folder)))
    digits = sum(c.isdigit() for example in examples for c in example.target)
    assert data.numeric_targets(processor.tokenizer, loss)["numeric"] == digits


@each
def test_the_chunked_objective_is_the_models_own_cross_entropy(
    tiny_vlm: Callable[[str], Path],
    architecture: str,
    examples: list[Example],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = load_model(tiny_vlm(architecture), "float32")
    head = output_head(model)
    assert head is not None  # or all logits would be held
    assert head.plain
    data = dataset(tiny_vlm(architecture), examples)
    loss = sb.load_loss("smmd").bind(sb.numeric_vocabulary(data.processor.tokenizer))
    for rows in ([0, 1, 2, 3], [4, 5]):
        batch = batch_of(data, rows)
        batch.pop("example")
        with torch.no_grad():
            expected = model(**batch)
            hidden = model.base_model(**{k: v for k, v in batch.items() if k != "labels"})
        torch.testing.assert_close(head.logits(hidden.last_hidden_state), expected.logits)
        with objective_forward(model, loss):
            out = model(**batch)["objective"]
        own = torch.nn.functional.cross_entropy(
            expected.logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten()
        )
        assert float(out.cross_entropy) == pytest.approx(float(own), rel=1e-5)
        assert out.units == int(torch.isin(batch["labels"], loss.token_ids).sum())


@each
def test_adapters_are_on_the_language_model_alone(
    tiny_vlm: Callable[[str], Path], architecture: str
) -> None:
    model = add_adapter(load_model(tiny_vlm(architecture), "float32"), Recipe(lora_rank=2))
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert trained
    assert all(".language_model." in name and ".lora_" in name for name in trained)
    layers = model.config.get_text_config().num_hidden_layers
    assert len(trained) == layers * 7 * 2


def trained(
    folder: Path,
    data: TokenisedExamples,
    out: Path,
    spec: str,
    *,
    micro: int,
    readers: int = 0,
    **recipe: Any,
) -> tuple[Any, list[dict[str, float]]]:
    """The model after two epochs of batches of four, and its log."""
    options = Recipe(epochs=2, batch_size=4, learning_rate=1e-2, lora_rank=4, schedule="constant")
    options = options.changed({"micro_batch_size": micro, **recipe})
    torch.manual_seed(0)
    model = load_model(folder, "float32" if options.method == "full" else options.dtype)
    if options.method == "lora":
        model = add_adapter(model, options)
    tokenizer = data.processor.tokenizer
    loss = sb.load_loss(spec).bind(sb.numeric_vocabulary(tokenizer))
    arguments = training_arguments(options, 0, out, saves=False, readers=readers)
    trainer = ObjectiveTrainer(
        model=model,
        args=arguments,
        train_dataset=data,
        data_collator=RightPaddingCollator(tokenizer.pad_token_id),
        numeric_loss=loss,
        sampler=None,
    )
    with objective_forward(model, loss):
        trainer.train()
    return model, [line for line in trainer.state.log_history if "cross_entropy" in line]


@each
@pytest.mark.parametrize("method", ["lora", "full"])
def test_training_learns_and_micro_batches_change_nothing(
    tiny_vlm: Callable[[str], Path],
    architecture: str,
    method: str,
    examples: list[Example],
    tmp_path: Path,
) -> None:
    folder = tiny_vlm(architecture)
    data = dataset(folder, examples)
    rate = 1e-2 if method == "lora" else 1e-3
    common = {"method": method, "learning_rate": rate}
    whole, log = trained(folder, data, tmp_path / "1", "smmd", micro=4, **common)
    _, other = trained(folder, data, tmp_path / "2", "smmd", micro=1, **common)
    assert len(log) == 6
    assert log[-1]["cross_entropy"] < log[0]["cross_entropy"]
    for one, two in zip(log, other, strict=True):
        for key in ("loss", "cross_entropy", "tokens", "units"):
            assert one[key] == pytest.approx(two[key], rel=2e-3), key
    start = load_model(folder, "float32").state_dict()
    moved = {
        name
        for name, parameter in whole.named_parameters()
        if name in start and not torch.equal(parameter, start[name])
    }
    if method == "full":
        towers = ("visual", "vision_tower", "vision_model")
        assert any(any(tower in name for tower in towers) for name in moved)
        assert any("language_model" in name for name in moved)
    else:
        assert not moved
        whole.save_pretrained(tmp_path / "adapter")
        assert (tmp_path / "adapter" / "adapter_model.safetensors").is_file()


def test_processes_that_read_ahead_change_nothing(
    tiny_vlm: Callable[[str], Path], examples: list[Example], tmp_path: Path
) -> None:
    folder = tiny_vlm("qwen2_5_vl")
    data = dataset(folder, examples)
    _, log = trained(folder, data, tmp_path / "1", "smmd", micro=2)
    _, ahead = trained(folder, data, tmp_path / "2", "smmd", micro=2, readers=2)
    assert [line["loss"] for line in ahead] == pytest.approx([line["loss"] for line in log])


@each
@pytest.mark.parametrize("method", ["lora", "full"])
def test_recomputed_activations_change_nothing(
    tiny_vlm: Callable[[str], Path],
    architecture: str,
    method: str,
    examples: list[Example],
    tmp_path: Path,
) -> None:
    folder = tiny_vlm(architecture)
    data = dataset(folder, examples)
    common = {"method": method, "learning_rate": 1e-3, "micro": 4}
    _, log = trained(folder, data, tmp_path / "1", "smmd", **common)
    _, again = trained(folder, data, tmp_path / "2", "smmd", gradient_checkpointing=True, **common)
    for one, two in zip(log, again, strict=True):
        assert one["loss"] == pytest.approx(two["loss"], rel=2e-3)


@each
@pytest.mark.parametrize("spec", ["ce", "gce", "ntl", "ntil", "smmd"])
def test_gradients_of_micro_batches_add_up(
    tiny_vlm: Callable[[str], Path], architecture: str, spec: str, examples: list[Example]
) -> None:
    folder = tiny_vlm(architecture)
    data = dataset(folder, examples)
    loss = sb.load_loss(spec).bind(sb.numeric_vocabulary(data.processor.tokenizer))
    torch.manual_seed(0)
    model = add_adapter(load_model(folder, "float32"), Recipe(lora_rank=4))
    for name, parameter in model.named_parameters():
        if ".lora_B." in name:
            torch.nn.init.normal_(parameter, std=0.02)
    found = []
    for parts in ([[0, 1, 2, 3]], [[0], [1, 2], [3]]):
        batches = [batch_of(data, rows) for rows in parts]
        tokens = sum(int(b["labels"].ne(-100).sum()) for b in batches)
        units = sum(sb.count_units(loss, b["labels"][:, 1:]) for b in batches)
        model.zero_grad()
        with objective_forward(model, loss):
            for batch in batches:
                keys = batch.pop("example")
                model(**batch, num_tokens=tokens, num_units=units, keys=keys)["loss"].backward()
        found.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert len(found[0]) > 0
    for one, two in zip(*found, strict=True):
        assert (one - two).norm() <= 1e-4 * one.norm() + 1e-7


def test_an_absent_picture_is_found_before_training_and_a_broken_one_where_it_is_read(
    tiny_vlm: Callable[[str], Path], examples: list[Example], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(examples[0].images[0].read_bytes()[:60])
    absent = tmp_path / "absent.png"
    bad = [Example("a", "?", "1", None, (broken,)), Example("b", "?", "2", None, (absent,))]
    with pytest.raises(UserError, match=f"The image {absent} does not exist"):
        dataset(tiny_vlm("mistral3"), [*examples, bad[1]])
    data = dataset(tiny_vlm("mistral3"), [*examples, bad[0]])
    with pytest.raises(UserError, match=f"The image {broken} cannot be read"):
        data[12]


@each
def test_a_question_that_holds_a_placeholder_is_refused_before_training(
    tiny_vlm: Callable[[str], Path], architecture: str, examples: list[Example]
) -> None:
    token = load_processor(tiny_vlm(architecture)).image_token
    bad = Example("odd", f"What is {token}?", "1", None, examples[0].images)
    with pytest.raises(UserError, match="Example odd has 2 placeholders"):
        dataset(tiny_vlm(architecture), [*examples, bad])


def test_lengths_count_the_tokens_of_pictures(
    tiny_vlm: Callable[[str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "white.png"
    Image.new("RGB", (112, 112), "white").save(path)
    example = Example("w", "?", "1", None, (path,))
    data = dataset(tiny_vlm("qwen2_5_vl"), [example])
    assert data.lengths.tolist() == [16 + 2 + 3]  # two about the picture; a prompt, answer and end
    with pytest.raises(UserError, match=r"Training example w has 21 tokens, more than 20"):
        dataset(tiny_vlm("qwen2_5_vl"), [example], max_length=20)
