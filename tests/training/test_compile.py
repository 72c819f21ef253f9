"""Decoder layers that torch compiles: the gradients, the files and the canary are those without."""

import pytest
import torch
from safetensors import safe_open
from torch._dynamo.utils import counters

import smmd_bench as sb
from smmd_bench.encoding.data import RightPaddingCollator
from smmd_bench.models.loading import add_adapter, load_model, load_trained
from smmd_bench.models.recipe import Recipe, recipe_content, training_settings
from smmd_bench.objective.supervised import supervised_targets
from smmd_bench.storage.files import read_json
from smmd_bench.training import faster_steps
from smmd_bench.training.canary import make_canary
from smmd_bench.training.canary_texts import CanaryTexts
from smmd_bench.training.faster_steps import compile_layers
from smmd_bench.training.stage import train_cell
from smmd_bench.training.trainer import objective_forward

from ..conftest import expect_user_error
from .test_trainer import sums

pytestmark = [
    pytest.mark.engine,
    # torch's compiler imports what torch deprecates, and looks at gradients that are not there.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The .grad attr"),
]


def model_of(base, method):
    """In float64; its norms compute in float32, whose rounding is what remains."""
    torch.manual_seed(0)
    model = load_model(base, "float32")
    if method == "lora":
        model = add_adapter(model, Recipe(lora_rank=4))
        for name, parameter in model.named_parameters():
            if "lora_B" in name:  # zero: no gradient would reach A
                torch.nn.init.normal_(parameter, std=0.1)
    return model.double().train()


def gradients(model, tokenizer, widths):
    """Of batches that are padded to these widths, one after the other."""
    loss = sb.load_loss("smmd").bind(sb.numeric_vocabulary(tokenizer))
    collate = RightPaddingCollator(tokenizer.pad_token_id)
    data = sums(tokenizer)
    with objective_forward(model, loss):
        for number, width in enumerate(widths):
            rows = range(4 * number, 4 * number + 4)
            batch = collate([data[row] for row in rows])
            padding = (0, width - batch["labels"].shape[1])

            labels = torch.nn.functional.pad(batch["labels"], padding, value=-100)
            targets = supervised_targets(loss, labels[:, 1:])
            inputs = {}
            for name in ("input_ids", "attention_mask"):
                inputs[name] = torch.nn.functional.pad(batch[name], padding)
            output = model(**inputs, targets=targets)
            output["loss"].backward()

    trained = [(n, p) for n, p in model.named_parameters() if p.grad is not None]
    return {name: parameter.grad for name, parameter in trained}


@pytest.mark.long
@pytest.mark.parametrize(
    "method", ["lora", pytest.param("full", marks=pytest.mark.slow)]
)
def test_gradients_are_those_of_eager_layers_and_lengths_need_no_new_graph(
    tiny, method
):
    widths = (12, 17, 23, 14, 31)
    expected = gradients(model_of(tiny.base, method), tiny.tokenizer, widths)
    torch._dynamo.reset()
    counters.clear()
    model = model_of(tiny.base, method)
    compile_layers(model)
    compiled = gradients(model, tiny.tokenizer, widths)

    assert compiled.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(compiled[name], gradient, rtol=1e-4, atol=1e-5)
    assert not counters["graph_break"]
    # The first layer has another graph, because its input needs no gradient with adapters.
    assert counters["stats"]["unique_graphs"] <= 2 + 2


SMALL = {
    "epochs": 2, "train_examples": 40, "validation_examples": 2, "test_examples": 2,
    "batch_size": 8, "micro_batch_size": 8, "method": "lora", "compile": True,
}  # fmt: skip


@pytest.mark.slow
def test_a_compiled_training_is_killed_resumed_and_has_the_files_of_any(tmp_path):
    """Weights keep their names; the canary of each epoch is what the saved adapter says."""

    def progress(what, done, total):
        if what.startswith("train ") and (done, total) == (7, 10) and not stopped:
            stopped.append(done)
            raise KeyboardInterrupt

    stopped = []
    (cell,) = sb.Experiment(
        tasks=("arithmetic",), losses=("smmd",), recipe=SMALL, base=False
    ).cells
    with pytest.raises(KeyboardInterrupt):
        train_cell(cell, tmp_path, progress)
    train_cell(cell, tmp_path, progress)

    stored = cell.stored(tmp_path)
    assert stored.weights.keys() == {1, 2}
    file = stored.epoch(2) / "adapter_model.safetensors"
    with safe_open(file, "pt") as weights:
        assert weights.keys()
        assert not any("_orig_mod" in name for name in weights.keys())  # noqa: SIM118

    saved = load_trained(stored.epoch(2), base=cell.card.folder, recipe=cell.recipe)
    canary = read_json(stored.trained / "canaries.json")["epochs"]["2"]
    scored = [len(row) for row in canary["log_probabilities"]]
    texts = CanaryTexts(canary["token_ids"], scored)
    again = make_canary(saved, texts)
    for row, expected in zip(
        again.log_probabilities, canary["log_probabilities"], strict=True
    ):
        assert row == pytest.approx(expected, abs=1e-5)


def test_an_address_has_it_only_where_it_is_set():
    plain = Recipe()
    compiled = plain.changed({"compile": "true"})
    assert "compile" not in {**training_settings(plain), **recipe_content(plain)}
    assert training_settings(compiled)["compile"] is True
    assert recipe_content(compiled)["compile"] is True


@pytest.mark.parametrize(
    ("task", "settings", "sentence"),
    [
        ("arithmetic", {"gradient_checkpointing": True}, "leave one out"),
        ("clock_time", {}, "not tried with pictures, which clock_time has"),
    ],
)
def test_what_was_never_tried_with_it_is_refused(task, settings, sentence):
    recipe = {"compile": True, **settings}
    with expect_user_error(sentence):
        sb.Experiment(tasks=(task,), losses=("ce",), recipe=recipe).cells  # noqa: B018


def test_a_machine_without_a_compiler_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with expect_user_error(r"needs a C\+\+ compiler, .* install g\+\+"):
        compile_layers(torch.nn.Linear(1, 1))


def test_a_model_without_marked_layers_and_fsdp2_are_refused(monkeypatch):
    with expect_user_error("marks no layers of Linear"):
        compile_layers(torch.nn.Linear(1, 1))
    monkeypatch.setattr(faster_steps, "is_sharded", lambda: True)
    with expect_user_error("strategy=fsdp2"):
        compile_layers(torch.nn.Linear(1, 1))
