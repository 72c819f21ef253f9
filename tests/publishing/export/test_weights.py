"""Exported weights load, and are those of the cell."""

import json
from pathlib import Path

import pytest
import torch
from peft import AutoPeftModelForCausalLM, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from smmd_bench.contracts import Checkpoint, EngineSettings
from smmd_bench.errors import UserError
from smmd_bench.plugin_system.registry import load_engine
from smmd_bench.results.frames import read_run
from smmd_bench.storage.files import read_json, write_json
from smmd_bench.training.canary import make_canary

from .conftest import export_all

PROMPTS = ("12+34=", "Question: 7 apples. How many?\nAnswer:")


def logits(model, folder: Path) -> list[torch.Tensor]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return [model(**tokenizer(p, return_tensors="pt")).logits for p in PROMPTS]


def of_the_cell(run: Path, base: Path) -> PeftModel:
    cells = read_run(run).cells
    (address,) = cells.loc[cells["loss"] == "smmd", "address"]
    checkpoint = run / "cells" / address / "checkpoint"
    return PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), checkpoint).eval()


def test_an_adapter_gives_the_logits_of_the_cell(make_run, export, checkpoints):
    run = make_run()
    adapter = AutoPeftModelForCausalLM.from_pretrained(export(run)).eval()
    own = logits(of_the_cell(run, checkpoints.base), checkpoints.base)
    for found, expected in zip(logits(adapter, checkpoints.base), own, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_merged_model_is_base_and_adapter_without_peft(make_run, export, checkpoints):
    run = make_run()
    folder = export(run, "--merged")
    assert not list(folder.glob("adapter*"))
    merged = AutoModelForCausalLM.from_pretrained(folder).eval()
    own = logits(of_the_cell(run, checkpoints.base), checkpoints.base)
    for found, expected in zip(logits(merged, folder), own, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    base = logits(AutoModelForCausalLM.from_pretrained(checkpoints.base), checkpoints.base)
    assert not torch.allclose(base[0], own[0], atol=0.1)


def test_an_adapter_on_a_hub_model_names_it_and_its_commit(make_run, export, checkpoints):
    run = make_run()
    manifest = read_json(run / "manifest.json")
    hub = {"hub": "Qwen/Qwen2.5-0.5B", "commit": "abc123"}
    write_json(run / "manifest.json", {**manifest, "models": {str(checkpoints.base): hub}})
    folder = export(run)
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "Qwen/Qwen2.5-0.5B"
    assert config["revision"] == "abc123"
    files = (folder / "adapter_config.json", folder / "README.md")
    assert not any(str(checkpoints.base) in file.read_text() for file in files)


def test_an_adapter_is_not_merged_into_a_base_that_has_changed(make_run, export, checkpoints):
    run = make_run()
    manifest = read_json(run / "manifest.json")
    models = {str(checkpoints.base): {"digest": "another"}}
    write_json(run / "manifest.json", {**manifest, "models": models})
    with pytest.raises(UserError, match=r"has changed since .* was made"):
        export(run, "--merged")


def test_a_link_beside_the_weights_is_not_followed(make_run, export, tmp_path):
    run, secret = make_run(), tmp_path / "secret"
    secret.write_text("private")
    for checkpoint in run.glob("cells/*/checkpoint"):
        (checkpoint / "vocab.json").symlink_to(secret)
    assert not (export(run) / "vocab.json").exists()


def test_a_cell_whose_weights_are_gone_is_exported_without_them(arithmetic_run, export):
    folder = export(arithmetic_run, "--seed", 0)
    assert not list(folder.glob("*.safetensors"))
    assert (folder / "README.md").is_file()


def test_weights_that_are_gone_cannot_be_merged(arithmetic_run, tmp_path):
    with pytest.raises(UserError, match=r"smmd seed 0 has no weights in .* to merge"):
        export_all(arithmetic_run, tmp_path / "out", "--loss=smmd", "--seed=0", "--merged")
    assert not (tmp_path / "out").exists()


@pytest.mark.engine
@pytest.mark.slow
def test_vllm_runs_a_merged_model_as_transformers_does(make_run, export):
    folder = export(make_run(), "--merged")
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompts = tokenizer(list(PROMPTS))["input_ids"]
    checkpoint = Checkpoint("merged", "base", folder, make_canary(model, tokenizer))
    settings = EngineSettings(max_model_length=256, memory_gb=0.125)
    with load_engine("vllm").open(folder, settings) as session:
        found = session.generate(prompts, checkpoint, max_new_tokens=6)
    for prompt, completion in zip(prompts, found, strict=True):
        ids = [*prompt]
        for token in completion.token_ids:
            with torch.no_grad():
                assert int(model(torch.tensor([ids])).logits[0, -1].argmax()) == token
            ids.append(token)
