"""What a dry run says of a plan, and that it writes nothing."""

import json
import math
import re
import shutil

import pytest

from smmd_bench.models.cards import model_card
from smmd_bench.models.loading import add_adapter, load_model
from smmd_bench.models.recipe import Recipe
from smmd_bench.run.run_directory import RunDirectory

from .conftest import call, run_here

JOB = "train-eval --task arithmetic --losses"


@pytest.mark.parametrize(
    ("losses", "note"), [("ce,smmd", ""), ("ntl", "to compare with: add it")]
)
def test_a_dry_run_says_what_is_to_be_done_and_writes_nothing(losses, note, tmp_path):
    requested = f"{JOB} {losses} --decoders mean --seeds 3 --epochs 1"
    out = run_here(f"{requested} --dry-run", cwd=tmp_path)
    assert out.returncode == 0
    assert "N = 10" in out.stdout
    assert (
        "1 epoch, batch 64, rate 0.0005, seed 3, decoded greedily, mean; train"
        in out.stdout
    )
    notes = " ".join(out.stderr.split())
    assert note in notes
    assert ("Note: " in notes) == bool(note)

    # 5,000 examples in batches of 64, of which the first thousand are read
    assert re.search(
        r"A training of tiny .*: 79 steps, about 1\d\d,\d{3} tokens; it changes all "
        r"3,903,488 parameters; prompts without a chat template or system prompt\.",
        out.stdout,
    )
    assert re.search(
        r"Weights take up to .* of the disk, of which .* are free", out.stdout
    )

    output = run_here(f"{JOB} {losses} --dry-run --json", cwd=tmp_path).stdout
    base, *trained = [cell["to_do"][0] for cell in json.loads(output)["cells"]]
    assert base == "decode"
    assert {*trained} == {"train"}
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_says_the_weights_of_an_adapter_and_the_chat_template(tmp_path):
    base = shutil.copytree(model_card("builtin/tiny").folder, tmp_path / "chat")
    template = "{{ '<s>Be brief. ' + messages[0]['content'] + ' ->' }}"
    (base / "chat_template.jinja").write_text(template)
    words = "--method lora --set lora_rank=2 --set chat_template=true"
    out = run_here(f"{JOB} ce --model {base} {words} --dry-run", cwd=tmp_path)
    assert (
        "the chat template with all that it adds, '<s>Be brief. PROMPT ->'"
        in out.stdout
    )
    trained = re.search(r"it changes ([\d,]+) of 3,903,488 parameters", out.stdout)
    recipe = Recipe(lora_rank=2)
    model = add_adapter(load_model(base, "float32"), recipe)
    assert int(trained[1].replace(",", "")) == model.get_nb_trainable_parameters()[0]


def test_measure_needs_a_dry_run():
    assert "write --dry-run --measure" in run_here(f"{JOB} ce --measure").stderr


def test_a_dry_run_without_a_hub_says_what_it_can(tmp_path):
    words = "train-eval --task gsm8k,arithmetic --losses ce,smmd --seeds 0,1 --dry-run"
    hub = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "home")}
    cache = {"SMMD_BENCH_CACHE": str(tmp_path / "cache")}
    out = call(f"{words} --model Qwen/Qwen2.5-0.5B", cwd=tmp_path, **hub, **cache)
    assert out.returncode == 2
    steps = math.ceil(6973 / 16) * 5
    assert "Qwen/Qwen2.5-0.5B on gsm8k: ce, smmd; LoRA r=16, 5 epochs" in out.stdout
    assert "seeds 0, 1, epoch selected by" in out.stdout
    assert f"train 6,973, validation 500, test 1,319; {steps:,} steps a" in out.stdout
    assert "Qwen/Qwen2.5-0.5B on arithmetic: " in out.stdout
    (error,) = out.stderr.splitlines()
    assert "Not looked up: the model Qwen/Qwen2.5-0.5B, the data of gsm8k" in error
    assert "`smmd-bench prepare gsm8k --model Qwen/Qwen2.5-0.5B`" in error


def test_a_dry_run_asks_once_what_is_missing(monkeypatch, tmp_path):
    asked = []
    missing = RunDirectory.missing

    def count(run, cells):
        asked.append(run)
        return missing(run, cells)

    monkeypatch.setattr(RunDirectory, "missing", count)
    assert run_here(f"{JOB} ce --dry-run", cwd=tmp_path).returncode == 0
    assert len(asked) == 1
