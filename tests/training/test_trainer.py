"""The Trainer with the harness's objective, on a real checkpoint of two layers."""

import copy
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, TrainingArguments

import smmd_bench as sb
from smmd_bench.contracts import Answer, Example, NumericVocabulary
from smmd_bench.encoding.data import RightPaddingCollator, TokenisedExamples
from smmd_bench.encoding.prompts import encode_prompts, encode_targets
from smmd_bench.errors import UserError
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.models.recipe import Recipe
from smmd_bench.objective.output_head import causal_model
from smmd_bench.training.stage import training_arguments
from smmd_bench.training.trainer import ObjectiveTrainer, objective_forward


def sums(count: int) -> list[Example]:
    rng = random.Random(0)
    pairs = [(rng.randrange(1000), rng.randrange(10)) for _ in range(count)]
    return [
        Example(f"{i}", f"{a}+{b}=", str(a + b), Answer(Fraction(a + b)))
        for i, (a, b) in enumerate(pairs)
    ]


@pytest.fixture(scope="module")
def tiny(tiny_checkpoints: Callable[[str], Any]) -> Any:
    return tiny_checkpoints("digit")


def trained(
    tiny: Any, folder: Path, spec: str, *, micro: int, lora: bool = False
) -> tuple[Any, list[dict[str, float]]]:
    """The model after six steps of 8 examples, and its log."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(tiny.base)
    if lora:
        model = add_adapter(model, Recipe(lora_rank=4))
    loss = sb.load_loss(spec).bind(sb.numeric_vocabulary(tiny.tokenizer))
    trainer = ObjectiveTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(folder),
            per_device_train_batch_size=micro,
            gradient_accumulation_steps=8 // micro,
            max_steps=6,
            learning_rate=1e-3,
            logging_steps=1,
            report_to=[],
            disable_tqdm=True,
            save_strategy="no",
            remove_unused_columns=False,
            optim="sgd",
            use_cpu=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=TokenisedExamples(sums(48), tiny.tokenizer, 64),
        data_collator=RightPaddingCollator(tiny.tokenizer.pad_token_id),
        numeric_loss=loss,
        sampler=None,
    )
    with objective_forward(model, loss):
        trainer.train()
    return model, [line for line in trainer.state.log_history if "cross_entropy" in line]


@pytest.mark.parametrize("spec", ["ce", "ntl", "ntil", "gce", "dist2", "smmd"])
@pytest.mark.parametrize("lora", [False, True])
def test_micro_batches_change_nothing(tiny: Any, tmp_path: Path, spec: str, lora: bool) -> None:
    whole, log = trained(tiny, tmp_path, spec, micro=8, lora=lora)
    split, split_log = trained(tiny, tmp_path, spec, micro=2, lora=lora)
    moved = 0.0
    start = AutoModelForCausalLM.from_pretrained(tiny.base).state_dict()
    for (name, a), b in zip(whole.named_parameters(), split.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
        if a.requires_grad:
            a = a.detach()
            moved += float((a - start[name] if name in start else a).abs().sum())
    assert moved > 0
    for one, other in zip(log, split_log, strict=True):
        for key in ("loss", "cross_entropy", "tokens", "units"):
            assert one[key] == pytest.approx(other[key], rel=1e-4)


def losses(
    tiny: Any,
    folder: Path,
    spec: str,
    *,
    pad: int = 0,
    seen: list[int] | None = None,
    **recipe: Any,
) -> list[float]:
    """The total of each of the six steps of an epoch, trained as the stage does.

    `pad` columns more on the right of every batch; `seen` gets the calls of a layer.
    """
    options = Recipe(epochs=1, batch_size=8, learning_rate=1e-3, lora_rank=4).changed(recipe)
    options = options.changed({"micro_batch_size": recipe.get("micro_batch_size", 8)})
    torch.manual_seed(0)
    dtype = "float32" if options.method == "full" else options.dtype
    model = load_model(tiny.base, dtype)
    if options.method == "lora":
        model = add_adapter(model, options)
    calls = [0]
    loss = sb.load_loss(spec).bind(sb.numeric_vocabulary(tiny.tokenizer))
    collate = RightPaddingCollator(tiny.tokenizer.pad_token_id)

    def padded(rows: Any) -> dict[str, Any]:
        batch = collate(rows)
        for key, value in {"input_ids": 0, "attention_mask": 0, "labels": -100}.items():
            batch[key] = torch.nn.functional.pad(batch[key], (0, pad), value=value)
        return batch

    trainer = ObjectiveTrainer(
        model=model,
        args=training_arguments(options, 0, folder),
        train_dataset=TokenisedExamples(sums(48), tiny.tokenizer, 64),
        data_collator=padded,
        numeric_loss=loss,
        sampler=None,
    )
    with objective_forward(model, loss):
        causal_model(model).model.layers[0].register_forward_pre_hook(
            lambda *_: calls.__setitem__(0, calls[0] + 1)
        )
        trainer.train()
    if seen is not None:
        seen.append(calls[0])
    return [line["loss"] for line in trainer.state.log_history if "cross_entropy" in line]


@pytest.mark.parametrize("spec", ["ce", "smmd", "ntil"])
@pytest.mark.parametrize(
    ("method", "dtype", "within"),
    [("lora", "float32", 1e-5), ("full", "float32", 1e-5), ("lora", "bfloat16", 0.05),
     ("full", "bfloat16", 0.05)],
)  # fmt: skip
def test_no_option_that_saves_memory_changes_the_losses(
    tiny: Any, tmp_path: Path, spec: str, method: str, dtype: str, within: float
) -> None:
    plain: list[int] = []
    checkpointed: list[int] = []
    common = {"method": method, "dtype": dtype}
    reference = losses(tiny, tmp_path / "0", spec, seen=plain, **common)
    assert len(reference) == 6
    for case, options in enumerate(
        (
            {"micro_batch_size": 2},
            {"gradient_checkpointing": True, "seen": checkpointed},
            {"pad": 9},
        )
    ):
        found = losses(tiny, tmp_path / f"{case + 1}", spec, **common, **options)
        assert found == pytest.approx(reference, rel=within), options
    assert plain == [6]
    assert checkpointed == [12]  # each forward pass once more in the backward pass


@pytest.mark.parametrize("method", ["lora", "full"])
def test_bfloat16_is_close_to_float32(tiny: Any, tmp_path: Path, method: str) -> None:
    exact = losses(tiny, tmp_path / "0", "smmd", method=method)
    rounded = losses(tiny, tmp_path / "1", "smmd", method=method, dtype="bfloat16")
    assert rounded != exact
    assert rounded == pytest.approx(exact, rel=0.05)


def test_the_logged_cross_entropy_is_the_models_own(tiny: Any, tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny.base)
    data = TokenisedExamples(sums(8), tiny.tokenizer, 64)
    batch = RightPaddingCollator(tiny.tokenizer.pad_token_id)([data[i] for i in range(8)])
    with torch.no_grad():
        expected = float(model(**batch).loss)
    loss = sb.load_loss("smmd").bind(sb.numeric_vocabulary(tiny.tokenizer))
    with objective_forward(model, loss):
        out = model(**batch)["objective"]
    assert float(out.cross_entropy) == pytest.approx(expected, rel=1e-5)
    assert out.units == int(torch.isin(batch["labels"], loss.token_ids).sum())
    total = expected + 3 * float(out.auxiliary)
    assert float(out.total.detach()) == pytest.approx(total, rel=1e-5)


def test_the_models_forward_is_its_own_again_afterwards(tiny: Any) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny.base)
    ids = torch.tensor([[5, 6, 7]])
    before = model(input_ids=ids).logits
    loss = sb.load_loss("ce").bind(sb.numeric_vocabulary(tiny.tokenizer))
    with pytest.raises(ZeroDivisionError), objective_forward(model, loss):
        raise ZeroDivisionError
    torch.testing.assert_close(model(input_ids=ids).logits, before)


def test_only_the_target_is_supervised_and_it_ends_with_the_stop_token(tiny: Any) -> None:
    (example,) = sums(1)
    data = TokenisedExamples([example], tiny.tokenizer, 64)
    (prompt,) = encode_prompts(tiny.tokenizer, [example.prompt])
    (target,) = encode_targets(tiny.tokenizer, [example.target])
    assert target[-1] == tiny.tokenizer.eos_token_id
    assert data[0]["input_ids"].tolist() == [prompt + target]
    assert data[0]["labels"].tolist() == [[-100] * len(prompt) + target]


def test_padding_is_neither_attended_nor_supervised(tiny: Any) -> None:
    data = TokenisedExamples(sums(8), tiny.tokenizer, 64)
    batch = RightPaddingCollator(0)([data[i] for i in range(8)])
    lengths = batch["attention_mask"].sum(1)
    assert lengths.tolist() == data.lengths.tolist()
    for row, length in enumerate(lengths):
        assert (batch["labels"][row, length:] == -100).all()


def test_numeric_targets_are_counted(
    tiny_checkpoints: Callable[[str], Any],
) -> None:
    tokenizer = tiny_checkpoints("triple").tokenizer
    vocabulary = sb.numeric_vocabulary(tokenizer)
    targets = ("123", "7", "-1/7", "123007")  # tokens 123; 7; -, 1, /, 7; 123, 0, 0, 7
    data = TokenisedExamples(
        [Example(target, "7=", target, None) for target in targets], tokenizer, 64
    )
    counts = {"tokens": 14, "digit_tokens": 8, "outside": 0, "numeric": 8}
    for spec, covered in {"smmd": 8, "ntil": 6, "ce": 0}.items():
        loss = sb.load_loss(spec).bind(vocabulary)
        assert data.numeric_targets(tokenizer, loss) == {**counts, "covered": covered}
    kept = vocabulary.token_ids != tokenizer.convert_tokens_to_ids("7")
    without = NumericVocabulary(vocabulary.token_ids[kept], vocabulary.values[kept], "test")
    counts = data.numeric_targets(tokenizer, sb.load_loss("smmd").bind(without))
    assert counts == {
        "tokens": 14, "digit_tokens": 8, "outside": 3, "numeric": 5, "covered": 5
    }  # fmt: skip


def test_a_training_example_that_does_not_fit_is_refused(tiny: Any) -> None:
    with pytest.raises(UserError, match=r"Training example 0 has \d+ tokens, more than"):
        TokenisedExamples(sums(3), tiny.tokenizer, 5)


def test_a_chat_template_makes_the_prompt_a_users_turn(tiny: Any) -> None:
    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.chat_template = (
        "{% for m in messages %}({{ m.content }}){% endfor %}"
        "{% if add_generation_prompt %}={% endif %}"
    )
    example = Example("0", "2+3\n", " 5", Answer(Fraction(5)))
    data = TokenisedExamples([example], tokenizer, 64, chat=True)
    expected = [
        *tokenizer.encode("(2+3)=", add_special_tokens=False),
        *tokenizer.encode("5", add_special_tokens=False),
        tokenizer.eos_token_id,
    ]
    assert data[0]["input_ids"].tolist() == [expected]
    assert data[0]["labels"][0, -2:].tolist() == expected[-2:]
    assert (data[0]["labels"][0, :-2] == -100).all()


def test_a_tokenizer_without_a_chat_template_is_refused(tiny: Any) -> None:
    with pytest.raises(UserError, match="has no chat template: leave out chat_template=true"):
        encode_prompts(tiny.tokenizer, ["2+3"], chat=True)


def test_a_tokenizer_without_a_stop_token_is_refused(tiny: Any) -> None:
    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.eos_token = None
    with pytest.raises(UserError, match="has no end-of-sequence token"):
        encode_targets(tokenizer, ["1"])
