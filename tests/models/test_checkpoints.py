"""What a checkpoint's geometry says of the memory that its training takes."""

from types import SimpleNamespace

import pytest
from transformers import LlamaConfig

from smmd_bench.cli import plan
from smmd_bench.experiment.experiment import Experiment
from smmd_bench.models.checkpoints import training_bytes
from smmd_bench.plugin_system.registry import load

MEASURED = [(896, 4864, 24, 1.48), (1536, 8960, 28, 3.11), (2048, 11008, 36, 5.04),
            (4096, 14336, 32, 6.85)]  # fmt: skip
"""Width, MLP, layers and MB a token of the four models of docs/cluster.md."""


@pytest.mark.parametrize(("hidden", "mlp", "layers", "megabytes"), MEASURED)
def test_the_estimate_is_that_of_the_measured_models(
    tmp_path, hidden, mlp, layers, megabytes
):
    LlamaConfig(
        hidden_size=hidden,
        intermediate_size=mlp,
        num_hidden_layers=layers,
    ).save_pretrained(tmp_path)
    at_rest = training_bytes(tmp_path, 10**9, 0)
    assert at_rest == 2 * 10**9 + 3 * 2**30
    a_token = training_bytes(tmp_path, 10**9, 1) - at_rest
    assert a_token == pytest.approx(megabytes * 1e6, rel=0.02)


@pytest.mark.parametrize(
    ("room", "spec", "recipe", "suggests"),
    [
        (2.01, "local", {}, True),
        (1.99, "local", {}, False),
        (9, "local", {"method": "full"}, False),
        (9, "local[trainings_per_gpu=2]", {}, False),
        (9, "local[gpus_per_cell=2]", {}, False),
        (9, "slurm", {}, True),
        (0, "local", {}, False),
    ],
)
def test_a_plan_suggests_to_share_a_gpu_that_has_room_for_two_trainings(
    monkeypatch, room, spec, recipe, suggests
):
    settings = {"dtype": "bfloat16", "method": "lora", **recipe}
    cells = Experiment(
        ("arithmetic",), ("ce", "smmd"), recipe=settings, base=False
    ).cells
    card, recipe = cells[0].card, cells[0].recipe
    tokens = recipe.micro_batch_size * recipe.max_length
    needed = training_bytes(card.folder, card.parameter_count(), tokens)

    # No GPU is here to be asked.
    gpu = SimpleNamespace(total_memory=int(room * needed))
    monkeypatch.setattr("torch.cuda.device_count", lambda: int(room > 0))
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: gpu)

    sentences = [*plan._suggest_sharing(cells, load("executors", spec))]
    assert bool(sentences) == suggests
    for sentence in sentences:
        assert "[trainings_per_gpu=2]` lets them share it." in sentence
